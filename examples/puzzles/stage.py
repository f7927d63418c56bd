"""A puzzle is a class to be written; a run of it is a cast of threads, a log of their acts, and a check of the log.

The class gets its acts as functions. An act "eats" notes `eats`; an act "~eats" takes time, and notes `+eats` when it
begins and `-eats` when it ends. Each act has to be done once, unless its name ends with "?".
"""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from reactive_runtime.explore import Result, Scenario, explore

__all__ = [
    "Act",
    "Call",
    "Check",
    "Log",
    "Puzzle",
    "Run",
    "Stage",
    "apart",
    "at_most",
    "before",
    "call",
    "everything",
    "fine",
    "in_groups",
    "in_order",
    "inside",
    "never_more",
    "overtaken",
    "reads",
    "side_by_side",
    "sooner",
    "source_of",
    "together",
]

Act = Callable[[], object]
"""A method of a puzzle gets it, and has to call it."""

Log = list[str]
Check = Callable[[Log], None]
"""Raises AssertionError where the log shows what must not be."""


@dataclass(frozen=True)
class Call:
    """A call of a method of the handed-in class, by one thread."""

    method: str
    arguments: tuple[Any, ...]
    """A string stands for an act of this name; anything else is passed as it is."""
    at: float = 0.0
    """The second at which the thread calls. Time passes when no thread can go on."""
    stays: float = 0.0
    """The seconds that an act with "~" takes."""
    before: str = ""
    """Noted before the call."""
    after: str = ""
    """Noted when it has returned."""
    gets: bool = False
    """Whether the result is noted."""


def call(method: str, *arguments: Any, **options: Any) -> Call:
    """A `Call`, with the arguments of the method in a row."""
    return Call(method, arguments, **options)


@dataclass(frozen=True)
class Run:
    """A cast, and what has to hold of every order of its steps."""

    cast: dict[str, list[Call]]
    """Threads by name, with the calls that each does in order."""
    check: Check
    made: tuple[Any, ...] = ()
    """The arguments of the class."""

    def scenario(self, program: type[Any]) -> Scenario[Stage]:
        """This run with a class that was handed in."""

        def actor(name: str) -> Callable[[Stage], None]:
            return lambda stage: stage.play(name)

        return Scenario(
            lambda: Stage(program, self),
            {name: [actor(name)] for name in self.cast},
            Stage.at_end,
            name=program.__name__,
            parts=[program],
        )

    @property
    def timed(self) -> bool:
        """Whether threads come at given seconds: then none may come early."""
        return any(item.at or item.stays for calls in self.cast.values() for item in calls)


class Stage:
    """One schedule of a run."""

    def __init__(self, program: type[Any], run: Run) -> None:
        self.run = run
        self.log: Log = []
        self.promised: list[str] = []
        self.scripts = {name: [(item, self._arguments(item)) for item in calls] for name, calls in run.cast.items()}
        self.made = program(*run.made)

    def play(self, name: str) -> None:
        """Do what the thread of that name has to."""
        now = 0.0
        for item, arguments in self.scripts[name]:
            if item.at > now:
                time.sleep(item.at - now)
                now = item.at
            if item.before:
                self.log.append(item.before)
            result = getattr(self.made, item.method)(*arguments)
            if item.gets:
                self.log.append(f"{name} got {result}")
            if item.after:
                self.log.append(item.after)

    def _arguments(self, item: Call) -> list[Any]:
        return [self._act(text, item.stays) if isinstance(text, str) else text for text in item.arguments]

    def _act(self, text: str, stays: float) -> Callable[[], None]:
        name = text.strip("~?")
        if not text.endswith("?"):
            self.promised.append(name)
        if not text.startswith("~"):
            return lambda: self.log.append(name)

        def lasting() -> None:
            self.log.append(f"+{name}")
            if stays:
                time.sleep(stays)
            self.log.append(f"-{name}")

        return lasting

    def at_end(self) -> None:
        """Each act was done once, and the log is as the run has it."""
        done = Counter(note.lstrip("+") for note in self.log if not note.startswith("-"))
        for name, times in Counter(self.promised).items():
            assert done[name] == times, f"{name!r} was to be done {times} times, and was done {done[name]} times"
        self.run.check(self.log)


@dataclass(frozen=True)
class Puzzle:
    """A class to be written, or mended, and the runs that mark what is handed in."""

    name: str
    title: str
    source: str
    """Its names in the book or the game that it comes from."""
    task: str
    hint: str
    given: type[Any]
    """The class as students get it. It fails."""
    runs: tuple[Run, ...] = field(default=())
    lesson: str = ""
    """The lesson of the course that it belongs to."""

    def marked(self, program: type[Any], *, schedules: int = 500, seed: int = 0, shrink: bool = True) -> list[Result]:
        """Explore each run with the class, up to the first that fails."""
        results: list[Result] = []
        for run in self.runs:
            early = 0 if run.timed else 1
            results.append(
                explore(run.scenario(program), schedules=schedules, seed=seed, shrink=shrink, early_timeouts=early)
            )
            if not results[-1].holds:
                break
        return results

    def skeleton(self) -> str:
        """The text of the class that students get."""
        return source_of(self.given)


