"""Declare scenarios, and find them in files and modules.

A scenario file holds functions under `@scenario`. For each round one makes a publisher, with the pools and the clock
that the harness lends it; the harness subscribes many times, and lets many threads fire `request` and `cancel` at each
subscription. A hot source, or a processor, also says what feeds it: `context.feed(function)` is a thread of its own.
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, Literal, Protocol, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._flow import Flow
from reactive_runtime._results.states import link_of, scenario_of
from reactive_runtime._spec import MAX_DEMAND, Publisher
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import ScenarioError
from reactive_runtime.executors import ScheduledExecutor
from reactive_runtime.stress._cancellation_metrics import Opened
from reactive_runtime.stress._unfinished import Count, CountingClock, CountingPool
from reactive_runtime.testing._recorder import Recorder
from reactive_runtime.testing._records import allowed_late

__all__ = ["FEEDERS", "WORKLOADS", "Context", "Declared", "Scenario", "Workload", "default_folder", "find", "scenario"]

T = TypeVar("T")


FEEDERS: Final = 3
"""How many threads there are to feed the publisher of a round."""


@dataclass(frozen=True)
class Workload:
    """The calls of an actor on a subscription: how many, and which, in percent. The rest lets other threads run."""

    operations: tuple[int, ...]
    """One is drawn for each subscription."""
    _: KW_ONLY
    one: float
    """`request(1)`"""
    several: float = 0
    """`request(n)`"""
    unbounded: float = 0
    """`request(MAX_DEMAND)`"""
    cancel: float = 0
    invalid: float = 0
    """`request` of 0, or less"""
    subscribe: float = 0
    """One more subscriber, which requests and cancels at once, or does not"""


WORKLOADS: Final[dict[str, Workload]] = {
    "mixed": Workload((0, 1, 1, 2, 4), one=60, several=33, unbounded=3, cancel=2.5),
    "to and fro": Workload((2, 4, 8), one=90, cancel=0.2),  # demand comes back to zero, again and again
    "unbounded": Workload((1, 2), one=20, several=20, unbounded=40, cancel=10),
    "requests": Workload((4, 8, 16), one=70, several=25),
    "cancels": Workload((1, 2, 4), one=10, several=10, unbounded=10, cancel=60),
    "churn": Workload((1, 2), one=20, several=10, unbounded=10, cancel=20, subscribe=30),
    "invalid": Workload((1, 2, 4), one=40, several=20, unbounded=5, cancel=5, invalid=10),
}
"""By name; a scenario has some, one of which is drawn for each round."""

SUBSCRIBERS: Final = ("plain", "slow", "raising")
"""The kinds of subscribers that a scenario may have."""


class Context:
    """What the harness lends to a scenario: pools, a clock, feeders, and recorders for the links inside a pipeline.

    The harness makes it, and gives it to the scenario's function in each round.

    Args:
        recorder: Records the links.
        scenario: The name of the scenario, for the records of its links.
    """

    def __init__(self, recorder: Recorder, scenario: str) -> None:
        self._recorder = recorder
        self.link_name: str = link_of(scenario)
        self._lock = primitives.Lock()
        self._pools: dict[tuple[int, str], CountingPool] = {}  # _lock: a function of an operator may ask for one
        self._clock: CountingClock | None = None  # _lock
        # Owned by the thread that calls the factory, and by the harness when that has returned:
        self._passing: list[CountingPool] = []  # of this round
        self.feeders: list[Callable[[], object]] = []  # of this round
        self._running = Count()
        self.iterators: Opened = Opened()

    def opened(self, iterable: Callable[[], Iterable[T]]) -> Callable[[], Iterator[T]]:
        """An iterable whose iterators are counted while they are open: for `Flow.defer` and its like.

        Args:
            iterable: Makes an iterable.

        Returns:
            A function that makes an iterator over it, which is counted until it is closed or at its end.
        """
        return self.iterators.counted(iterable)

    def pool(self, workers: int = 1, name: str = "pool") -> Executor:
        """A thread pool, which lasts; the same for the same arguments.

        Args:
            workers: How many threads, 1 or more.
            name: The name of the threads.

        Returns:
            The pool, which is shut down after the run.

        Raises:
            ValueError: `workers` is below 1.

        Thread:
            Any.
        """
        with self._lock:
            if (workers, name) not in self._pools:
                self._pools[workers, name] = CountingPool(workers, name, self._running)
            return self._pools[workers, name]

    def pool_of_this_round(self, workers: int = 1) -> Executor:
        """A thread pool that the scenario may shut down, and that is shut down after the round.

        Args:
            workers: How many threads, 1 or more.

        Returns:
            A new pool.

        Raises:
            ValueError: `workers` is below 1.

        Thread:
            That of the scenario's function.
        """
        pool = CountingPool(workers, "passing", self._running)
        self._passing.append(pool)
        return pool

    def clock(self) -> ScheduledExecutor:
        """A clock, in real time.

        Returns:
            The same clock each time.

        Thread:
            Any.
        """
        with self._lock:
            if self._clock is None:
                self._clock = CountingClock(self._running)
            return self._clock

    def feed(self, feeder: Callable[[], object]) -> None:
        """Call `feeder` in this round, on a thread of its own, while the actors fire.

        Args:
            feeder: Feeds the publisher. There are up to `FEEDERS` of them in a round.

        Raises:
            ValueError: It is one too many.

        Thread:
            That of the scenario's function.
        """
        if len(self.feeders) == FEEDERS:
            raise ValueError(
                f"feed: a round has up to {FEEDERS} feeders, and this is one more: call it from another one"
            )
        self.feeders.append(feeder)

    def link(self, flow: Flow[T], *, elements: int | None = None) -> Flow[T]:
        """`flow`, recorded here inside the pipeline, where our own subscribers have to keep 2.7.

        Args:
            flow: A flow of ascending ints.
            elements: How many elements each subscription has. None: that is not known.

        Returns:
            A flow, for the scenario to go on with.
        """
        return Flow.from_publisher(self._recorder.wrap(flow, self.link_name, ascending=True, elements=elements))

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until no task is running or waiting on any pool. Only tasks may submit meanwhile.

        Args:
            seconds: Seconds to wait.

        Returns:
            Whether that came about.
        """
        return self._running.wait_for_zero(seconds)

    def next_round(self) -> None:
        """Drop what was for one round."""
        self.feeders = []
        passing, self._passing = self._passing, []
        for pool in passing:
            pool.shutdown(wait=True, cancel_futures=True)

    def close(self) -> None:
        """Shut the pools down. Threads that are stuck in a task stay behind."""
        idle = self._running.wait_for_zero(1.0)
        with self._lock:
            lasting, clock = list(self._pools.values()), self._clock
        for pool in (*lasting, *self._passing):
            pool.shutdown(wait=idle, cancel_futures=not idle)
        if clock is not None:
            clock.shutdown(wait=idle, cancel_futures=not idle)


