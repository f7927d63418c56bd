"""A schedule that is chosen step by step: the scheduler is a person, or a test, that sees what each thread does next.

A position is what a list of moves has come to. It is found by running the program from its beginning, and stopping at
the first choice that no move answers; so to undo a move is to leave it out.

    choose(2)      run the moves, then a step of thread 2; stop at the next choice
    undo()         run the moves without the last one
    explorer's     the schedule that the explorer found, as moves

What no other thread can see takes no move: the set-up, and what a thread does before its first step.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Final, Literal, NoReturn

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._checks.scenario import Scenario, scenario_of
from reactive_runtime.explore._exploration import explore
from reactive_runtime.explore._render.schedule_diagram import seen_in
from reactive_runtime.explore._render.step_log import Step
from reactive_runtime.explore._results import Result
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.session import Session
from reactive_runtime.explore._schedule.task import READY, Stop, Task
from reactive_runtime.explore._schedule.tokens import Token
from reactive_runtime.explore._search.shrinking import ENDLESS
from reactive_runtime.explore._search.strategies import Random, Replayed

__all__ = ["Asked", "Node", "Play", "Position", "Standing", "next_text", "step_text"]

PAUSED: Final = "paused"
"""The kind of a `Stop`: no move says what comes next."""

MOST: Final = 400
"""Moves of the explorer's schedule that are shown; a livelock has no end."""

_LEARNING: Final = 40
"""Random schedules by which it is known what is worth showing, where the explorer finds nothing."""

