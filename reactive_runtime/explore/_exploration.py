"""`explore`: run a scenario under many schedules, and say what was found, and how much was looked at.

prepare    stand-ins in place, code exchanged, threads kept ready      (`session`, once)
run        set-up, actors, invariants, under a schedule of a strategy  (`Session.run`, many times)
show       the failing schedule again, with every step written down    (`step_log`)
shrink     fewer calls, fewer preemptions, fewer steps                 (`shrinking`)
"""

from __future__ import annotations

import bdb
import math
import os
import random
import traceback
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Final, Literal, get_args

from reactive_runtime._core.runtime import primitives
from reactive_runtime.explore._checks.observations import Outcome, equal, expectation
from reactive_runtime.explore._checks.scenario import Scenario, scenario_of
from reactive_runtime.explore._render.step_log import Step
from reactive_runtime.explore._results import Failure, Result, Verdict
from reactive_runtime.explore._schedule.determinism import (
    NOT_THE_SAME,
    REPLAYS,
    NotTheSameError,
    Run,
    difference,
    is_checked,
    located,
)
from reactive_runtime.explore._schedule.session import Points, Session
from reactive_runtime.explore._schedule.task import CUT, Stop
from reactive_runtime.explore._schedule.tokens import Token
from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.coverage import Coverage, is_drawn_for
from reactive_runtime.explore._search.dpor import DPOR
from reactive_runtime.explore._search.feedback import Feedback
from reactive_runtime.explore._search.portfolio import Turns
from reactive_runtime.explore._search.shrinking import ENDLESS, shrunk
from reactive_runtime.explore._search.strategies import PCT, POS, SURW, URW, Early, Random, Replayed, Strategy

__all__ = ["explore", "replay"]

_seconds: Final = primitives.monotonic  # the real one, whatever stands in for it meanwhile

_HERE: Final = os.path.dirname(__file__) + os.sep

FOR_EVER: Final = 1e6
"""Seconds."""

_SWEEP: Final = 1_000
"""Runs between which garbage is collected: in a run it is not, since what it sets free could come at any point."""


def explore(
    scenario: Any,
    *,
    schedules: int = 2_000,
    seed: int = 0,
    strategy: str = "portfolio",
    points: Points = "shared",
    modules: Sequence[str | ModuleType] | str | ModuleType = (),
    bound: int | None = None,
    limit: int = 20_000,
    shrink: bool = True,
    hang: float = 10.0,
    engine: Literal["threads", "greenlets"] = "threads",
    job: int | None = None,
    gil: Literal["any", "assumed"] = "any",
    early_timeouts: int = 1,
    pause: float = 1.0,
    seconds: float = math.inf,
) -> Result:
    """Run `scenario` under up to `schedules` schedules, until one fails or none is left.

    The same seed gives the same schedules on the same interpreter.

    Args:
        scenario: A class with `actor_` methods, a `Scenario`, or a function that starts threads.
        schedules: The most schedules that are run, 1 or more.
        seed: Of all random numbers.
        strategy: One of portfolio, random, pct (or pct2, pct3, …), pos, urw, surw, feedback,
            bounded, dpor, brute-force; or some of them joined by +, which take turns: "pos+pct3".
        points: Where threads can change: at primitives and signals ("sync"), also at loads and stores that race
            ("shared"), at lines ("line"), at instructions that touch anything ("opcode"). Loads, stores, lines and
            instructions are those of the scenario's modules, the package's own, and `modules`.
        modules: Further modules whose code is watched, or their names; or one of those.
        bound: The most preemptions that `bounded` goes to. None: all there are.
        limit: The most steps of a schedule.
        shrink: Whether a failing schedule is made small.
        hang: Seconds that a thread may be blocked by something that is not controlled.
        engine: What carries the threads of the program: "threads", or "greenlets", which are faster and know the points
            "sync" and "shared" only.
        job: Distinguishes explorations that run side by side: each is pinned to another core. None: by the number of
            the worker, under pytest-xdist, and else of the process.
        gil: "assumed": threads change between two loads and stores only where an interpreter with a GIL lets another
            one in: at calls, and where a loop goes round. With the points "sync" and "shared" only.
        early_timeouts: How often in a schedule time may pass early, as on a busy machine: a wait with a timeout, a
            sleep or a timer ends while other threads still have work to do, or a thread reads the clock `pause` seconds
            after its last step. Each counts as a preemption. 0: time passes only when no thread can go on.
        pause: Seconds that a thread may be preempted for, at most, above 0: a wait for longer does not end early.
        seconds: No schedule begins so many seconds after the first, above 0.

    Returns:
        The failure, if there is one, and how much was looked at.

    Raises:
        ValueError: `schedules`, `strategy`, `points`, `bound`, `limit`, `hang`, `engine`, `gil`, `early_timeouts`,
            `pause` or `seconds` is out of its range.
        ScenarioError: `scenario` is none, or fails in its set-up.
        ExploreError: The program does what can't be ordered: a thread that is blocked by something not controlled for
            `hang` seconds, a pool from outside, a socket of an event loop, an exploration inside of another, a scenario
            that is not deterministic, greenlets on Python 3.13 without a GIL.
        MissingDependencyError: The engine is "greenlets", and greenlet is not installed.

    Thread:
        Runs on the calling thread and some kept ones, pinned to one core; garbage is not collected meanwhile.

    Example:
        >>> from reactive_runtime.explore import explore
        >>> class LostUpdate:
        ...     def __init__(self): self.count = 0
        ...     def actor_a(self): self.count += 1
        ...     def actor_b(self): self.count += 1
        ...     def at_end(self): assert self.count == 2, f"the count is {self.count}"
        >>> explore(LostUpdate, seed=7).failure.message
        'the count is 1'

    Origin:
        The strategies PCT of Burckhardt and others (2010), and POS of Yuan and others (2018).
    """
    program = scenario_of(scenario)
    _check_numbers(schedules, bound, limit, hang, early_timeouts, pause)
    if not seconds > 0:
        raise ValueError(f"explore: seconds must be more than 0, not {seconds}")
    _check_words(points, engine, gil)
    turns = _turns(strategy, seed, bound)
    with Session(
        program,
        points,
        modules,
        limit=limit,
        hang=hang,
        engine=engine,
        job=job,
        gil=gil,
        early=early_timeouts,
        pause=pause,
    ) as session:
        return _Search(session, program, turns, strategy, seed, shrink).result(schedules, seconds)


