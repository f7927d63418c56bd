"""What a scenario is, and how scenarios are found.

A scenario file holds functions under `@scenario`. Each makes a publisher, with the pools that the harness lends
it; the harness subscribes many times, and lets many threads fire `request` and `cancel` at each subscription.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from reactive_runtime._core import primitives
from reactive_runtime.errors import ScenarioError
from reactive_runtime.flow import Flow
from reactive_runtime.spec import Publisher
from reactive_runtime.testing.recorder import Recorder

__all__ = ["Rig", "Scenario", "find", "scenario"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[["Rig"], Publisher[int]])


class Rig:
    """What the harness lends to a scenario: pools, and recorders for the links inside a pipeline."""

    def __init__(self, recorder: Recorder, scenario: str) -> None:
        self._recorder = recorder
        self._scenario = scenario
        self._pools: list[_CountingPool] = []  # owned by the thread of the harness
        self._running = _Count()

    def pool(self, workers: int = 1, name: str = "pool") -> Executor:
        """A thread pool of `workers` threads (1 or more), which the harness shuts down."""
        pool = _CountingPool(workers, name, self._running)
        self._pools.append(pool)
        return pool

    def link(self, flow: Flow[T], elements: int | None = None) -> Flow[T]:
        """`flow`, recorded here inside the pipeline, where our own subscribers have to keep 2.7."""
        name = f"{self._scenario}, link"
        return Flow.from_publisher(self._recorder.wrap(flow, name, ascending=True, elements=elements))

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until no task is running or waiting on any pool; whether that came about. Only tasks may submit."""
        return self._running.wait_for_zero(seconds)

    def close(self) -> None:
        """Shut the pools down. Threads that are stuck in a task are left behind."""
        idle = self._running.wait_for_zero(1.0)
        for pool in self._pools:
            pool.shutdown(wait=idle, cancel_futures=not idle)


class _Count:
    """How many tasks of all pools are unfinished. A task that submits another is counted until it has."""

    def __init__(self) -> None:
        self._n = 0  # _changed
        self._changed = primitives.Condition()

    def add(self, n: int) -> None:
        with self._changed:
            self._n += n
            self._changed.notify_all()

    def wait_for_zero(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._n == 0, seconds)


class _CountingPool(ThreadPoolExecutor):
    """A thread pool that counts what it has not finished."""

    def __init__(self, workers: int, name: str, running: _Count) -> None:
        super().__init__(workers, thread_name_prefix=name)
        self._running = running

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._running.add(1)
        try:
            future = super().submit(fn, *args, **kwargs)
        except BaseException:
            self._running.add(-1)
            raise
        future.add_done_callback(lambda _: self._running.add(-1))
        return future


@dataclass(frozen=True)
class Scenario:
    """A publisher under fire."""

    name: str
    factory: Callable[[Rig], Publisher[int]]
    elements: int | None
    """How many elements each subscription has; None: unbounded or unknown."""
    live: int
    """How many subscriptions are under fire at once."""
    file: str
    summary: str


def scenario(*, elements: int | None, live: int = 1) -> Callable[[F], F]:
    """Declare a scenario: the function makes a publisher of ascending ints, `elements` of them for each subscriber.

    `live` subscriptions (1 or more) are under fire at the same time.
    """

    def declare(factory: F) -> F:
        summary = (factory.__doc__ or "").strip().splitlines()
        found = Scenario(
            factory.__name__, factory, elements, live, factory.__code__.co_filename, summary[0] if summary else ""
        )
        factory.scenario = found  # type: ignore[attr-defined]
        return factory

    return declare


def find(folder: Path | str, names: Sequence[str] = ()) -> list[Scenario]:
    """The scenarios in the files of `folder`, in order: those named, or all. ScenarioError says what is wrong."""
    folder = Path(folder)
    files = sorted(folder.glob("*.py")) if folder.is_dir() else []
    if not files:
        raise ScenarioError(f"{folder}: no scenario files (*.py) there; name a folder with --scenarios")
    found = {it.name: it for file in files for it in _scenarios(file)}
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ScenarioError(f"no scenario {unknown[0]!r} in {folder}; there are: {', '.join(found)}")
    return [found[name] for name in (names or found)]


def _scenarios(file: Path) -> Iterator[Scenario]:
    spec = importlib.util.spec_from_file_location(f"stress_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ScenarioError(f"{file}: can't be imported: {type(error).__name__}: {error}") from error
    for value in vars(module).values():
        if isinstance(it := getattr(value, "scenario", None), Scenario):
            yield it
