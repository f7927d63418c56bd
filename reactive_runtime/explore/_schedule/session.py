"""Sets up all that a run of a schedule needs, and runs schedules of one scenario, one after the other."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, Literal

import reactive_runtime
from reactive_runtime._core.fusion import fuse
from reactive_runtime._core.runtime import primitives
from reactive_runtime._executors.shared_clock import forget_shared_clock
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import ExploreError, ScenarioError
from reactive_runtime.explore._checks.observations import Observations, expectation, expected_in, observing
from reactive_runtime.explore._checks.scenario import (
    UNRUN,
    Scenario,
    checks_nothing,
    is_unrun,
    judge,
    modules_of,
    parts_of_state,
)
from reactive_runtime.explore._instrument import code_patcher, rewriting, tracing
from reactive_runtime.explore._render.step_log import Step, StepLog
from reactive_runtime.explore._schedule import carriers
from reactive_runtime.explore._schedule.determinism import AtTheLast, NotTheSameError, Run, StepRecorder
from reactive_runtime.explore._schedule.gil import UnderAGil, happens_under_a_gil, lets_in
from reactive_runtime.explore._schedule.interrupts import Interrupts
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Aborted, Stop
from reactive_runtime.explore._schedule.tokens import Token, source_hash
from reactive_runtime.explore._schedule.watchdog import Watchdog
from reactive_runtime.explore._search.strategies import Early, Replayed, Strategy
from reactive_runtime.explore._shared_state.kinds import module_of
from reactive_runtime.explore._shared_state.watching import Watcher
from reactive_runtime.explore._standins import threads
from reactive_runtime.explore._standins.instrumented import ForeignThreadError
from reactive_runtime.explore._standins.patching import installed

__all__ = ["Points", "Session"]

Points = Literal["sync", "shared", "line", "opcode"]

_exploring: Final = primitives.Lock()
"""Held by the one exploration that this process may have; with it go `SITES`, and the stand-ins' scheduler."""

_HERE: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep
_PACKAGE: Final = os.path.dirname(reactive_runtime.__file__) + os.sep

_NO_FILE: Final = "<string>"  # of code from many places

_FLOWS: Final = f"{reactive_runtime.__name__}._flow"
"""Not imported here: rewriting it takes longer than all else, and most programs of threads have no flow."""

_UNWATCHED: Final = (
    "atomics",
    "_core.runtime.primitives",
    "_core.drains.trampoline",  # a thread's own
    "_support.thread_frames",  # the explorer itself looks through it
    "cli",
    "explore",
    "interop",
    "spark",
    "stress",
    "tck",
    "testing",
)
"""Parts of the package that the explorer does not look into unless `modules` names them."""


