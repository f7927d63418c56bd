"""`explore`: run a scenario under many schedules, and say what was found, and how much was looked at.

prepare    stand-ins in place, code exchanged, threads kept ready      (`Bench`, once)
run        set-up, actors, invariants, under a schedule of a strategy  (`Bench.run`, many times)
show       the failing schedule again, with every step written down    (`details`)
shrink     fewer calls, fewer preemptions, fewer steps                 (`shrinking`)
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any, Final, Literal, get_args

import reactive_runtime
from reactive_runtime._core import fuse, primitives
from reactive_runtime.errors import ExploreError, ScenarioError
from reactive_runtime.explore import carriers, rewriting, tracing
from reactive_runtime.explore.bounded import Bounded
from reactive_runtime.explore.details import Details, Step
from reactive_runtime.explore.diagram import text_of
from reactive_runtime.explore.gil import happens_under_a_gil
from reactive_runtime.explore.hanging import Watchdog
from reactive_runtime.explore.installing import installed
from reactive_runtime.explore.interrupts import Interrupts
from reactive_runtime.explore.machine import CUT, Aborted, Machine, Stop
from reactive_runtime.explore.scenario import Scenario, modules_of, scenario_of
from reactive_runtime.explore.shrinking import shrunk
from reactive_runtime.explore.standins import ForeignThreadError
from reactive_runtime.explore.strategies import PCT, POS, URW, Random, Replayed, Strategy
from reactive_runtime.explore.tokens import Token, source_hash
from reactive_runtime.explore.watching import Watcher

__all__ = ["BrokenRule", "Failure", "Points", "Result", "ScheduleFailed", "Verdict", "explore", "replay"]

_seconds: Final = primitives.monotonic  # the real one, whatever stands in for it meanwhile

Points = Literal["sync", "shared", "line", "opcode"]

_SWEEP: Final = 1_000
"""Runs between which garbage is collected: in a run it is not, since what it sets free could come at any point."""

_HERE: Final = os.path.dirname(__file__) + os.sep

_NO_FILE: Final = "<string>"  # of code from many places

_UNWATCHED: Final = ("atomics", "_core.primitives", "cli", "explore", "interop", "spark", "stress", "tck", "testing")
"""Rooms of the package that are not looked into, unless they are named."""


class BrokenRule(AssertionError):  # noqa: N818
    """An invariant of a scenario that is a rule of Reactive Streams; raised by checks of rules."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class ScheduleFailed(AssertionError):  # noqa: N818
    """What `assert_holds` raises: what failed, the diagram of the schedule, and the token that has it again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.message}\n\n{failure.diagram()}\n\nreplay(scenario, {failure.token!r})")
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Verdict:
    """How much was looked at; never more than that."""

    kind: Literal["exhausted", "bounded", "sampled"]
    n: int = 0
    """bounded: all schedules with up to so many preemptions; sampled: so many schedules."""

    def __str__(self) -> str:
        return self.kind if self.kind == "exhausted" else f"{self.kind}({self.n})"


@dataclass(frozen=True)
class Failure:
    """A schedule under which something does not hold."""

    scenario: str
    kind: str
    """invariant, raised, deadlock, livelock, limit."""
    message: str
    rule: str | None
    """The rule of Reactive Streams that is broken, where it is one."""
    thread: str | None
    """The thread that was running, where that says anything."""
    schedule: list[int]
    """Who does each step: the number of the thread, in order of creation; 0 is the main one."""
    preemptions: int
    """How often a thread that could have gone on did not."""
    steps: list[Step]
    program: list[tuple[str, list[int]]]
    """The actors and the calls of theirs that are left after shrinking."""
    token: str
    """Has this schedule again: `replay(scenario, token)`."""
    found_after: int
    """Schedules, this one included, until it was found."""
    minimal: bool
    """Whether it is certain that no schedule with fewer preemptions fails in this way."""
    gil: bool = True
    """Whether it can happen on an interpreter with a GIL; else only where there is none."""
    error: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised, where something was."""

    def diagram(self) -> str:
        """The schedule as text: a column for each thread, time downwards."""
        return text_of(self)

    def svg(self) -> str:
        """The diagram as a picture; needs Jinja2."""
        from reactive_runtime.explore.picture import svg_of

        return svg_of(self)

    def html(self) -> str:
        """The diagram as a table, for a page; needs Jinja2."""
        from reactive_runtime.explore.picture import html_of

        return html_of(self)

    def _repr_html_(self) -> str:
        return self.html()

    def __reduce__(self) -> Any:  # between processes: what was raised may not be fit to travel
        return _failure_of, ({**vars(self), "error": None},)