State = Literal["ready", "waits", "rests", "ended"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a thread stands."""

    thread: int
    name: str
    state: State
    """Whether it can be chosen: it is ready, it waits, it gives way to the others, or it has ended."""
    line: int = 0
    """The line of its next step; 0 where there is none."""
    source: str = ""
    what: str = ""
    """The operation: `acquire`, `load self.count`, a signal."""
    filename: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """What the moves so far have come to."""

    moves: tuple[int, ...]
    """The threads that were chosen."""
    steps: tuple[Step, ...]
    """What they did, with what they saw or changed."""
    threads: tuple[Standing, ...]
    outcome: Literal["open", "failed", "held"]
    """open: the program goes on. failed: the schedule shows what is wrong. held: it came to its end, and all holds."""
    message: str = ""
    """What failed."""

    key: int = field(default=0, compare=False, repr=False)
    """The same in two positions in which each step came after the same others; 0: it is not known."""

    @property
    def columns(self) -> dict[int, str]:
        """The names of all threads that there are or were, by number."""
        names = {item.thread: item.name for item in self.threads} | {item.thread: item.name for item in self.steps}
        return {thread: names[thread] for thread in sorted(names)}

    @property
    def choices(self) -> tuple[int, ...]:
        """The threads that can be chosen."""
        return tuple(item.thread for item in self.threads if item.state == "ready" and self.outcome == "open")


@dataclass(frozen=True, slots=True)
class Node:
    """A position, and where each choice leads."""

    position: Position
    choices: dict[int, tuple[tuple[Step, ...], int]]
    """By thread: the steps that it does then, and the number of the position that this comes to."""


class Asked:
    """The strategy that follows moves, and stops where there is none left."""

    name = "asked"

    def __init__(self, moves: Sequence[int]) -> None:
        self._moves = moves
        self._scheduler: Scheduler
        self.threads: tuple[Standing, ...] = ()
        """Where they stand at the stop."""
        self.key: int = 0
        """Of the position at the stop."""
        self.wrong: str = ""
        """The first move that could not be made."""
        self._next = 0
        self._answered = (-1, -1)  # the place in the schedule that was asked about last, and the thread that it was

    def begin(self, scheduler: Scheduler) -> bool:
        """Follow the moves from their beginning."""
        self._scheduler = scheduler
        self._next = 0
        self._answered = (-1, -1)
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """The thread of the next move. What no other thread can see is done without one."""
        scheduler = self._scheduler
        if (unasked := _unasked(ready, me, scheduler)) is not None:
            return unasked
        at = len(scheduler.schedule)
        if self._answered[0] == at:  # its turn was over before its step: the fair choice is asked for once more
            for task in ready:
                if task.index == self._answered[1]:
                    return task
        wanted = self._moves[self._next] if self._next < len(self._moves) else None
        for task in ready:
            if task.index == wanted:
                self._next += 1
                self._answered = (at, wanted)
                return task
        if wanted is not None:
            self.wrong = f"move {self._next + 1}: thread {wanted} can't go on"
        return self._stop(ready, me)

    def _stop(self, ready: list[Task], me: Task) -> NoReturn:
        scheduler = self._scheduler
        standing = {step.thread: step for step in scheduler.step_log.about_to(ready)}
        able = {task.index for task in ready}
        of_a_loop = me.index not in able and me.state == READY  # it asks for one of its tasks
        threads = [task for task in scheduler.threads[1:] if not (of_a_loop and task is me)]
        found = []
        for task in [*threads, *(task for task in ready if task not in threads)]:
            state: State = "ready" if task.index in able else "ended" if task.ended else "rests"
            item = Standing(task.index, task.name, state)
            if (step := standing.get(task.index)) is not None:
                state = "waits" if step.waits else state
                item = Standing(task.index, task.name, state, step.line, step.source, step.what, step.filename)
            found.append(item)
        self.threads = tuple(found)
        if scheduler.tracking:
            self.key = hash(tuple((task.chain, task.below, task.briefly) for task in scheduler.threads))
        scheduler.abort(Stop(PAUSED, ""))

    def end(self, scheduler: Scheduler) -> None:
        """Nothing is left to do."""


class Play:
    """A scenario, the moves so far, and what the explorer has found.

    Args:
        scenario: As `explore` takes it.
        modules: As `explore` takes them.
        schedules: So many the explorer looks at, at most.
        seed: The explorer's.
        limit: The most steps of a schedule.

    Raises:
        ScenarioError: As `explore`.
        ExploreError: As `explore`; or the program does not do the same each time.
    """

    def __init__(
        self,
        scenario: Any,
        *,
        modules: Sequence[str | ModuleType] | str | ModuleType = (),
        schedules: int = 2_000,
        seed: int = 0,
        limit: int = 20_000,
    ) -> None:
        whole = scenario_of(scenario)
        self._whole = whole
        self._modules = modules
        self._limit = limit
        self.result: Result = explore(
            whole, modules=modules, schedules=schedules, seed=seed, limit=limit, early_timeouts=0
        )
        """What the explorer has found."""
        if self.result.uncontrolled:
            raise ExploreError(str(self.result))
        failure = self.result.failure
        self.explorers: tuple[int, ...] = ()
        """The moves of the explorer's schedule; none where it has found nothing."""
        self.program: Scenario[Any] = whole if failure is None else whole.reduced(failure.program)
        """What is played: the calls that the failure needs, or all."""
        self._sites: frozenset[int] = frozenset()
        with self._session() as session:
            if failure is None:
                self._token = self._learnt(session)
            else:
                self._token = Token.parse(failure.token)
                session.resume(self._token)
                self.explorers = self._moves_of(session, failure.schedule)
            self._sites = self._worth_showing(session)
        self._moves: tuple[int, ...] = ()
        self._seen: dict[tuple[int, ...], Position] = {}
        if failure is not None and failure.kind in ENDLESS:  # a livelock is seen long before the explorer gives up
            ends = range(0, len(self.explorers), len(self.explorers) // 20 + 1)
            shorter = (self.explorers[:end] for end in ends)
            self.explorers = next((moves for moves in shorter if self.at(moves).outcome == "failed"), self.explorers)

    def _session(self) -> Session:
        return Session(self._whole, "shared", self._modules, limit=self._limit, hang=10.0)

    def _learnt(self, session: Session) -> Token:
        """What races in some random schedules: no failure says what is a point."""
        for number in range(_LEARNING):
            session.tracks(False)
            session.logged(self.program, Random(random.Random(number)))
        text = session.token(self.program, self.program.program, [], [], "asked", 0, 0)
        token = Token.parse(text)
        session.resume(token)
        return token

    def _moves_of(self, session: Session, schedule: Sequence[int]) -> tuple[int, ...]:
        noted = _Noted(schedule)
        session.tracks(False)
        session.scheduler.few = 0
        session.logged(self.program, noted)
        return tuple(noted.moves[:MOST])

    def _worth_showing(self, session: Session) -> frozenset[int]:
        """Accesses that are no points, of what several threads touch."""
        sites: set[int] = set()
        for number in range(_LEARNING // 4):
            session.tracks(False)
            step_log, _ = session.logged(self.program, Random(random.Random(number)))
            step_log.finish()
            sites.update(step.site for step in step_log.steps if not step.point)
        return frozenset(sites)

    # -- moves -------------------------------------------------------------------------------------------------

    @property
    def position(self) -> Position:
        """What the moves so far have come to."""
        return self.at(self._moves)

    def choose(self, thread: int) -> Position:
        """Let a thread do its next step.

        Args:
            thread: Its number: one of the position's choices.

        Returns:
            The next position.

        Raises:
            ValueError: The thread can't go on, or the program has ended.
        """
        here = self.position
        if thread not in here.choices:
            able = ", ".join(f"{item.thread} ({item.name})" for item in here.threads if item.state == "ready")
            raise ValueError(f"thread {thread} can't be chosen here: only {able if here.choices else 'none'} can")
        self._moves = (*self._moves, thread)
        return self.position

    def undo(self) -> Position:
        """Take the last move back; at the beginning nothing changes.

        Returns:
            The position before it.
        """
        self._moves = self._moves[:-1]
        return self.position

    def restart(self) -> Position:
        """Take all moves back.

        Returns:
            The position at the beginning.
        """
        self._moves = ()
        return self.position

    def at(self, moves: Sequence[int]) -> Position:
        """What some moves come to.

        Args:
            moves: The threads that are chosen, by number.

        Returns:
            The position.

        Raises:
            ValueError: A move can't be made.
        """
        moves = tuple(moves)
        if moves not in self._seen:
            with self._session() as session:
                session.resume(self._token)
                self._seen[moves] = self._come_to(session, moves)
        return self._seen[moves]

    def _is_shown(self, step: Step) -> bool:
        named = step.line or "(" in step.what or " " in step.what
        return bool(step.thread and named) and (step.point or step.waits or step.site in self._sites)

    def _come_to(self, session: Session, moves: tuple[int, ...], *, keyed: bool = False) -> Position:
        strategy = Asked(moves)
        session.tracks(keyed)
        session.scheduler.few = 0  # it is asked at each step
        step_log, stop = session.logged(self.program, strategy)
        if strategy.wrong:
            raise ValueError(f"{self.program.name}: {strategy.wrong}")
        shown = tuple(step for step in step_log.steps if self._is_shown(step))
        if stop is not None and stop.kind == PAUSED:
            period = step_log.period()
            if period is None:
                return Position(moves, shown, strategy.threads, "open", key=strategy.key)
            threads = tuple(replace(item, state="rests") for item in strategy.threads)
            return Position(moves, shown, threads, "failed", f"livelock: {period}")
        waiting = {step.thread for step in shown if step.waits}
        threads = tuple(
            Standing(task.index, task.name, "waits" if task.index in waiting else "ended")
            for task in session.scheduler.threads[1:]
        )
        if stop is None:
            return Position(moves, shown, threads, "held")
        return Position(moves, shown, threads, "failed", f"{stop.kind}: {stop.what}")

    def whole(self, most: int) -> list[Node] | None:
        """Every position that there is, each once: of those that only the order of independent steps makes two, one.

        Args:
            most: How many there may be.

        Returns:
            The positions, the first one first, and where each choice leads; None where there are more.

        Raises:
            ExploreError: As `explore`.
        """
        nodes: list[Node] = []
        numbers: dict[int, int] = {}
        with self._session() as session:
            session.resume(self._token)
            left: list[tuple[Node | None, tuple[int, ...]]] = [(None, ())]
            while left:
                before, moves = left.pop()
                here = self._come_to(session, moves, keyed=True)
                number = numbers.get(here.key) if here.outcome == "open" else None
                if number is None:
                    if len(nodes) == most:
                        return None
                    number = len(nodes)
                    nodes.append(Node(here, {}))
                    numbers[here.key] = number
                    left.extend((nodes[-1], (*moves, thread)) for thread in reversed(here.choices))
                if before is not None:
                    before.choices[moves[-1]] = (here.steps[len(before.position.steps) :], number)
        return nodes


class _Noted(Replayed):
    """Follows a schedule, and notes what of it is a move."""

    def __init__(self, schedule: Sequence[int]) -> None:
        super().__init__(schedule)
        self.moves: list[int] = []

    def choose(self, ready: list[Task], me: Task) -> Task:
        """The thread that the schedule says."""
        chosen = super().choose(ready, me)
        unasked = _unasked(ready, me, self._scheduler)
        if chosen.started and (unasked is None or not unasked.started):  # where one begins a move may come first
            self.moves.append(chosen.index)
        return chosen


def _unasked(ready: list[Task], me: Task, scheduler: Scheduler) -> Task | None:
    """The thread that goes on without a move: what it does next no other thread can see."""
    main = scheduler.main
    if main in ready and (me is main or len(ready) == 1):
        return main
    for task in ready:
        if not task.started:
            return task
    return me if ready == [me] and me.what == "next callback" else None


def step_text(step: Step) -> str:
    """A step that was done, as a line: where, and what it saw or changed."""
    number = f"{step.line:>4} " if step.line else ""
    seen = "waits" if step.waits else seen_in(step)
    return f"{number}{step.source or step.what}{f'   # {seen}' if seen else ''}"


def next_text(standing: Standing) -> str:
    """What a thread does next, as a line, or why it does nothing."""
    what = "" if standing.what == "acquire" else f"   ({standing.what})"  # may be the lock inside of an atomic
    line = f"{standing.line} {standing.source}{what}" if standing.line else standing.what
    if standing.state == "ended":
        return "has ended"
    return {"ready": line, "waits": f"waits at {line}", "rests": f"gives way at {line}"}[standing.state]
