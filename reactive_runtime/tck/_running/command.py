"""The parent process of the command: it has children run the checks of a verification, within a budget.

Code under test may end its process, compute without end, in Python or in C, take all memory, or leave threads behind
that never end. So the parent only listens: a child reports each check that it begins, and the outcome. If the child
dies, or the parent ends it, the parent makes an outcome for its check, and a new child goes on with the next one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from reactive_runtime.errors import TargetError
from reactive_runtime.tck._running.busy_calls import FRAMES
from reactive_runtime.tck._running.child import LOST, STACKS, Begun, LastCalls, Start, Target, end_group, run
from reactive_runtime.tck._running.environment import FEW, TOO_MANY
from reactive_runtime.tck._running.failures import KIT, asked
from reactive_runtime.tck._verification import Check, Outcome, Status

__all__ = ["BUDGET", "MEMORY", "Begun", "NoVerdictError", "Progress", "Target", "judged"]

BUDGET = 120.0
"""Seconds for all checks, by default."""

MEMORY = 2_048
"""MiB that the checks may take, by default; at most half of what the machine has available."""

SILENT = 120.0
"""Seconds that a check may take beyond its waits; and seconds without a beat while a child imports."""

HELD = 5.0
"""Seconds beyond five times `call_timeout` without a beat, after which code in C holds the interpreter."""

LOOK = 0.1
"""Seconds of one wait for the child. The parent sees a key that comes right before a wait when that wait ends."""

STACKS_WITHIN = 1.0
"""Seconds that the parent waits for the stacks of a child."""


PIPE_CLOSED = "the code under test closed the pipe by which the kit hears of its checks"

IN_A_ROW = 5
"""The parent stops after so many checks in a row in which a factory ended the process or closed its pipe."""


class NoVerdictError(Exception):
    """There is no verdict: the code under test ended its process, or hung, before the first check."""


@dataclass(frozen=True)
class Progress:
    """How far the checks are."""

    number: int
    """Of the check that runs, from 1."""

    of: int
    check: Check
    seconds: float
    """Since the beginning."""


Said = Begun | Progress | Outcome


def judged(target: Target, budget: float = BUDGET, memory: float = MEMORY) -> Iterator[Said]:
    """Run the checks in child processes; yield the pace at first, then the progress and the outcome of each check.

    Args:
        target: The implementation to judge.
        budget: Seconds for all checks. A check without time is "not run".
        memory: MiB that the checks may take; the parent ends a check that takes more: it is "not run".

    Raises:
        TargetError: The name leads nowhere, or a setting is wrong.
        NoVerdictError: The process ended before the first check, or did not come to it within the budget.
    """
    return _Run(target, budget, memory).outcomes()


class _Child:
    """One child process; it ends when the `with` block is left."""

    def __init__(self, target: Target, start: Start) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe(duplex=False)
        self._stacks, writes = context.Pipe(duplex=False)
        self.calls = LastCalls(context)
        arguments = (theirs, writes, self.calls, target, start)
        self.process = context.Process(target=run, args=arguments, name="tck")
        self.process.start()
        theirs.close()
        writes.close()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        end_group(self.process.pid)
        with contextlib.suppress(Exception):
            self.process.kill()
            self.process.join()
        self._ours.close()
        self._stacks.close()

    def said(self) -> tuple[str, Any]:
        """The next message; an empty one after `LOOK` seconds. Raises EOFError or OSError if the child has ended."""
        return self._ours.recv() if self._ours.poll(LOOK) else ("", None)

    def memory(self) -> int:
        """Bytes that it has in memory; 0 if the system does not report it."""
        try:
            with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0

    def how_it_ended(self) -> str:
        """How a silent child has ended; if it has not, this ends it."""
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
            return "the process gave no sign of life any more"
        status = self.process.exitcode or 0
        if status == LOST:
            return PIPE_CLOSED
        how = f"by signal {-status}" if status < 0 else f"(status {status})"
        return f"the process was ended {how}"

    def place(self) -> str:
        """The stack of the code under test, in lines for a failure; empty if the child can't write it."""
        if STACKS is None or self.process.pid is None:
            return ""
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, STACKS)
        frames = _frames(_written(self._stacks))
        return "".join(f"\n    {frame}" for frame in ["it was at:", *frames]) if frames else ""