def _failure_of(fields: dict[str, Any]) -> Failure:
    return Failure(**fields)


@dataclass(frozen=True)
class Result:
    """What an exploration has found."""

    scenario: str
    verdict: Verdict
    schedules: int
    """Schedules that were run to their end."""
    seconds: float
    strategy: str
    points: str
    seed: int
    failure: Failure | None
    notes: list[str] = field(default_factory=list)
    """What should be known of it: a module without source, say."""

    @property
    def holds(self) -> bool:
        """Whether no schedule failed, of those that `verdict` says were looked at."""
        return self.failure is None

    def assert_holds(self) -> Result:
        """Raise ScheduleFailed if a schedule failed; else return this."""
        if self.failure is not None:
            raise ScheduleFailed(self.failure)
        return self

    def __str__(self) -> str:
        rate = f"{self.schedules} schedules, {self.strategy}, points {self.points}, seed {self.seed}"
        if self.failure is None:
            return f"{self.scenario} holds: {self.verdict} ({rate})"
        return f"{self.scenario} fails after {self.failure.found_after} ({rate}): {self.failure.message}"


def explore(
    scenario: Any,
    *,
    schedules: int = 2_000,
    seed: int = 0,
    strategy: str = "portfolio",
    points: Points = "shared",
    modules: Sequence[str | ModuleType] = (),
    bound: int | None = None,
    limit: int = 20_000,
    shrink: bool = True,
    hang: float = 10.0,
    engine: Literal["threads", "greenlets"] = "threads",
    job: int = 0,
) -> Result:
    """Run `scenario` under up to `schedules` schedules, until one fails or none is left.

    `scenario` is a class with `actor_` methods, a `Scenario`, or a function that starts threads. `strategy` is one of
    portfolio, random, pct (or pct2, pct3, …), pos, urw, bounded; `bound` is the most preemptions that `bounded` goes
    to (None: all there are). `points` says where threads can change: at primitives and signals (sync), also at loads
    and stores that race (shared), at lines (line), at instructions that touch anything (opcode). Loads, stores, lines
    and instructions are those of the scenario's modules, the package's own, and `modules`. `limit` is the most steps
    of a schedule. The same seed gives the same schedules on the same interpreter.

    Runs on the calling thread and some kept ones, pinned to one core (`job` tells explorations apart that run side by
    side); garbage is not collected meanwhile. Raises ScenarioError for what is no scenario or fails in its set-up, and
    ExploreError for what can't be ordered: a thread that is blocked by something not controlled for `hang` seconds, a
    pool from outside, an event loop, an exploration inside of another, a scenario that is not deterministic.

    >>> from reactive_runtime.explore import explore
    >>> class LostUpdate:
    ...     def __init__(self): self.count = 0
    ...     def actor_a(self): self.count += 1
    ...     def actor_b(self): self.count += 1
    ...     def at_end(self): assert self.count == 2, f"the count is {self.count}"
    >>> explore(LostUpdate, seed=7).failure.message
    'the count is 1'
    """
    program = scenario_of(scenario)
    if schedules < 1:
        raise ValueError(f"explore: schedules must be at least 1, not {schedules}")
    if points not in get_args(Points):
        raise ValueError(f"explore: points must be one of {', '.join(get_args(Points))}, not {points!r}")
    dice = random.Random(seed)
    if engine not in ("threads", "greenlets"):
        raise ValueError(f"explore: engine must be threads or greenlets, not {engine!r}")
    if engine == "greenlets" and points not in ("sync", "shared"):
        raise ValueError("explore: greenlets go with points at sync or shared; lines and instructions need threads")
    searching = _strategies(strategy, dice, bound)
    with Bench(program, points, modules, limit=limit, hang=hang, engine=engine, job=job) as bench:
        return _search(bench, program, searching, strategy, schedules, seed, shrink)