def _check_numbers(
    schedules: int, bound: int | None, limit: int, hang: float, early_timeouts: int, pause: float
) -> None:
    if schedules < 1:
        raise ValueError(f"explore: schedules must be at least 1, not {schedules}")
    if bound is not None and bound < 0:
        raise ValueError(f"explore: bound must be at least 0, or None, not {bound}")
    if limit < 1:
        raise ValueError(f"explore: limit must be at least 1, not {limit}")
    if not hang > 0:
        raise ValueError(f"explore: hang must be more than 0, not {hang}")
    if early_timeouts < 0:
        raise ValueError(f"explore: early_timeouts must be at least 0, not {early_timeouts}")
    if not 0 < pause < math.inf:
        raise ValueError(f"explore: pause must be above 0, and finite, not {pause}")


def _check_words(points: str, engine: str, gil: str) -> None:
    if points not in get_args(Points):
        raise ValueError(f"explore: points must be one of {', '.join(get_args(Points))}, not {points!r}")
    if engine not in ("threads", "greenlets"):
        raise ValueError(f"explore: engine must be threads or greenlets, not {engine!r}")
    if engine == "greenlets" and points not in ("sync", "shared"):
        raise ValueError("explore: greenlets go with points at sync or shared; lines and instructions need threads")
    if gil not in ("any", "assumed"):
        raise ValueError(f"explore: gil must be any or assumed, not {gil!r}")
    if gil == "assumed" and points not in ("sync", "shared"):
        raise ValueError("explore: a GIL is assumed at the points sync and shared; instructions switch anywhere")


