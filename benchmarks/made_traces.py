"""Made-up traces in the writer's layout, whose verdict is known; and what judges use up, wherever they run.

A run has subscriptions of `length` records, `LIVE` of them at once, and may have one more that lives from its beginning
to its end. All keep the rules. One of those named in `broken` asks in its middle for an element less than it is given,
and from then on is given one too many with each request: 1.1.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from reactive_runtime.testing import Chunk
from reactive_runtime.testing._buffers import ON_NEXT, ON_SUBSCRIBE, PACKED, REQUEST, SETTLED, SUBSCRIBE
from reactive_runtime.testing._records import SubscriptionMetadata
from reactive_runtime.testing._traces.trace_writer import FILE_ROWS
from reactive_runtime.testing.trace import TraceWriter

LENGTH = 1_000
"""Records of each subscription."""
LIVE = 64
"""Subscriptions that are under load at once, as in a round of the harness."""
THREADS = 8
SCENARIOS = 6
TURN = 10
"""Records from one request to the next: nine elements answer each."""

Finding = tuple[str, int, str, int, int]
"""Run, subscription, rule, how often, the `begin` of the first."""


@dataclass(frozen=True)
class Run:
    """The contents of a run; `write` writes it."""

    name: str
    subscriptions: int
    first: int = 0
    """The number of its first subscription."""
    long: int = 0
    """Records of one more subscription, of the number after theirs; 0: there is none."""
    broken: range | tuple[int, ...] = ()
    """Numbers of the subscriptions that break 1.1."""
    length: int = LENGTH

    def __post_init__(self) -> None:
        for length in (self.length, self.long):
            assert length % TURN == 0, f"a length should be a multiple of {TURN}, and is {length}"
            assert length == 0 or length >= 3 * TURN, f"a length should be {3 * TURN} at least, and is {length}"

    @property
    def records(self) -> int:
        return self.subscriptions * self.length + self.long

    @property
    def elements(self) -> int:
        """Of all its subscriptions: what is neither `subscribe`, `on_subscribe`, `settled` nor a request."""
        lengths = [self.length] * self.subscriptions + [self.long] * bool(self.long)
        return sum(length - 3 - len(range(2, length - 1, TURN)) for length in lengths)

    @property
    def longest(self) -> int | None:
        """The number of the subscription that lives throughout."""
        return self.first + self.subscriptions if self.long else None

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + self.subscriptions + bool(self.long))

    @property
    def places(self) -> int:
        """Of the records of its shorter subscriptions; some may be empty."""
        return -(-self.subscriptions // LIVE) * LIVE * self.length

    def findings(self) -> list[Finding]:
        """The breaches that a judge has to find in it."""
        found = []
        for number in self.broken:
            is_long = number == self.longest
            length = self.long if is_long else self.length
            turns = (length - 8 - _middle(length)) // TURN + 1  # requests from the one that asks for too little
            at = np.array([_middle(length) + TURN - 1])  # the ninth element after it
            rank = self._long_rank(at) if is_long else self._rank(_place(at, number - self.first, length))
            found.append((self.name, number, "1.1", turns, int(_begin(rank)[0])))
        return sorted(found)

    # The records in the order in which they happened: those at the places, and those of the long subscription spread
    # evenly between them. Place p lies at (p + 1/2) / places, the i-th record of the long one at (i + 1/2) / long.

    def _long_before(self, place: int | np.ndarray[Any, Any]) -> Any:
        """How many records of the long subscription lie before that place."""
        return -((self.places - (2 * place + 1) * self.long) // (2 * self.places))

    def _rank(self, place: Any) -> Any:
        return place + (self._long_before(place) if self.long else 0)

    def _long_rank(self, at: Any) -> Any:
        return at + ((2 * at + 1) * self.places + self.long) // (2 * self.long)

    def slices(self, size: int) -> Iterator[tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """The records in stretches of about `size`.

        For each a ticket that all of them have passed, their threads, and the numbers of a packed row.
        """
        step = max(size * self.places // (self.places + self.long), 1)
        for start in range(0, self.places, step):
            stop = min(start + step, self.places)
            place = np.arange(start, stop)
            turn = place // LIVE
            number = turn // self.length * LIVE + place % LIVE
            there = number < self.subscriptions
            place, turn, number = place[there], turn[there], number[there]
            parts = [self._rows(self.first + number, turn % self.length, self.length, self._rank(place))]
            if self.long:
                begin = max(self._long_before(start), 0) if start else 0
                end = min(self._long_before(stop), self.long) if stop < self.places else self.long
                at = np.arange(begin, end)
                assert self.longest is not None
                parts.append(self._rows(np.full(len(at), self.longest), at, self.long, self._long_rank(at)))
            ticket = int(_begin(self._rank(stop))) - 1 if stop < self.places else 8 * (self.places + self.long) + 8
            threads, rows = (np.concatenate(of) for of in zip(*parts, strict=True))
            yield ticket, threads, rows

    def _rows(self, number: Any, at: Any, length: int, rank: Any) -> tuple[Any, Any]:
        """The threads and rows of records: the `at`-th of subscription `number`."""
        kind = np.full(len(at), ON_NEXT)
        kind[at % TURN == 2] = REQUEST
        for first, of in ((0, SUBSCRIBE), (1, ON_SUBSCRIBE), (length - 1, SETTLED)):
            kind[at == first] = of
        argument = at.copy()  # values rise
        argument[kind == REQUEST] = TURN - 1
        argument[at == length - 8] = 6  # the last is for what is left
        if self.broken:
            argument[(at == _middle(length)) & np.isin(number, np.array(self.broken))] = TURN - 2
        begin, rng = _begin(rank), _dice(rank)
        end = begin + 1 + (rng >> 2 & 1)
        begin_ns = 400 * rank + (rng >> 3 & 0xFF)
        end_ns = begin_ns + 100 + (rng >> 11 & 0xFF)
        columns = (number, kind, argument, begin, end, begin_ns, end_ns, np.zeros(len(at), int))
        assert len(columns) == PACKED
        return 1 + (number + at // TURN) % THREADS, np.stack(columns, axis=1).astype(np.int64)


def _middle(length: int) -> int:
    """Which record is the request that asks for too little."""
    return length // (2 * TURN) * TURN + 2


def _place(at: Any, number: int, length: int) -> Any:
    return (number // LIVE * length + at) * LIVE + number % LIVE


def _begin(rank: Any) -> Any:
    """Its ticket: they rise, in steps that differ, as do those of a clock. So files take bytes as real ones do."""
    return 8 * rank + 1 + (_dice(rank) & 3)


def _dice(rank: Any) -> Any:
    """Twenty bits, always the same for the same rank."""
    mixed = np.atleast_1d(rank).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)  # as splitmix64 does
    return (mixed >> np.uint64(44)).astype(np.int64).reshape(np.shape(rank))


def write(run: Run, folder: Path) -> Path:
    """Write the run below the folder, by the writer of all traces; its folder."""
    facts = {
        number: SubscriptionMetadata(
            number, f"scenario {number % SCENARIOS}", shared_callers=number % 2 == 0, ascending=True
        )
        for number in run.numbers
    }
    writer = TraceWriter(folder, run.name)
    source = writer.source(facts)
    for ticket, threads, rows in run.slices(FILE_ROWS):
        for thread in range(1, THREADS + 1):
            mine = rows[threads == thread].tobytes()
            source.write(Chunk(thread, [mine[at : at + 8 * PACKED] for at in range(0, len(mine), 8 * PACKED)]))
        source.passed(ticket, ())
        writer.flush()
    source.end()
    writer.close()
    return writer.path


def write_all(runs: Iterable[tuple[Run, Path]]) -> list[Path]:
    """Write runs, as many at once as there are cores; their folders."""
    with get_context("spawn").Pool() as pool:  # which ends them, where this is ended
        return pool.starmap(write, runs, chunksize=1)


# -- processes ------------------------------------------------------------------------------------------------


def processor_seconds(root: int, without: int | None = None) -> float:
    """The time that a process and its descendants have used so far, without one of them and its descendants."""
    times: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        times[process] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # its children's, that have ended, too
    used, left = 0.0, [root]
    while left:
        process = left.pop()
        if process != without:
            used += times.get(process, 0.0)
            left += children.get(process, [])
    return used


@contextmanager
def ended(process: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    """At its end, a process that leads a session has ended, with all that it has started there."""
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