def replay(scenario: Any, token: str, *, modules: Sequence[str | ModuleType] = (), hang: float = 10.0) -> Result:
    """Run the one schedule that `token` stands for.

    Raises ExploreError, naming the step, where that can't be: the source has changed, the interpreter is another, or
    the scenario does not do the same each time.
    """
    it = Token.parse(token)
    program = scenario_of(scenario)
    it.check(program)
    calls = [(name, list(numbers)) for name, numbers in it.program]
    program = program.reduced(calls)
    with Bench(program, it.points, modules, limit=it.limit, hang=hang) as bench:  # type: ignore[arg-type]
        bench.resume(it)
        began = _seconds()
        steps, stop = bench.show(program, it.schedule, it)
        seconds = _seconds() - began
        failure = (
            None
            if stop is None
            else _failure(bench, program, calls, stop, steps, it.strategy, it.seed, it.index, False)
        )
        return Result(
            program.name, Verdict("sampled", 1), 1, seconds, "replay", it.points, it.seed, failure, bench.notes
        )


# -- the search -----------------------------------------------------------------------------------------------


def _strategies(name: str, dice: random.Random, bound: int | None) -> list[Strategy]:
    """Those of a portfolio take turns."""
    simple: dict[str, Any] = {
        "random": Random,
        "pct": PCT,
        "pos": POS,
        "urw": URW,
        "bounded": lambda _: Bounded(bound),
        "brute-force": lambda _: Bounded(bound, reduced=False),
    }
    if name == "portfolio":
        return [POS(dice), PCT(dice, 3), Bounded(bound), URW(dice), PCT(dice, 2), Random(dice)]
    if name in simple:
        return [simple[name](dice)]
    if name.startswith("pct") and name[3:].isdigit() and int(name[3:]) >= 1:
        return [PCT(dice, int(name[3:]))]
    raise ValueError(f"explore: strategy must be one of portfolio, {', '.join(simple)} or pct<depth>, not {name!r}")


def _search(
    bench: Bench, program: Scenario[Any], searching: list[Strategy], name: str, schedules: int, seed: int, shrink: bool
) -> Result:
    began = _seconds()
    bounded = next((it for it in searching if isinstance(it, Bounded)), None)
    count = complete = 0
    failure = None
    turn = 0
    while complete < schedules and count < 4 * schedules:
        strategy = searching[turn % len(searching)]
        turn += 1
        bench.tracks(strategy is bounded)
        if not strategy.begin(bench.machine):
            break  # the search has seen all there is
        stop = bench.run(program, strategy)
        strategy.end(bench.machine)
        count += 1
        if count % _SWEEP == 0:
            gc.collect()
        if stop is not None and stop.kind == CUT:
            continue
        complete += 1
        if stop is not None:
            failure = _found(bench, program, stop, strategy, seed, complete, shrink)
            break
    seconds = _seconds() - began
    verdict = Verdict("sampled", complete)
    if bounded is not None and bounded.exhausted:
        verdict = Verdict("exhausted")
    elif bounded is not None and bounded.complete is not None and len(searching) == 1:
        verdict = Verdict("bounded", bounded.complete)
    return Result(program.name, verdict, complete, seconds, name, bench.points, seed, failure, bench.notes)