class Session:
    """Runs schedules of one scenario. The thread that explores owns it, but `_changes`: the holder of the turn does."""

    def __init__(
        self,
        program: Scenario[Any],
        points: Points,
        modules: Sequence[str | ModuleType] | str | ModuleType,
        *,
        limit: int,
        hang: float,
        engine: str = "threads",
        job: int | None = None,
        gil: str = "any",
        early: int = 0,
        pause: float = 1.0,
    ) -> None:
        self.points = points
        self.limit = limit
        self.notes: list[str] = []
        if checks_nothing(program):
            self.notes.append("nothing is asserted: a schedule fails only where a thread raises, or none can go on")
        self.accesses: list[tuple[int, bool, int]] = []
        """Of the run that was shown last: which thread, whether it was a point, and the site."""
        self.observations: Observations = Observations(expected_in(program.roots()))
        """The outcomes and other observations of all runs."""
        self._hang = hang
        self._engine = engine
        self._job = job
        self._gil = gil
        self._early = early
        self._pause = pause
        self._changes: dict[tuple[int, int], bool] = {}  # by two sites: whether a GIL lets another thread in
        self._program = program
        self._named = modules
        self._look_into(())
        self._stack = contextlib.ExitStack()
        self.scheduler: Scheduler
        self.watcher: Watcher
        self._code_patcher: code_patcher.CodePatcher | None = None

    def _look_into(self, parts: Sequence[Any]) -> None:
        """Look into the scenario, into what was named, and into these."""
        roots = [*self._program.roots(), *parts]
        scenario = list(modules_of(roots))
        self.modules: list[ModuleType] = list(_watched(scenario, self._named))
        """The modules that the explorer looks into."""
        package = reactive_runtime.__name__
        further = [item for item in scenario if not _is_unwatched(item.__name__, package)]
        own = {name for root in self._program.roots() if type(name := _home(root)) is str}
        self._names = frozenset(item.__name__ for item in [*self.modules, *further]) | own
        classes = [part for part in parts if issubclass(type(part), type)]  # a function is made anew in each run
        self._owners: list[Any] = []  # of what outlives a run, perhaps of locks
        reached = [*self.modules, *self._program.roots(), *classes]
        functions = code_patcher.functions_in(reached, self._names, self._owners)
        looked_at: list[ModuleType | FunctionType] = [*self.modules, *functions]
        if _FLOWS not in sys.modules and any(_may_import_flows(item, package) for item in looked_at):
            import_module(_FLOWS)  # while a run imports it, it would get stand-ins for good
            self._look_into(parts)
            return
        self._functions = [function for function in functions if not function.__code__.co_filename.startswith(_HERE)]
        self._files = frozenset(function.__code__.co_filename for function in self._functions) - {_NO_FILE}
        self._without_file = [function for function in self._functions if function.__code__.co_filename == _NO_FILE]

    def __enter__(self) -> Session:
        self._open()
        parts: Sequence[Any] = ()
        further = False
        try:
            if self.points != "sync" and (parts := self._parts()):
                known = {module.__name__ for module in self.modules} | self._names
                found = modules_of([*self._program.roots(), *parts])
                further = any(module.__name__ not in known for module in found)
        except BaseException:
            self._close()
            raise
        if further:  # its set-up makes objects of classes that it does not name
            self._close()
            self._look_into(parts)
            self._open()
        return self

    def _parts(self) -> list[Any]:
        """The classes and functions that the set-up makes a state of.

        No actor runs, so the error of a tear-down that checks the state is dropped.
        """
        scheduler, program = self.scheduler, self._program
        state: Any = None
        hook = threads.excepthook()
        scheduler.choose = lambda ready, me: ready[0]
        self.watcher.begin()
        scheduler.begin()
        forget_shared_clock()
        try:
            state = self._set_up(program)
            return parts_of_state(state)
        except Aborted:  # the first run says why
            return []
        finally:
            self._wind_up(program, state, hook, ran=False)

    def _open(self) -> None:
        if not _exploring.acquire(blocking=False):
            raise ExploreError("an exploration inside of an exploration: one process explores one scenario at a time")
        self._with_flows = _FLOWS in sys.modules
        self._before = frozenset(sys.modules)
        with contextlib.ExitStack() as stack:
            stack.callback(_exploring.release)
            self._interrupts = stack.enter_context(Interrupts())
            stack.enter_context(observing(self.observations))
            core = stack.enter_context(carriers.Pinned(self._job))
            kept = carriers.made(self._engine, core)
            stack.callback(kept.close)
            self.scheduler = scheduler = (
                UnderAGil(kept, self.limit, self._lets_in) if self._gil == "assumed" else Scheduler(kept, self.limit)
            )
            scheduler.early, scheduler.longest_pause = self._early, self._pause
            self.watcher = Watcher(scheduler, self._files, self._names, self._functions)
            if self.points == "shared":
                self._code_patcher = exchanged = code_patcher.CodePatcher(self._functions, self.watcher.hooks())
                if exchanged.hidden:
                    names = {function.__code__.co_filename for function in exchanged.hidden}
                    notes = [
                        f"{name} was edited since it was loaded: instructions are points in what was; load it again"
                        for name in sorted(exchanged.changed)
                    ]
                    if names - exchanged.changed:
                        without = ", ".join(sorted(names - exchanged.changed))
                        notes.append(f"no source of {without}: instructions are points there")
                    self.notes.extend(note for note in notes if note not in self.notes)
                    scheduler.tracer = stack.enter_context(tracing.Tracer(scheduler, (), exchanged.hidden, "opcode"))
                stack.enter_context(exchanged)
                scheduler.hooked = self._files - {function.__code__.co_filename for function in exchanged.hidden}
                self.watcher.prepare()
                compiled, fuse.compiled = fuse.compiled, rewriting.compiled
                stack.callback(setattr, fuse, "compiled", compiled)
                scheduler.races = True
            elif self.points in ("line", "opcode"):
                scheduler.tracer = stack.enter_context(
                    tracing.Tracer(scheduler, self._files, self._functions, self.points)
                )
            stack.enter_context(installed(scheduler, self.modules, self._owners))
            self._watchdog = stack.enter_context(Watchdog(scheduler, kept, self._hang))
            self._stack = stack.pop_all()

    def imported(self) -> list[str]:
        """The program's modules that a schedule was the first to import: nothing looks into these."""
        names = () if self.points == "sync" else sorted(set(sys.modules) - self._before)
        return [f"`import {name}`, which a schedule does first" for name in names if _is_of_program(name)]

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        # Collect the garbage of the runs here: its finalizers might run in the middle of a later exploration.
        self.watcher.forget()
        self.scheduler.forget()
        self.scheduler.collect()
        self._stack.close()

    def _lets_in(self, done: int, coming: int) -> bool:
        key = (done, coming)
        if key not in self._changes:
            self._changes[key] = self._code_patcher is None or lets_in(done, coming, self._code_patcher.code_of)
        return self._changes[key]

    def tracks(self, yes: bool, *, every_step: bool = True) -> None:
        """Keep chains, or not, in the runs that follow; with them the strategy may see steps without a choice too.

        A systematic search needs these; for a strategy that draws they have no meaning.
        """
        self.scheduler.observer = None
        self.scheduler.few = 0 if yes and every_step else 1
        # The locations that an instruction accesses are not known, and an invariant of each step accesses all: with
        # either, no two schedules are known to be equivalent.
        known = self.points == "shared" and self.scheduler.tracer is None and self._program.at_each_step is None
        self.scheduler.tracking = yes and known
        self.watcher.begin()
        if not self.watcher.frozen:  # a replay and a reduction keep their points
            self.scheduler.releases = self.scheduler.releases or self.scheduler.tried
        self.scheduler.version = self.watcher.found + self.scheduler.releases

    def run(self, program: Scenario[Any], strategy: Strategy, *, shown: bool = False) -> Stop | None:
        """Run one schedule. None: all held."""
        scheduler = self.scheduler
        scheduler.choose_early = strategy.choose
        scheduler.choose = strategy.inner.choose if isinstance(strategy, Early) else strategy.choose
        self.watcher.begin()
        self.observations.reached = None
        if shown:
            self.watcher.show(True)
        scheduler.begin()
        scheduler.excepthook = hook = threads.excepthook()  # a program may set another, which is not to outlive the run
        forget_shared_clock()  # its threads were those of the run before
        state: Any = None
        try:
            state = self._set_up(program)
            for name, calls in program.actors.items():
                scheduler.spawn(name, _Actor(state, calls))
            if (at_each_step := program.at_each_step) is not None:
                scheduler.always = lambda: judge(at_each_step, state)
                scheduler.due = 0
            self.watcher.watch()
            scheduler.watching = self.points != "sync"
            scheduler.settle()
            scheduler.watching = False
            scheduler.always = None
            if scheduler.stop is None:
                self._at_end(program, state)
        except Aborted:
            if scheduler.stop is None:
                raise
        finally:
            scheduler.always = None
            self._wind_up(program, state, hook)
        stop = scheduler.stop
        if stop is not None and isinstance(stop.error, ForeignThreadError | ExploreError):
            raise ExploreError(f"{program.name}, actor {stop.thread.name if stop.thread else 'main'}: {stop.error}")
        return stop

    def _wind_up(self, program: Scenario[Any], state: Any, hook: Any, *, ran: bool = True) -> None:
        """After a run, however it ended."""
        self.scheduler.end()
        threads.put_back(hook)
        if state is not None:
            self._tear_down(program, state, ran=ran and self.scheduler.stop is None)
        self._watchdog.complain()
        self._interrupts.raise_kept()
        if not self._with_flows and _FLOWS in sys.modules:
            raise ExploreError(
                f"{program.name} imports flows while it is explored: import reactive_runtime.Flow before"
            )

    def _tear_down(self, program: Scenario[Any], state: Any, *, ran: bool) -> None:
        """A tear-down may check the state; its error counts if the run ended as it should."""
        try:
            program.tear_down(state)
        except ExploreError:
            raise
        except Exception as error:
            if ran:
                scheduler = self.scheduler
                scheduler.stop = Stop("invariant", scheduler.text_of(error) or type(error).__name__, None, error)

    def _set_up(self, program: Scenario[Any]) -> Any:
        try:
            return program.setup()
        except Exception as error:
            if isinstance(error, ExploreError):
                raise
            raise ScenarioError(f"the set-up of {program.name} raised {type(error).__name__}: {error}") from error

    def _at_end(self, program: Scenario[Any], state: Any) -> None:
        scheduler = self.scheduler
        try:
            with scheduler.undisturbed():
                if self.observations.reached is not None:
                    raise self.observations.reached
                judge(program.at_end, state)
                if program.outcome is not None:
                    self._ended(program, program.outcome(state))
        except ScenarioError:
            raise
        except Exception as error:
            scheduler.stop = Stop("invariant", scheduler.text_of(error) or type(error).__name__, None, error)

    def _ended(self, program: Scenario[Any], outcome: Any) -> None:
        self.observations.ended(outcome, self.scheduler.schedule)
        if expectation(program.outcomes, outcome) == "forbidden":
            raise AssertionError(f"the outcome {shown(outcome)} is forbidden")

    def show(
        self, program: Scenario[Any], schedule: Sequence[int], token: Token | None = None
    ) -> tuple[list[Step], Stop | None]:
        """Run one schedule again, and write down every step."""
        scheduler = self.scheduler
        self.tracks(False)
        strategy = Replayed(schedule)
        step_log, stop = self.logged(program, strategy, token)
        self.accesses = [(step.turn, step.point, step.site) for step in step_log.steps if not step.waits]
        step_log.finish()
        if stop is not None and stop.kind in ("limit", "livelock") and (period := step_log.period()) is not None:
            stop = Stop("livelock", f"{stop.what}: {period}", stop.thread)
        where = step_log.diverged or strategy.diverged
        if where is not None or (len(scheduler.schedule) != len(schedule) and schedule):
            where = where or f"{len(scheduler.schedule)} steps instead of {len(schedule)}"
            raise NotTheSameError(program.name, where)
        return step_log.steps, stop

    def logged(
        self, program: Scenario[Any], strategy: Strategy, token: Token | None = None
    ) -> tuple[StepLog, Stop | None]:
        """Run one schedule, as far as the strategy takes it, and log each step."""
        scheduler = self.scheduler
        scheduler.step_log = step_log = StepLog(scheduler, self._files, self._codes(), token)
        strategy.begin(scheduler)
        try:
            stop = self.run(program, strategy, shown=True)
        finally:
            scheduler.step_log = None
            self.watcher.show(False)
        return step_log, stop

    def recorded(self, program: Scenario[Any], strategy: Strategy) -> Run:
        """Run one schedule, and record the parts of its steps that `determinism` compares."""
        scheduler = self.scheduler
        scheduler.step_log = recorder = StepRecorder(self._files, self._codes())
        try:
            stop = self.run(program, strategy)
        finally:
            scheduler.step_log = None
        return Run(recorder.taken, stop, {task.index: task.name for task in scheduler.threads})

    def again(self, program: Scenario[Any], schedule: Sequence[int]) -> Run:
        """Run one schedule again, with the points that it had, and drop its observations."""
        observed, frozen = list(self.observations.outcomes), self.watcher.frozen
        strategy = Replayed(schedule)
        strategy.begin(self.scheduler)
        self.scheduler.observer = None  # the search has learned from that run
        self.watcher.frozen = True
        try:
            return self.recorded(program, strategy)
        finally:
            self.watcher.frozen = frozen
            self.observations.outcomes = observed

    def fingerprint(self, program: Scenario[Any]) -> int:
        """A number for the order of the last run: equal if each operation came after the same others."""
        scheduler = self.scheduler
        if not scheduler.tracking or program.at_each_step is not None:
            return hash(tuple(scheduler.schedule))
        return sum(task.chain for task in scheduler.threads)

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
        """The text that replays this schedule."""
        return Token(
            scenario=program.name,
            strategy=strategy,
            seed=seed,
            index=index,
            points=self.points,
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            source=source_hash(self._own_files()),
            limit=self.limit,
            early=self._early,
            pause=self._pause,
            releases=self.scheduler.releases,
            racing=self._by_file(self.watcher.racing.__getitem__),
            names=sorted(self.watcher.by_name),
            of_classes=sorted(self.watcher.of_classes),
            calling=self._by_file(self.watcher.calling.__contains__),
            program=calls,
            schedule=schedule,
            prints=[step.print for step in steps if step.point],
        ).text()

    def _by_file(self, chosen: Callable[[int], object]) -> list[tuple[str, list[int]]]:
        """The sites that are chosen, by file, counted from the first of the file."""
        found = []
        for file in sorted(self._files):
            every = code_patcher.sites_of(file)
            if sites := [number for number, site in enumerate(every) if chosen(site)]:
                found.append((_short(file), sites))
        return found

    def _codes(self) -> list[CodeType]:
        """The code of functions that have no file."""
        return [function.__code__ for function in self._without_file]

    def _own_files(self) -> list[str]:
        return sorted(self._files | _package_files())  # loaded or not: a token is for processes that import more

    def under_a_gil(self, steps: list[Step]) -> bool:
        """Whether these steps can happen in this order with a GIL; at lines and instructions always True."""
        return self._code_patcher is None or happens_under_a_gil(steps, self._code_patcher.code_of)

    def breach(self, stop: Stop, steps: list[Step]) -> tuple[str, int] | None:
        """File and line at which it failed: the innermost that is looked into, else the last that was seen."""
        frames = [] if stop.error is None else traceback.extract_tb(stop.error.__traceback__)
        inside = [(frame.filename, frame.lineno) for frame in frames if frame.filename in self._files and frame.lineno]
        seen = [(step.filename, step.line) for step in steps if step.line]
        found = inside or seen
        return found[-1] if found else None

    @property
    def origin(self) -> tuple[Scenario[Any], Any]:
        """The scenario and `modules`, which a replay needs beside the token."""
        return self._program, self._named

    def stop_before(
        self, program: Scenario[Any], schedule: Sequence[int], stop: Stop, where: tuple[str, int] | None
    ) -> Stop | None:
        """Run one schedule again, and enter the debugger before a line, when a thread is there for the last time."""
        scheduler = self.scheduler
        number = None if stop.thread is None else stop.thread.index  # None: any thread
        visits: list[int] = []
        stopping: list[int] = []

        def asked() -> bool:
            """Whether this visit of the line is the one. On the thread that has the turn."""
            me = scheduler.current
            if not scheduler.active or scheduler.aborting or number not in (None, me.index):
                return False
            visits.append(1)
            if len(visits) not in stopping:
                return False
            if not scheduler.quiet:  # what the others do before its next step they do now
                scheduler.step(me)
                scheduler.schedule.pop()
            return True

        rewritten = self._code_patcher is not None
        functions = [] if where is None or scheduler.tracer is not None else self._functions
        with code_patcher.stopping_before(functions, where or ("", 0), asked, rewritten=rewritten):
            self._followed(program, schedule)
            if visits:
                stopping.append(len(visits))
                visits.clear()
                return self._followed(program, schedule)
        scheduler.step_log = AtTheLast(len(schedule))
        try:
            return self._followed(program, schedule)
        finally:
            scheduler.step_log = None

    def _followed(self, program: Scenario[Any], schedule: Sequence[int]) -> Stop | None:
        strategy = Replayed(schedule, exactly=False)  # what is called in the debugger may have steps of its own
        strategy.begin(self.scheduler)
        return self.run(program, strategy)

    def resume(self, token: Token) -> None:
        """Restore the points that there were when `token` was made."""
        if token.source != source_hash(self._own_files()):
            raise ExploreError(
                "the source of the scenario, or of the modules it is explored with, is not what it was when this token"
                " was made: explore again"
            )
        self.scheduler.releases = token.releases
        self.watcher.frozen = True
        self.watcher.may_race(token.names, token.of_classes)
        by_name = {_short(file): file for file in self._files}
        for named, learned in ((token.calling, self.watcher.called_back.update), (token.racing, self.watcher.mark)):
            for name, sites in named:
                first = code_patcher.sites_of(by_name[name])[0]
                learned([first + site for site in sites])