def replay(
    scenario: Any,
    token: str,
    *,
    modules: Sequence[str | ModuleType] | str | ModuleType = (),
    hang: float = 10.0,
    debug: bool = False,
) -> Result:
    """Run the one schedule that `token` stands for.

    Args:
        scenario: The scenario that failed.
        token: The token of its failure.
        modules: Further modules whose code is watched, as they were for `explore`.
        hang: Seconds that a thread may be blocked by something that is not controlled.
        debug: Where the schedule fails, run it once more, and call `breakpoint()` just before the line at which it
            fails, in its frame, on its thread: pdb, what PYTHONBREAKPOINT names, or an editor's debugger stops there.
            The other threads stand where they stood then.

    Returns:
        The result of that one schedule; it has no failure where the scenario holds now.

    Raises:
        ScenarioError: `scenario` is none, or fails in its set-up.
        ExploreError: The schedule can't be replayed, from the step that is named: the source has changed, the
            interpreter is another, or the scenario does not do the same each time.
        BdbQuit: The debugger has quit.
    """
    item = Token.parse(token)
    whole = scenario_of(scenario)
    item.check(whole)
    calls = [(name, list(numbers)) for name, numbers in item.program]
    program = whole.reduced(calls)
    points: Any = item.points
    patience = FOR_EVER if debug else hang
    with Session(
        whole, points, modules, limit=item.limit, hang=patience, early=item.early, pause=item.pause
    ) as session:
        session.resume(item)
        began = _seconds()
        steps, stop = session.show(program, item.schedule, item)
        seconds = _seconds() - began
        failure = (
            None
            if stop is None
            else _failure(session, program, calls, stop, steps, item.strategy, item.seed, item.index, False)
        )
        if stop is not None and failure is not None and debug:
            ended = session.stop_before(program, item.schedule, stop, failure.breach)
            if ended is not None and isinstance(ended.error, bdb.BdbQuit):
                raise ended.error
        return Result(
            program.name,
            Verdict("held" if failure is None else "failed", 1),
            1,
            seconds,
            "replay",
            item.points,
            item.seed,
            failure,
            session.notes,
            outcomes=[
                Outcome(value, expectation(program.outcomes, value), times)
                for value, times, _ in session.observations.outcomes
            ],
        )


# -- the search -----------------------------------------------------------------------------------------------


PORTFOLIO: Final = "pos+bounded+pct3+bounded+urw+bounded+pct2+bounded+random+bounded"
"""Those that take turns where none is asked for; `python benchmarks/strategies.py` says how soon which find what."""

FURTHER: Final = "surw"
"""Joins the others as soon as the portfolio learns."""


def _turns(name: str, seed: int, bound: int | None) -> Turns:
    """The turns of the strategies of this name."""
    if name != "portfolio":
        return Turns(_strategies(name, seed, bound), learns=False)
    turns = _strategies(f"{PORTFOLIO}+{FURTHER}", seed, bound)
    return Turns(turns[:-1], turns[-1:], learns=True)


def _strategies(name: str, seed: int, bound: int | None) -> list[Strategy]:
    """The strategies that the parts of the name stand for."""
    rng = random.Random(seed)
    simple: dict[str, Any] = {
        "random": Random,
        "pct": PCT,
        "pos": POS,
        "urw": URW,
        "surw": SURW,
        "feedback": Feedback,
        "bounded": lambda _: Bounded(bound),
        "dpor": lambda _: DPOR(),
        "brute-force": lambda _: Bounded(bound, reduced=False),
    }
    found: dict[str, Strategy] = {}
    turns = name.split("+")
    for part in turns:
        if part in found:
            continue  # it has a further turn
        if part in simple:
            one = simple[part](rng)
        elif part.startswith("pct") and part[3:].isdigit() and int(part[3:]) >= 1:
            one = PCT(rng, int(part[3:]))
        else:
            known = f"one of portfolio, {', '.join(simple)} or pct<depth>, or some of them joined by +"
            raise ValueError(f"explore: strategy must be {known}, not {name!r}")
        found[part] = one if isinstance(one, Bounded | DPOR) else Early(one, random.Random(f"{seed} {part}"))
    if bound is not None and any(isinstance(item, DPOR) for item in found.values()):
        raise ValueError("explore: dpor has no bound; bounded has one, and leaves out equivalent schedules as well")
    if sum(isinstance(item, Bounded | DPOR) for item in found.values()) > 1:
        raise ValueError(f"explore: strategy may have one search to its end (bounded, dpor, brute-force), not {name!r}")
    return [found[part] for part in turns]