def _found(
    bench: Bench, program: Scenario[Any], stop: Stop, strategy: Strategy, seed: int, index: int, shrink: bool
) -> Failure:
    schedule = list(bench.machine.trail)
    if stop.kind == "diverged":
        raise ExploreError(f"{program.name} {_NOT_THE_SAME}: {stop.what}")
    minimal = False
    bench.watcher.frozen = True  # what the schedule says holds for the points there are
    calls = program.program
    if shrink:
        calls, schedule, minimal = shrunk(bench, program, stop, schedule)
    reduced = program.reduced(calls)
    steps, again = bench.show(reduced, schedule)
    if again is None or (again.kind != stop.kind and again.kind != "livelock"):
        was = "nothing failed" if again is None else again.what
        raise ExploreError(f"{program.name} {_NOT_THE_SAME}: {stop.what}; and the second time, {was}")
    return _failure(bench, reduced, calls, again, steps, strategy.name, seed, index, minimal)


_NOT_THE_SAME: Final = (
    "does not do the same each time the schedule is the same; look for dice, for clocks other than `time`'s, for the"
    " order of a set (PYTHONHASHSEED), or for state that outlives a run"
)


def _failure(
    bench: Bench,
    program: Scenario[Any],
    calls: list[tuple[str, list[int]]],
    stop: Stop,
    steps: list[Step],
    strategy: str,
    seed: int,
    index: int,
    minimal: bool,
) -> Failure:
    machine = bench.machine
    schedule = list(machine.trail)
    token = bench.token(program, calls, schedule, steps, strategy, seed, index)
    return Failure(
        scenario=program.name,
        kind=stop.kind,
        message=stop.what,
        rule=getattr(stop.error, "rule", program.rule if stop.kind == "invariant" else None),
        thread=None if stop.thread is None else stop.thread.name,
        schedule=schedule,
        preemptions=sum(step.preempts for step in steps),
        steps=steps,
        program=calls,
        token=token,
        found_after=index,
        minimal=minimal,
        gil=bench.under_a_gil(steps),
        error=stop.error,
    )


# -- the bench ------------------------------------------------------------------------------------------------


