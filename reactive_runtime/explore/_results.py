"""What an exploration has found: a result, its verdict, and the failure, if there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from reactive_runtime.errors import ExploreError, MissingDependencyError
from reactive_runtime.explore._checks.observations import NeverObserved, Outcome, table_of
from reactive_runtime.explore._render.schedule_diagram import PAGE, text_of
from reactive_runtime.explore._render.step_log import Step

__all__ = ["BrokenRule", "Failure", "Result", "ScheduleFailed", "Verdict"]


class BrokenRule(AssertionError):  # noqa: N818
    """An invariant of a scenario that is a rule of Reactive Streams; raised by checks of rules.

    Args:
        rule: The number of the rule: "1.3".
        message: What was seen.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class ScheduleFailed(AssertionError):  # noqa: N818
    """What `assert_holds` raises: what failed, the diagram of the schedule, and the token that replays it.

    Args:
        failure: The failure.
    """

    def __init__(self, failure: Failure) -> None:
        shown = f"{failure.traceback}\n\n" if failure.kind == "raised" else ""
        super().__init__(f"{failure.message}\n\n{failure.diagram()}\n\n{shown}replay(scenario, {failure.token!r})")
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an exploration has shown, in one of four words; docs/guarantees.md says what each promises."""

    kind: Literal["failed", "exhausted", "held", "incomplete"]
    """failed: a schedule fails, and failed again 10 of 10 times. exhausted: every schedule was looked at. held: so many
    schedules were. incomplete: not all that they did was controlled."""
    schedules: int = 0
    """So many were run to their end."""
    bound: int | None = None
    """exhausted: every schedule with at most so many preemptions; None: every schedule."""
    coverage: float | None = None
    """held: the estimated chance that a further schedule does what one of these has done already; None: unknown."""
    early_timeouts: int | None = None
    """exhausted and held: in each schedule time passed early so often at most; None: nothing waits for the clock."""

    def __str__(self) -> str:
        early = self.early_timeouts
        if early is None:
            return self._looked_at()
        return f"{self._looked_at()}, with at most {early} early timeout{'s'[early == 1 :]}"

    def _looked_at(self) -> str:
        times = f"{self.schedules:,} schedule{'s'[self.schedules == 1 :]}"
        if self.kind == "held" and self.coverage is not None:
            return f"held ({times}, estimated coverage {math.floor(self.coverage * 1_000) / 10:g}%)"
        if self.kind in ("held", "incomplete"):
            return f"{self.kind} ({times})"
        if self.kind == "exhausted" and self.bound is not None:
            return f"exhausted within {self.bound} preemption{'s'[self.bound == 1 :]}"
        return self.kind


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
    """Which thread does each step: its number, in order of creation; 0 is the main one."""
    preemptions: int
    """How often a thread that could have gone on did not."""
    steps: list[Step]
    program: list[tuple[str, list[int]]]
    """The actors and the calls of theirs that are left after shrinking."""
    token: str
    """Replays this schedule: `replay(scenario, token)`."""
    found_after: int
    """Schedules, this one included, until it was found."""
    minimal: bool
    """Whether it is certain that no schedule with fewer preemptions fails in this way."""
    gil: bool = True
    """Whether it can happen on an interpreter with a GIL; else only where there is none."""
    where: str = ""
    """File and line that raised, where something was raised."""
    breach: tuple[str, int] | None = None
    """The file, with its folder, and the line at which it failed, in code that is looked into."""
    traceback: str = ""
    """The traceback of what was raised, without the explorer's frames."""
    error: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised, where something was."""
    origin: tuple[Any, Any] | None = field(default=None, compare=False, repr=False)
    """The scenario and the further modules; None where the failure comes from another process."""

    def replay(self, *, debug: bool = False) -> Result:
        """Run this schedule again; `replay(scenario, token)` for the same process.

        Args:
            debug: Stop in the debugger, just before the line at which it fails. See `replay`.

        Returns:
            The result of that one schedule.

        Raises:
            ExploreError: The failure comes from another process, or as `replay`.
        """
        if self.origin is None:
            raise ExploreError("this failure comes from another process: replay(scenario, failure.token) runs it")
        from reactive_runtime.explore._exploration import replay

        scenario, modules = self.origin
        return replay(scenario, self.token, modules=modules, debug=debug)

    def diagram(self, *, width: int = PAGE) -> str:
        """The schedule as text: a column for each thread, time downwards.

        Args:
            width: Characters of all columns together, at most; what is wrong is said in a line below.

        Returns:
            The text, of several lines.
        """
        return text_of(self, width)

    def svg(self) -> str:
        """The diagram as a picture.

        Returns:
            An SVG document.

        Raises:
            MissingDependencyError: There is no Jinja2.
        """
        from reactive_runtime.explore._render.picture import svg_of

        return svg_of(self)

    def html(self) -> str:
        """The diagram as a table, for a page.

        Returns:
            A part of an HTML page.

        Raises:
            MissingDependencyError: There is no Jinja2.
        """
        from reactive_runtime.explore._render.picture import html_of

        return html_of(self)

    def __repr__(self) -> str:
        return f"<Failure of {self.scenario}: {self.kind}: {self.message}>"

    def _repr_html_(self) -> str:
        """For a notebook; as text where there is no Jinja2."""
        try:
            return self.html()
        except MissingDependencyError:
            return f"<pre>{escape(self.diagram())}</pre>"

    def __reduce__(self) -> Any:  # between processes: what was raised may not be fit to travel
        return _failure_of, ({**vars(self), "error": None, "origin": None},)


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
    never: list[str] = field(default_factory=list)
    """What `sometimes` and `reachable` ask for and no schedule has shown, a line each."""
    outcomes: list[Outcome] = field(default_factory=list)
    """What the scenario's `outcome` returned, and what it might have, with the number of schedules."""

    not_looked_into: list[str] = field(default_factory=list)
    """Calls of code that is not looked into, with what other threads access meanwhile: each was taken as one step."""
    uncontrolled: str = ""
    """What makes the program do something else when the same schedule is run again: what differed first."""

    @property
    def holds(self) -> bool:
        """Whether no schedule failed, nothing was never seen, and what was run again did the same."""
        return self.failure is None and not self.never and not self.uncontrolled

    def table(self) -> str:
        """The outcomes as text: a line each, with the number of schedules and what was expected.

        Returns:
            The text; one line where the scenario has no `outcome`.
        """
        return table_of(self.outcomes)

    def assert_holds(self) -> Result:
        """Fail where a schedule failed.

        Returns:
            This result.

        Raises:
            ScheduleFailed: A schedule failed; the message shows it.
            NeverObserved: No schedule has shown what `sometimes` or `reachable` asks for.
            ExploreError: The program does not do the same each time: what differed is in `uncontrolled`.
        """
        if self.failure is not None:
            raise ScheduleFailed(self.failure)
        if self.uncontrolled:
            raise ExploreError(str(self))
        if self.never:
            raise NeverObserved(str(self))
        return self

    def __repr__(self) -> str:
        return f"<Result: {self}>"

    def _repr_html_(self) -> str:
        """For a notebook: the verdict, and the failing schedule, if there is one."""
        said = f"<p>{escape(str(self))}</p>"
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return said + notes + ("" if self.failure is None else self.failure._repr_html_())

    def __str__(self) -> str:
        rate = f"{self.schedules} schedules, {self.strategy}, points {self.points}, seed {self.seed}"
        if self.uncontrolled:
            return f"{self.scenario} is {self.verdict}: it {self.uncontrolled} ({rate.partition(', ')[2]})"
        if self.failure is None and self.never:
            return f"{self.scenario} shows too little: {'; '.join(self.never)} ({rate})"
        if self.failure is None:
            but = f"; held, but not looked into: {', '.join(self.not_looked_into)}" if self.not_looked_into else ""
            if self.verdict.kind != "exhausted":  # the others say how many themselves
                rate = rate.partition(", ")[2]
            return f"{self.scenario}: {self.verdict} ({rate}){but}"
        return f"{self.scenario} fails after {self.failure.found_after} ({rate}): {self.failure.message}"