@dataclass(frozen=True)
class Scenario:
    """A publisher under load, as `scenario` declares it."""

    name: str
    factory: Callable[[Context], Publisher[int]]
    elements: int | None
    """How many elements each subscription has; None: unbounded or unknown."""
    live: int
    """How many subscriptions are under load at once."""
    ascending: bool
    """Each element is larger than the one before."""
    settles: bool
    """After a round, whatever was demanded and can come has come."""
    subscribers: str
    """plain, slow or raising."""
    late_signals: int | None
    """How many signals may begin after a cancel from outside has returned."""
    workloads: tuple[str, ...]
    """Names in `WORKLOADS`."""
    tags: frozenset[str]
    file: str
    summary: str
    executor_stops: bool = False
    """An executor that its publisher needs is shut down under load."""

    @property
    def place(self) -> str:
        """The file and the line of its function."""
        code: CodeType = self.factory.__code__
        return f"{self.file}:{code.co_firstlineno}"


class Declared(Protocol):
    """A function that `scenario` has declared."""

    scenario: Scenario
    """What was declared."""

    def __call__(self, context: Context, /) -> Publisher[int]:
        """Make the publisher of a round."""
        raise NotImplementedError


def scenario(
    *,
    elements: int | None,
    live: int = 1,
    ascending: bool = True,
    settles: bool = True,
    late_signals: int | None = None,
    subscribers: Literal["plain", "slow", "raising"] = "plain",
    workload: str | Sequence[str] = ("mixed", "to and fro", "to and fro", "unbounded"),
    executor_stops: bool = False,
    tags: Iterable[str] = (),
) -> Callable[[Callable[[Context], Publisher[int]]], Declared]:
    """Declare a scenario: a function that makes a publisher of ints for each round.

    Args:
        elements: How many elements a stream has that completes; none may have more. None: that is not known. An endless
            stream needs a `workload` that never asks for all of it: `requests`, `to and fro`.
        live: How many subscriptions are under load at the same time, 1 or more.
        ascending: Whether each element is larger than the one before. An element that is no int ends the scenario: it
            can't be compared.
        settles: False where unmet demand is no loss: subscribers share a source that waits for the slowest, or it runs
            on threads that are not the context's. Then 1.2, 1.4, 1.5, 2.5, 3.8, 3.17, and an invalid request without an
            answer (3.9), are not judged; a subscriber that never hears `on_subscribe` (1.9) still is.
        late_signals: How many signals may begin after a cancel from outside has returned, 0 to 15. None: 1, the one
            that may be under way.
        subscribers: "plain"; "slow": each element takes them half a millisecond; "raising": from one of their
            `on_next`.
        workload: A name of `WORKLOADS`, or several: each round has one of them.
        executor_stops: Whether an executor that the publisher needs is shut down under load: a planted fault is not
            tried there, since the subscription that it is made from has no answer to that.
        tags: For choosing: `smoke` is what runs after every change. All have the tag `nightly`.

    Returns:
        A decorator, which returns the function as it is, with the scenario as its attribute.

    Raises:
        TypeError: `late_signals` is no int.
        ValueError: `live` or `late_signals` is out of its range.
        ScenarioError: Another argument can't be what it is, and of all but the workloads, the function's name is said;
            or the decorated object is no function, or has the name of a scenario's links.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.stress import scenario
        >>> @scenario(elements=9, tags=["smoke"])
        ... def nine(context):
        ...     return Flow.range(9).publish_on(context.pool(2))
        >>> nine.scenario.name, sorted(nine.scenario.tags)
        ('nine', ['nightly', 'smoke'])
    """
    workloads = (workload,) if isinstance(workload, str) else tuple(workload)
    if type(live) is int and live < 1:
        raise ValueError(f"scenario: live must be 1 or more, not {live}")
    if late_signals is not None:
        allowed_late("scenario", late_signals)
    for name in workloads:
        if name not in WORKLOADS:
            raise ScenarioError(f"scenario: no workload {name!r}; there are: {', '.join(WORKLOADS)}")

    def declare(factory: Any) -> Any:
        if not isinstance(getattr(factory, "__code__", None), CodeType):
            raise ScenarioError(f"scenario: should be over a function, not over {shown(factory)}")
        summary = _writable(factory.__doc__ or "").strip().splitlines()
        name = _writable(factory.__name__)
        if scenario_of(name) != name:
            raise ScenarioError(f"scenario {name!r}: so the links of {scenario_of(name)!r} are named: rename it")
        for argument, is_right, should in (
            ("elements", elements is None or _is_count(elements, 0), "None, or an int from 0 to 2**63 - 1"),
            ("live", _is_count(live, 1), "an int, 1 or more"),
            ("subscribers", subscribers in SUBSCRIBERS, ", ".join(SUBSCRIBERS)),
            ("workload", bool(workloads), f"one or more of {', '.join(WORKLOADS)}"),
            ("tags", not isinstance(tags, str), "a list of tags, and not one text"),
        ):
            if not is_right:
                raise ScenarioError(f"scenario {name!r}: {argument} is wrong; it should be: {should}")
        found = Scenario(
            name, factory, elements, live, ascending, settles, subscribers, late_signals,
            workloads, frozenset(tags) | {"nightly"}, factory.__code__.co_filename, summary[0] if summary else "",
            executor_stops,
        )  # fmt: skip
        factory.scenario = found
        if _IMPORTED:
            _IMPORTED[-1].append(found)
        return factory

    return declare