class Bench:
    """Everything in place to run schedules of one scenario."""

    def __init__(
        self,
        program: Scenario[Any],
        points: Points,
        modules: Sequence[str | ModuleType],
        *,
        limit: int,
        hang: float,
        engine: str = "threads",
        job: int = 0,
    ) -> None:
        self.points = points
        self.limit = limit
        self.notes: list[str] = []
        self.accesses: list[tuple[int, bool, int]] = []
        """Of the run that was shown last: who, whether it was a point, and the site."""
        self._hang = hang
        self._engine = engine
        self._job = job
        self._modules = list(_watched(program, modules))
        names = frozenset(it.__name__ for it in [*self._modules, *modules_of(program.roots())])
        functions = rewriting.functions_in([*self._modules, *program.roots()], names)
        self._functions = [it for it in functions if not it.__code__.co_filename.startswith(_HERE)]
        self._files = frozenset(it.__code__.co_filename for it in self._functions) - {_NO_FILE}
        self._stack = contextlib.ExitStack()
        self.machine: Machine
        self.watcher: Watcher
        self._exchange: rewriting.Exchange | None = None

    def __enter__(self) -> Bench:
        if Bench.busy:
            raise ExploreError("an exploration inside of an exploration: one process explores one scenario at a time")
        Bench.busy = True
        with contextlib.ExitStack() as stack:
            stack.callback(setattr, Bench, "busy", False)
            self._interrupts = stack.enter_context(Interrupts())
            core = stack.enter_context(carriers.Pinned(self._job))
            kept = carriers.made(self._engine, core)
            stack.callback(kept.close)
            self.machine = machine = Machine(kept, self.limit)
            self.watcher = Watcher(machine, self._files)
            if self.points == "shared":
                self._exchange = exchange = rewriting.Exchange(self._functions, self.watcher.hooks())
                if exchange.unreadable:
                    names = ", ".join(sorted(exchange.unreadable))
                    self.notes.append(f"no source of {names}: instructions are points there")
                    hidden = [it for it in self._functions if it.__code__.co_filename in exchange.unreadable]
                    machine.tracer = stack.enter_context(tracing.Tracer(machine, (), hidden, "opcode"))
                stack.enter_context(exchange)
                self.watcher.prepare()
                compiled, fuse.compiled = fuse.compiled, rewriting.compiled
                stack.callback(setattr, fuse, "compiled", compiled)
                machine.races = True
            elif self.points in ("line", "opcode"):
                machine.tracer = stack.enter_context(tracing.Tracer(machine, self._files, self._functions, self.points))
            stack.enter_context(installed(machine, self._modules))
            self._watchdog = stack.enter_context(Watchdog(machine, kept, self._hang))
            self._stack = stack.pop_all()
        return self

    busy = False

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tracks(self, yes: bool) -> None:
        """Keep chains, or not, in the runs that follow."""
        # What instructions touch is not known: then no two schedules are known to be equivalent.
        self.machine.tracking = yes and self.points == "shared" and self.machine.tracer is None
        self.watcher.begin()
        self.machine.version = self.watcher.found + self.machine.releases

    def run(self, program: Scenario[Any], strategy: Strategy, *, shown: bool = False) -> Stop | None:
        """One schedule. None: all held."""
        machine = self.machine
        machine.choose = strategy.choose
        self.watcher.begin()
        if shown:
            self.watcher.show(True)
        machine.begin()
        state: Any = None
        try:
            state = self._set_up(program)
            for name, calls in program.actors.items():
                machine.spawn(name, _Actor(state, calls))
            if program.at_each_step is not None:
                machine.always = lambda: _judge(program.at_each_step, state)
            machine.watching = self.points != "sync"
            machine.settle()
            machine.watching = False
            machine.always = None
            if machine.stop is None:
                self._at_end(program, state)
        except Aborted:
            if machine.stop is None:
                raise
        finally:
            machine.always = None
            machine.end()
            if state is not None:
                program.tear_down(state)
            self._watchdog.complain()
            self._interrupts.raise_kept()
        stop = machine.stop
        if stop is not None and isinstance(stop.error, ForeignThreadError | ExploreError):
            raise ExploreError(f"{program.name}, actor {stop.thread.name if stop.thread else 'main'}: {stop.error}")
        return stop

    def _set_up(self, program: Scenario[Any]) -> Any:
        try:
            return program.setup()
        except Exception as error:
            if isinstance(error, ExploreError):
                raise
            raise ScenarioError(f"the set-up of {program.name} raised {type(error).__name__}: {error}") from error

    def _at_end(self, program: Scenario[Any], state: Any) -> None:
        machine = self.machine
        try:
            with machine.undisturbed():
                _judge(program.at_end, state)
        except Exception as error:
            machine.stop = Stop("invariant", str(error) or type(error).__name__, None, error)

    def show(
        self, program: Scenario[Any], schedule: Sequence[int], token: Token | None = None
    ) -> tuple[list[Step], Stop | None]:
        """Run one schedule again, and write down every step."""
        machine = self.machine
        self.tracks(False)
        strategy = Replayed(schedule)
        machine.details = details = Details(machine, self._files, self._codes(), token)
        strategy.begin(machine)
        try:
            stop = self.run(program, strategy, shown=True)
        finally:
            machine.details = None
            self.watcher.show(False)
        self.accesses = [(step.thread, step.point, step.site) for step in details.steps if not step.waits]
        details.finish()
        if stop is not None and stop.kind == "limit" and (period := details.period()) is not None:
            stop = Stop("livelock", f"{stop.what}: {period}", stop.thread)
        where = details.diverged or strategy.diverged
        if where is not None or (len(machine.trail) != len(schedule) and schedule):
            where = where or f"{len(machine.trail)} steps instead of {len(schedule)}"
            raise ExploreError(f"{program.name} {_NOT_THE_SAME}: {where}")
        return details.steps, stop

    def token(
        self,
        program: Scenario[Any],
        calls: list[tuple[str, list[int]]],
        schedule: list[int],
        steps: list[Step],
        strategy: str,
        seed: int,
        index: int,
    ) -> str:
        """What has this schedule again."""
        hot = [
            (it, [site - rewriting.sites_of(it)[0] for site in rewriting.sites_of(it) if self.watcher.hot[site]])
            for it in sorted(self._files)
            if rewriting.sites_of(it)
        ]
        named = [(_short(it), sites) for it, sites in hot if sites]
        return Token(
            scenario=program.name,
            strategy=strategy,
            seed=seed,
            index=index,
            points=self.points,
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            source=source_hash(self._own_files()),
            limit=self.limit,
            releases=self.machine.releases,
            hot=named,
            program=calls,
            schedule=schedule,
            prints=[step.print for step in steps if step.point],
        ).text()

    def _codes(self) -> list[CodeType]:
        """Of functions that have no file."""
        return [it.__code__ for it in self._functions if it.__code__.co_filename == _NO_FILE]

    def _own_files(self) -> list[str]:
        return sorted(self._files)

    def under_a_gil(self, steps: list[Step]) -> bool:
        """Whether these steps can be done in this order where there is a GIL; at lines and instructions, unknown."""
        return self._exchange is None or happens_under_a_gil(steps, self._exchange.code_of)

    def resume(self, token: Token) -> None:
        """Make points of what was one when `token` was made."""
        if token.source != source_hash(self._own_files()):
            raise ExploreError(
                "the source of the scenario, or of the modules it is explored with, is not what it was when this token"
                " was made: explore again"
            )
        self.machine.releases = token.releases
        self.watcher.frozen = True
        by_name = {_short(it): it for it in self._files}
        for name, sites in token.hot:
            numbers = rewriting.sites_of(by_name[name])
            self.watcher.heat([numbers[0] + it for it in sites])