@cache
def _package_files() -> frozenset[str]:
    package, found = reactive_runtime.__name__, glob.glob(f"{glob.escape(_PACKAGE)}**/*.py", recursive=True)
    names = {file: f"{package}.{file[len(_PACKAGE) : -len('.py')].replace(os.sep, '.')}" for file in found}
    return frozenset(file for file, name in names.items() if not _is_unwatched(name, package))


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
            if is_unrun(result):
                raise ExploreError(f"it returned {UNRUN}")


def _watched(
    scenario: Sequence[ModuleType], modules: Sequence[str | ModuleType] | str | ModuleType
) -> Iterator[ModuleType]:
    """The modules that the explorer looks into: the scenario's, the package's own, and those in `modules`."""
    seen: set[str] = set()
    package = reactive_runtime.__name__
    named: list[ModuleType] = []
    for entry in [modules] if isinstance(modules, str | ModuleType) else modules:
        if isinstance(entry, ModuleType):
            named.append(entry)
            continue
        found = [module for name, module in sys.modules.items() if name == entry or name.startswith(f"{entry}.")]
        if not found:
            raise ScenarioError(f"no module {entry!r} is imported: import it before it is explored")
        named.extend(found)
    own = [
        module
        for name, module in sys.modules.items()
        if (name == package or name.startswith(f"{package}.")) and not _is_unwatched(name, package)
    ]
    own_scenario = [item for item in scenario if not _is_unwatched(item.__name__, package)]
    for module in [*own_scenario, *named, *own]:
        if module.__name__ not in seen:
            seen.add(module.__name__)
            yield module