_IMPORTED: Final[list[list[Scenario]]] = []
"""The scenarios that are declared while `find` imports a file, innermost last. The thread that calls `find` owns it."""


def _is_count(number: object, least: int) -> bool:
    return type(number) is int and least <= number <= MAX_DEMAND


def _writable(text: str) -> str:
    """The text, with lone surrogates as Python writes them: no file and no terminal takes them."""
    return text.encode("utf-8", "backslashreplace").decode()


def default_folder() -> str:
    """The folder of scenarios if the user names none: `stress` in the working folder, else the package's own.

    An installed package has them beside this file; in a clone they are in the folder `stress` at its top.
    """
    if Path("stress").is_dir():
        return "stress"
    installed = Path(__file__).parent / "scenarios"
    return str(installed if installed.is_dir() else Path(__file__).parents[2] / "stress")


def find(
    where: Path | str,
    names: Sequence[str] = (),
    *,
    tag: str | None = None,
    skipped: Callable[[Path, ScenarioError], object] | None = None,
) -> list[Scenario]:
    """The scenarios in a folder of files, or in a module or package of that name: all, or those that match.

    Args:
        where: A folder, or the name of a module or package.
        names: Names, or patterns as a shell has them: `range_*`. None given: all.
        tag: A tag that they must have. None: any.
        skipped: Called for each file that does not import, with the error; those of the other files are found. None:
            such a file is an error.

    Returns:
        The scenarios, in the order of the names that were given, else of the files.

    Raises:
        ScenarioError: There are no scenarios there, two have one name, one is wrapped by a decorator above `@scenario`,
            a file does not import, or nothing matches a name or the tag.
    """
    found: dict[str, Scenario] = {}
    unread: list[ScenarioError] = []

    def without(file: Path, error: ScenarioError) -> None:
        assert skipped is not None
        unread.append(error)
        skipped(file, error)

    for module, made in _modules(where, None if skipped is None else without):
        for item in _declared(module, made):
            other = found.setdefault(item.name, item)
            if other is not item and not _loaded_twice(other, item):
                one, another = (other.file, item.file) if other.file != item.file else (other.place, item.place)
                where_both = f"in {one} and in {another}"
                raise ScenarioError(f"two scenarios are named {item.name!r}, {where_both}: rename one")
    if not found and unread:
        raise unread[0]
    if not found:
        raise ScenarioError(f"{where}: no scenarios there: a scenario is a function under @scenario")
    chosen = found
    if names:
        for name in names:
            if not fnmatch.filter(found, name):
                raise ScenarioError(f"no scenario {name!r} in {where}; there are: {', '.join(found)}")
        chosen = {item: found[item] for name in names for item in fnmatch.filter(found, name)}
    tagged = [item for item in chosen.values() if tag is None or tag in item.tags]
    if not tagged:
        tags = sorted({tag for item in chosen.values() for tag in item.tags})
        raise ScenarioError(f"no scenario with the tag {tag!r} in {where}; tags are: {', '.join(tags)}")
    return tagged