class _Search:
    """One exploration, as it goes on. The thread that explores owns it."""

    __slots__ = (
        "_complete", "_count", "_coverage", "_drawn", "_failure", "_name", "_program", "_seed", "_session", "_shrink",
        "_systematic", "_turns", "_uncontrolled",
    )  # fmt: skip

    def __init__(
        self, session: Session, program: Scenario[Any], turns: Turns, name: str, seed: int, shrink: bool
    ) -> None:
        self._session = session
        self._program = program
        self._turns = turns
        self._name = name
        self._seed = seed
        self._shrink = shrink
        self._systematic = turns.systematic
        self._coverage = Coverage()
        self._count = 0  # runs,
        self._complete = 0  # those of them that came to their end,
        self._drawn = 0  # and of those such as no systematic search chose
        self._failure: Failure | None = None
        self._uncontrolled = ""

    def result(self, schedules: int, most: float) -> Result:
        """Run up to so many schedules, until one fails, none is left, or the time is over."""
        began = _seconds()
        until = began + most
        while self._complete < schedules and self._count < 4 * schedules:
            if not self._goes_on(self._turns.next(schedules - self._complete)) or _seconds() > until:
                break
        seconds = _seconds() - began
        session, program, failure = self._session, self._program, self._failure
        if failure is None and session.scheduler.escaped:
            thread = session.scheduler.escaped[0]
            self._uncontrolled = f"shares what it accesses with a thread that is not controlled: {thread}"
        unseen = [*session.watcher.not_looked_into(), *session.imported()]
        verdict = self._verdict(unseen)
        never = []
        if failure is None and not self._uncontrolled:
            all_of_them = verdict.kind == "exhausted" and verdict.bound is None
            never = session.observations.never(self._complete, all_of_them=all_of_them)
        outcomes = list(_outcomes(session, program, self._name, self._seed))
        return Result(
            program.name,
            verdict,
            self._complete,
            seconds,
            self._name,
            session.points,
            self._seed,
            failure,
            session.notes,
            never,
            outcomes,
            unseen,
            self._uncontrolled,
        )

    def _goes_on(self, strategy: Strategy) -> bool:
        """Run a schedule. False: it was the last, or there is none left."""
        session, program = self._session, self._program
        systematic = strategy is self._systematic
        sampled = not systematic and is_drawn_for(self._drawn)
        session.tracks(sampled or systematic, every_step=systematic)
        if not strategy.begin(session.scheduler):
            return False  # the search has seen all there is
        ran = session.recorded(program, strategy) if is_checked(self._complete + 1) else None
        stop = session.run(program, strategy) if ran is None else ran.stop
        strategy.end(session.scheduler)
        self._count += 1
        if self._count % _SWEEP == 0:
            session.scheduler.collect()
        if stop is not None and stop.kind == CUT:
            return True
        self._complete += 1
        self._drawn += not systematic
        if sampled:
            fresh = self._coverage.add(session.fingerprint(program), session.scheduler.version)
            self._turns.saw(strategy, fresh=fresh)
        if stop is not None:
            self._fails(stop, strategy)
            return False
        if ran is not None:
            self._uncontrolled = _checked(session, program, ran, self._complete)
        return not self._uncontrolled

    def _fails(self, stop: Stop, strategy: Strategy) -> None:
        """The schedule that was run fails: run it again, and make it small."""
        session = self._session
        observed = list(session.observations.outcomes)  # what is made small is no schedule of the search
        try:
            self._failure = _found(session, self._program, stop, strategy, self._seed, self._complete, self._shrink)
        except NotTheSameError as error:
            self._uncontrolled = error.what
        session.observations.outcomes = observed

    def _verdict(self, unseen: list[str]) -> Verdict:
        systematic, complete, scheduler = self._systematic, self._complete, self._session.scheduler
        early = scheduler.early if scheduler.timed else None
        if self._failure is not None:
            return Verdict("failed", complete)
        if self._uncontrolled or unseen:
            return Verdict("incomplete", complete)
        if systematic is not None and systematic.exhausted:
            return Verdict("exhausted", complete, early_timeouts=early)
        if systematic is not None and systematic.complete is not None and self._turns.alone:
            return Verdict("exhausted", complete, systematic.complete, early_timeouts=early)
        return Verdict("held", complete, coverage=self._coverage.estimate(), early_timeouts=early)


def _checked(session: Session, program: Scenario[Any], ran: Run, number: int) -> str:
    """Run a schedule that held once more; what is to be said where it does something else, time and again."""
    schedule = list(session.scheduler.schedule)
    again = session.again(program, schedule)
    if ran.same_as(again):
        return ""
    found = located(session, program, schedule)
    if found is not None:
        return f"{NOT_THE_SAME}: {found}"
    differs = difference(ran, again)
    session.notes.append(
        f"schedule {number} did something else when it was run again, and the same from then on: {differs}; state"
        " outlives a run (a cache?), and is explored as it was left"
    )
    return ""