def _may_import_flows(item: ModuleType | FunctionType, package: str) -> bool:
    """Whether a module has the package among its names, or a function of a program imports it, or a part of it."""
    if isinstance(item, ModuleType):
        return any(value is reactive_runtime for value in vars(item).values())
    codes = (item.__code__, *code_patcher.codes_in(item.__code__))
    names = {name for code in codes for name in (*code.co_names, *code.co_consts) if isinstance(name, str)}
    imported = (name for name in names if f"{name}.".startswith(f"{package}.") and not _is_unwatched(name, package))
    return not item.__code__.co_filename.startswith(_PACKAGE) and any(imported)


def _is_of_program(name: str) -> bool:
    module = sys.modules.get(name)
    own = f"{name}.".startswith(f"{reactive_runtime.__name__}.")
    return type(module) is ModuleType and not own and next(modules_of([module]), None) is not None


def _home(root: Any) -> Any:
    """The name of the module that a class or a function comes from."""
    return module_of(root) if issubclass(type(root), type) else getattr(root, "__module__", None)


def _is_unwatched(name: str, package: str) -> bool:
    if not name.startswith(f"{package}."):
        return False
    inner = name.removeprefix(f"{package}.")
    return any(inner == part or inner.startswith(f"{part}.") for part in _UNWATCHED)