def _modules(
    where: Path | str, skipped: Callable[[Path, ScenarioError], object] | None
) -> Iterator[tuple[ModuleType, list[Scenario]]]:
    """The modules, each with the scenarios that were declared while it was imported."""
    folder = Path(where)
    # Absolute: a file that is imported may change the working folder.
    files = sorted(folder.absolute().glob("*.py")) if folder.is_dir() else []
    if not files and not folder.exists() and all(part.isidentifier() for part in str(where).split(".")):
        try:
            found = _imported(partial(importlib.import_module, str(where)))
        except ModuleNotFoundError as error:
            if error.name is None or not str(where).startswith(error.name):
                raise _unimportable(str(where), error) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _unimportable(str(where), error) from error
        else:
            yield found
            return
    if not files:
        raise ScenarioError(f"{where}: no scenario files (*.py) there; name a folder or a module with --scenarios")
    for file in files:
        try:
            found = _imported(partial(_executed, file))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if skipped is None:
                raise _unimportable(str(file), error) from error
            skipped(file, _unimportable(str(file), error))
            continue
        yield found


def _imported(load: Callable[[], ModuleType]) -> tuple[ModuleType, list[Scenario]]:
    """The module, and the scenarios that were declared while it was imported."""
    made: list[Scenario] = []
    _IMPORTED.append(made)
    try:
        return load(), made
    finally:
        _IMPORTED.pop()


def _executed(file: Path) -> ModuleType:
    """The module of a scenario file."""
    spec = importlib.util.spec_from_file_location(f"stress_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _unimportable(what: str, error: BaseException) -> ScenarioError:
    said = " ".join(str(error).split())
    return ScenarioError(f"{what}: can't be imported: {type(error).__name__}: {said}{_place_of(error)}")


def _place_of(error: BaseException) -> str:
    """The line that does not import, to be said after the error; that of a SyntaxError is a part of what it says."""
    frames = [
        item
        for item in traceback.extract_tb(error.__traceback__)
        if not item.filename.startswith("<frozen") and item.filename != scenario.__code__.co_filename
    ]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    return f", at {frames[-1].filename}:{frames[-1].lineno}"


def _loaded_twice(one: Scenario, other: Scenario) -> bool:
    """Whether a file was loaded as a scenario file, and again as the module that another scenario file imports."""
    if one.place != other.place or one.factory.__module__ == other.factory.__module__:
        return False
    homes = [sys.modules.get(item.factory.__module__) for item in (one, other)]
    return any(item in _declared(home) for item, home in zip((one, other), homes, strict=True) if home is not None)


def _declared(module: ModuleType, made: Sequence[Scenario] = ()) -> Iterator[Scenario]:
    """Its scenarios. ScenarioError where one of those that it has `made` has no name there: it would not be run."""
    named = []
    for value in vars(module).values():
        if isinstance(item := getattr(value, "scenario", None), Scenario):
            if value is not item.factory:  # `functools.wraps` copies the attribute: the wrapper would not be run
                wraps = f"{shown(value)} wraps it, and would not be run"
                raise ScenarioError(f"scenario {item.name!r} ({item.place}): {wraps}: put @scenario over the wrapper")
            named.append(item)
            yield item
    for item in made:
        if item.factory.__module__ == module.__name__ and not any(item is other for other in named):
            why = "another one has taken its name, or it has none in its file"
            raise ScenarioError(f"scenario {item.name!r} ({item.place}) would not be run: {why}: name each in the file")