def source_of(program: type[Any]) -> str:
    """The text of a class, after the classes of the same file that it is made of."""
    made_of = [item for item in reversed(program.__mro__) if item.__module__ == program.__module__]
    return "\n\n".join(inspect.getsource(item) for item in made_of)


# -- checks --------------------------------------------------------------------------------------------------


def everything(*checks: Check) -> Check:
    """All of these."""

    def check(log: Log) -> None:
        for item in checks:
            item(log)

    return check


def fine(log: Log) -> None:
    """No more than that each act was done."""


def inside(log: Log) -> Iterator[Counter[str]]:
    """How many of each kind are inside after each note: "+reads 1" begins one of the kind "reads"."""
    now: Counter[str] = Counter()
    for note in log:
        if note[0] in "+-":
            now[note[1:].split()[0]] += 1 if note[0] == "+" else -1
            yield now


def apart(kind: str, other: str) -> Check:
    """Acts of these two kinds are never under way at the same time."""

    def check(log: Log) -> None:
        for now in inside(log):
            assert not (now[kind] and now[other]), f"{kind!r} and {other!r} at the same time: {_of(log)}"

    return check


def at_most(count: int, kind: str) -> Check:
    """No more acts of this kind are under way at the same time."""

    def check(log: Log) -> None:
        most = max((now[kind] for now in inside(log)), default=0)
        assert most <= count, f"{most} did {kind!r} at the same time, and {count} may: {_of(log)}"

    return check


def together(count: int, kind: str) -> Check:
    """As many acts of this kind are under way at some moment: the class keeps out no more than it has to."""

    def check(log: Log) -> None:
        most = max((now[kind] for now in inside(log)), default=0)
        assert most >= count, f"{count} could do {kind!r} at the same time, and {most} did: {_of(log)}"

    return check


def side_by_side(kind: str, other: str) -> Check:
    """Acts of these two kinds are under way at some moment."""

    def check(log: Log) -> None:
        met = any(now[kind] and now[other] for now in inside(log))
        assert met, f"{kind!r} and {other!r} could be done at the same time, and were not: {_of(log)}"

    return check


def before(first: str, second: str) -> Check:
    """The last note that begins with `first` comes before the first that begins with `second`."""

    def check(log: Log) -> None:
        last = max(at for at, note in enumerate(log) if note.startswith(first))
        begin = min(at for at, note in enumerate(log) if note.startswith(second))
        assert last < begin, f"{log[begin]!r} came before {log[last]!r}: {_of(log)}"

    return check


def sooner(first: str, second: str) -> Check:
    """The first note that begins with `first` comes before the first that begins with `second`."""

    def check(log: Log) -> None:
        notes = [note for note in log if note.startswith((first, second))]
        assert notes[0].startswith(first), f"{notes[0]!r} came before any {first!r}: {_of(log)}"

    return check


def never_more(kind: str, than: str, times: int = 1, plus: int = 0) -> Check:
    """At no moment more notes begin with `kind` than `times` as many as begin with `than`, and `plus`."""

    def check(log: Log) -> None:
        left = plus
        for note in log:
            left += times * note.startswith(than) - note.startswith(kind)
            assert left >= 0, f"{note!r} came too early: {_of(log)}"

    return check


def in_groups(*allowed: str) -> Check:
    """The log is a row of groups of one size, each with one of these sets of words: "H H O"."""

    def check(log: Log) -> None:
        wanted = [sorted(group.split()) for group in allowed]
        size = len(wanted[0])
        for at in range(0, len(log), size):
            group = sorted(note.split()[0] for note in log[at : at + size])
            assert group in wanted, f"{' '.join(group)} in place of {' or '.join(allowed)}: {_of(log)}"

    return check


def in_order(*notes: str) -> Check:
    """These notes come in this order; others may be between them."""

    def check(log: Log) -> None:
        found = [note for note in log if note in notes]
        assert found == list(notes), f"not in the order {', '.join(notes)}: {_of(log)}"

    return check


def reads(*patterns: str, words: str = "") -> Check:
    """The first words of the notes, or those of them that are in `words`, are one of these: "load board run"."""

    def check(log: Log) -> None:
        found = [word for note in log if (word := note.split()[0]) in words.split() or not words]
        assert " ".join(found) in patterns, f"{' '.join(found)}, in place of {' or '.join(patterns)}: {_of(log)}"

    return check


def overtaken(by: str, who: str, most: int) -> Check:
    """Before the first note `who` there are at most so many notes `by`."""

    def check(log: Log) -> None:
        times = log[: log.index(who)].count(by)
        assert times <= most, f"{times} times {by!r} before {who!r}, and {most} may: {_of(log)}"

    return check


def _of(log: Log) -> str:
    return ", ".join(log)