def _outcomes(session: Session, program: Scenario[Any], strategy: str, seed: int) -> Iterator[Outcome]:
    """The rows of the table of outcomes: those seen, most often first, then those that were not."""
    seen = sorted(session.observations.outcomes, key=lambda item: -item[1])
    session.watcher.frozen = True  # what a schedule says holds for the points there are
    for value, times, schedule in seen:
        kind = expectation(program.outcomes, value)
        token = _token_of(session, program, value, schedule, strategy, seed) if kind == "interesting" else None
        yield Outcome(value, kind, times, token)
    for value, kind in (program.outcomes or {}).items():
        if not any(equal(value, other) for other, _, _ in seen):
            yield Outcome(value, kind, 0)


def _token_of(
    session: Session, program: Scenario[Any], outcome: Any, schedule: list[int], strategy: str, seed: int
) -> str | None:
    """Replays a schedule that has this outcome. None: since it was seen more has become a point, and it is another."""
    again = Replayed(schedule, exactly=False)
    session.tracks(False)
    again.begin(session.scheduler)
    if session.run(program, again) is not None or not equal(session.observations.last, outcome):
        return None
    schedule = list(session.scheduler.schedule)
    try:
        steps, _ = session.show(program, schedule)
    except NotTheSameError:  # the verdict says so
        return None
    return session.token(program, program.program, schedule, steps, strategy, seed, 0)


def _found(
    session: Session, program: Scenario[Any], stop: Stop, strategy: Strategy, seed: int, index: int, shrink: bool
) -> Failure:
    schedule = list(session.scheduler.schedule)
    session.watcher.frozen = True  # what the schedule says holds for the points there are
    _fails_again(session, program, stop, schedule, 1)
    minimal = False
    calls = program.program
    if shrink:
        calls, schedule, minimal = shrunk(session, program, stop, schedule)
    reduced = program.reduced(calls)
    steps, again = session.show(reduced, schedule)
    if again is None or (again.kind != stop.kind and again.kind != "livelock"):
        raise _not_the_same(session, reduced, schedule, stop, again)
    failure = _failure(session, reduced, calls, again, steps, strategy.name, seed, index, minimal)
    _fails_again(session, reduced, again, schedule, REPLAYS)
    return failure


def _fails_again(session: Session, program: Scenario[Any], stop: Stop, schedule: list[int], times: int) -> None:
    """NotTheSameError where a schedule that failed does not fail again, so many times, with the same steps."""
    first: Run | None = None
    for _ in range(times):
        run = session.again(program, schedule)
        first = first or run
        alike = run.stop is not None and (run.stop.kind == stop.kind or {run.stop.kind, stop.kind} <= ENDLESS)
        if not alike or len(run.steps) != len(schedule) or not run.same_as(first):
            raise _not_the_same(session, program, schedule, stop, run.stop)


def _not_the_same(
    session: Session, program: Scenario[Any], schedule: list[int], stop: Stop, again: Stop | None
) -> NotTheSameError:
    where = stop.what if stop.kind == "diverged" else None
    where = located(session, program, schedule) or where
    if where is None:
        was = "nothing failed" if again is None else again.what
        where = f"a schedule failed ({stop.kind}: {stop.what}), and the next time {was}"
    return NotTheSameError(program.name, where)


def _frames(stack: traceback.StackSummary) -> list[traceback.FrameSummary]:
    """Those of the program."""
    return [frame for frame in stack if not frame.filename.startswith(_HERE)]


def _where(error: BaseException | None) -> str:
    """The line that raised, as `file:line`."""
    frames = [] if error is None else _frames(traceback.extract_tb(error.__traceback__))
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def _traceback(error: BaseException | None) -> str:
    """As the interpreter prints it, without the explorer's own frames."""
    if error is None:
        return ""
    told = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = told
    while part is not None:
        part.stack = traceback.StackSummary.from_list(_frames(part.stack))
        part = part.__cause__ or part.__context__
    return "".join(told.format()).rstrip()


def _failure(
    session: Session,
    program: Scenario[Any],
    calls: list[tuple[str, list[int]]],
    stop: Stop,
    steps: list[Step],
    strategy: str,
    seed: int,
    index: int,
    minimal: bool,
) -> Failure:
    scheduler = session.scheduler
    schedule = list(scheduler.schedule)
    token = session.token(program, calls, schedule, steps, strategy, seed, index)
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
        gil=session.under_a_gil(steps),
        where=_where(stop.error),
        breach=session.breach(stop, steps),
        traceback=_traceback(stop.error),
        error=stop.error,
        origin=session.origin,
    )