def _short(filename: str) -> str:
    return "/".join(filename.replace("\\", "/").split("/")[-3:])


class _Actor:
    """An actor's calls, as the target of a thread."""

    __slots__ = ("_calls", "_state")

    def __init__(self, state: Any, calls: Sequence[Any]) -> None:
        self._state = state
        self._calls = calls

    def __call__(self) -> None:
        for call in self._calls:
            result = call(self._state)
            if hasattr(result, "__await__"):
                result.close()
                raise ExploreError("it returned a coroutine: the explorer orders threads, not coroutines")


def _judge(invariant: Any, state: Any) -> None:
    if invariant(state) is False:
        raise AssertionError(f"{getattr(invariant, '__qualname__', 'the invariant')} does not hold")


def _watched(program: Scenario[Any], modules: Sequence[str | ModuleType]) -> Iterator[ModuleType]:
    """The modules whose accesses are points: the scenario's, the package's own, and those that are named."""
    seen: set[str] = set()
    package = reactive_runtime.__name__
    named: list[ModuleType] = []
    for it in modules:
        if isinstance(it, ModuleType):
            named.append(it)
            continue
        found = [module for name, module in sys.modules.items() if name == it or name.startswith(f"{it}.")]
        if not found:
            raise ScenarioError(f"no module {it!r} is imported: import it before it is explored")
        named.extend(found)
    own = [
        module
        for name, module in sys.modules.items()
        if (name == package or name.startswith(f"{package}.")) and not _in_room(name, package)
    ]
    scenario = [it for it in modules_of(program.roots()) if not it.__name__.startswith(f"{package}.explore")]
    for module in [*scenario, *named, *own]:
        if module.__name__ not in seen:
            seen.add(module.__name__)
            yield module


def _in_room(name: str, package: str) -> bool:
    inner = name.removeprefix(f"{package}.")
    return any(inner == room or inner.startswith(f"{room}.") for room in _UNWATCHED)