class _Run:
    """A run of all checks. The thread that takes the outcomes owns it."""

    def __init__(self, target: Target, budget: float, memory: float) -> None:
        self._target = target
        self._budget = budget
        self._memory = min(memory * 2**20, (_available() or 2**63) / 2)
        self._begin = time.monotonic()
        self._start = Start()
        self._held = 0  # the number of times that code in C kept the interpreter
        self._unjudged = 0  # checks in a row whose process ended before there was anything to judge
        self._checks: list[Check] = []  # all, once a child has begun
        # Of the current child:
        self._check: Check | None = None  # its current check
        self._measuring = False
        self._base = 0  # bytes of memory before the first call into the implementation
        self._beat = self._since = self._begin  # the time of its last message, and of the begin of the check
        self._most = self._quiet = SILENT  # seconds of a check, and seconds without a beat

    def outcomes(self) -> Iterator[Said]:
        """Yield everything that the children report."""
        goes_on = True
        while goes_on:
            with _Child(self._target, self._start) as child:
                goes_on = yield from self._heard(child)

    def _heard(self, child: _Child) -> Generator[Said, None, bool]:
        """Yield the reports of one child; return whether another one goes on, from `_start`."""
        self._check, self._measuring, self._base = None, False, 0
        self._beat = time.monotonic()
        self._most = self._quiet = SILENT
        while True:
            try:
                kind, said = child.said()
            except (EOFError, OSError):
                return (yield from self._ended(child))
            if kind:
                self._beat = time.monotonic()
            if kind in ("usage", "unable"):
                return self._no_check((TargetError if kind == "usage" else NoVerdictError)(said))
            if kind == "spun":
                self._start = Start(self._start.first, facts=said)
            if kind in ("spun", "end"):
                return self._start.first < len(self._checks)
            yield from self._noted(child, kind, said)
            if time.monotonic() - self._begin > self._budget:
                yield from self._out_of_time(child)
                return False
            if (over := self._over(child)) is not None:
                return (yield from self._left(*over))

    def _noted(self, child: _Child, kind: str, said: Any) -> Iterator[Said]:
        """Keep a message of the child, and yield what the caller needs of it."""
        if kind == "measures":
            self._measuring, self._base, self._quiet = True, child.memory(), self._patience(1.0)
        elif kind == "begun":
            known, self._checks, longest, call_timeout, facts = said
            if not self._start.first and self._start.facts is None:
                yield known
            if self._start.measures:
                self._start = Start(self._start.first, facts=facts)
            self._measuring, self._base = False, self._base or child.memory()
            self._most, self._quiet = SILENT + longest, self._patience(call_timeout)
        elif kind == "check":
            self._check, self._since = self._checks[said], self._beat
            self._start = Start(said, self._start.measures, self._start.facts)
        elif kind == "outcome":
            self._unjudged = 0
            yield said
            self._next()
        if self._check is not None:
            number = self._start.first + 1
            yield Progress(number, len(self._checks), self._check, time.monotonic() - self._begin)

    def _next(self) -> bool:
        """Go on after a check that has its outcome; return whether there is another one."""
        self._check = None
        self._start = Start(self._start.first + 1, self._start.measures, self._start.facts)
        return self._start.first < len(self._checks)

    def _ended(self, child: _Child) -> Generator[Said, None, bool]:
        """The child has ended, and the parent did not end it."""
        ended = "" if self._measuring else child.how_it_ended()
        if self._check is None:
            return self._without_check(f"{ended} before the first check")
        call, rule = child.calls.at_hand()
        rule = "" if ended == PIPE_CLOSED else self._check.rule if rule is None else rule
        seen = f"{ended} inside of this check{call and f', in {call}'}"
        self._unjudged = 0 if rule else self._unjudged + 1
        goes_on = yield from self._left("failed", _failure(seen, rule), rule)
        if self._unjudged < IN_A_ROW:
            return goes_on
        for check in self._checks[self._start.first :]:
            yield Outcome(check, "failed", _failure(f"{seen}, and in the {IN_A_ROW} checks before", ""))
        return False

    def _left(self, status: Status, why: str, rule: str) -> Generator[Said, None, bool]:
        """Yield the outcome of the check that a child was in when it ended."""
        if self._check is None:
            return self._without_check(why)
        yield Outcome(self._check, status, why, rule)
        return self._next()

    def _without_check(self, why: str) -> bool:
        """A child ended in no check. If it measured the pace, the checks will meet the same fault, and name a rule."""
        if self._measuring:
            self._start = Start(self._start.first, measures=False)
            return True
        return self._no_check(NoVerdictError(f"{self._target.name}: {why}"))

    def _no_check(self, error: Exception) -> bool:
        """A child came to no check: the verdict is that of the checks before; without any, raise `error`."""
        if not self._start.first:
            raise error
        return False

    def _patience(self, call_timeout: float) -> float:
        """Seconds without a beat; fewer if code in C has kept the interpreter before."""
        return (HELD + 5 * call_timeout) / (1, 2, 3)[min(self._held, 2)]

    def _out_of_time(self, child: _Child) -> Iterator[Outcome]:
        """Yield the outcomes of the check that runs, and of those after it."""
        over = f"the budget of {self._budget:g} s (--budget) was over"
        if not self._checks:
            raise NoVerdictError(f"{self._target.name}: {over} before the first check{child.place()}")
        if self._check is not None:
            yield Outcome(self._check, "not run", f"{over} while this check ran{child.place()}")
            self._next()
        for check in self._checks[self._start.first :]:
            yield Outcome(check, "not run", f"{over} before this check")

    def _over(self, child: _Child) -> tuple[Status, str, str] | None:
        """The reason to end the child, as parts of an outcome; None if it may go on."""
        now = time.monotonic()
        if self._base and child.memory() - self._base > self._memory:
            call, _ = child.calls.last()
            helps = TOO_MANY if child.calls.asked() > FEW else "--memory sets the limit"
            took = f"the process took more than {self._memory / 2**20:,.0f} MiB in {call or 'this check'}; {helps}"
            return "not run", f"{took}{child.place()}", ""
        if now - self._beat > self._quiet:
            return self._without_beat(child, now - self._beat)
        if self._check is not None and now - self._since > self._most:
            return "not run", f"it did not end within {self._most:.0f} s{child.place()}", ""
        return None

    def _without_beat(self, child: _Child, seconds: float) -> tuple[Status, str, str]:
        self._held += 1
        call, rule = child.calls.last()
        seen = f"{call or 'it'} let no other thread of the process move for {seconds:.0f} s, and the process was ended"
        return "failed", _failure(f"{seen}{child.place()}", rule), rule or ""


def _failure(seen: str, rule: str | None) -> str:
    """The text of a failure of a check whose process has ended."""
    return f"{asked(rule)}\n  seen: {seen}"


def _written(stacks: Any) -> str:
    """The stacks that a child writes; they come in pieces, without an end mark."""
    read = b""
    with contextlib.suppress(OSError, EOFError):
        while stacks.poll(LOOK if read else STACKS_WITHIN):
            piece = os.read(stacks.fileno(), 2**16)
            if not piece:
                break
            read += piece
    return read.decode(errors="replace")


def _frames(stacks: str) -> list[str]:
    """The calls of the thread that is in the code under test, the innermost last."""
    library = f'File "{os.path.dirname(os.__file__)}{os.sep}'
    for thread in stacks.split("\n\n"):
        frames = [line.strip() for line in thread.splitlines() if line.startswith("  File ")]
        ours = next((number for number, frame in enumerate(frames) if f'"{KIT}' in frame), 0)
        if any(not frame.startswith(library) for frame in frames[:ours]):
            return frames[: min(ours, FRAMES)][::-1]
    return []


def _available() -> int:
    """Bytes of memory that the machine has available; 0 if the system does not report it."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    return 0
