"""The cost of recording a signal: the same signals recorded and not, in turn, in one run; the difference.

Then how many a second eight threads record to Parquet files, and, in steps, how much memory that takes.

python benchmarks/recorder.py [--signals 8000000]

With --beside 0,2,4 only the eight threads, with so many busy processes beside them, in turn: what becomes of the rate,
and where the time goes. The clocks of the threads measure the time of a signal; they stand still while a thread does
not run.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from side_by_side import console, measure, reached

from reactive_runtime._spec import MAX_DEMAND, Subscriber, Subscription
from reactive_runtime.testing import Chunk, Recorder
from reactive_runtime.testing.trace import TraceWriter

N = 200_000  # signals in each way
AIM = 1_000  # ns a signal, at most


class Loop:
    """Emits `N` elements when asked: as little of its own as there can be."""

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        subscriber.on_subscribe(Emission(subscriber))


class Emission:
    """The subscription of the publisher that is timed."""

    def __init__(self, subscriber: Subscriber[int]) -> None:
        self._subscriber = subscriber

    def request(self, n: int, /) -> None:
        if n == MAX_DEMAND:
            on_next = self._subscriber.on_next
            for element in range(N):
                on_next(element)

    def cancel(self) -> None: ...


class Taker:
    """Takes elements, and does nothing with them."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.request(MAX_DEMAND)

    def on_next(self, element: int, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...


class Asker(Taker):
    """Requests `N` times one, of an emission that gives nothing for it."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        request = subscription.request
        for _ in range(N):
            request(1)


def forget(chunk: Chunk) -> None:
    """A sink that costs nothing."""


def run(subscriber: Subscriber[int], recorder: Recorder | None = None) -> None:
    """One subscription of a loop, through the recorder where there is one."""
    if recorder is None:
        Loop().subscribe(subscriber)
    else:
        recorder.wrap(Loop(), "loop", ascending=True).subscribe(subscriber)
        recorder.flush()


def on_disk(folder: str, runs: Iterator[int]) -> None:
    """Recorded to Parquet, the file closed."""
    writer = TraceWriter(folder, f"run-{next(runs)}")
    run(Taker(), writer.recorder())
    writer.close({})


THREADS = 8
LEAST = 400_000  # signals a second from all of them


def memory() -> float:
    """MiB that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def from_threads(signals: int) -> None:
    """Eight threads, each with a subscription at a time, to Parquet files."""
    table = Table(title=f"{signals:,} signals from {THREADS} threads to Parquet files", title_justify="left")
    for column in ("signals", "a second", "memory, MiB"):
        table.add_column(column, justify="right")
    steps = 10
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        writer = TraceWriter(folder, "run")
        recorder = writer.recorder()
        rounds = max(1, signals // (steps * THREADS * N))
        for _ in range(steps):
            before, begin = writer.rows, time.perf_counter()

            def push() -> None:
                for _ in range(rounds):
                    recorder.wrap(Loop(), "loop", ascending=True).subscribe(Taker())

            threads = [threading.Thread(target=push) for _ in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            recorder.flush()
            rates.append((writer.rows - before) / (time.perf_counter() - begin))
            table.add_row(f"{writer.rows:,}", f"{rates[-1]:,.0f}", f"{memory():.0f}")
        writer.close()
    console.print(table)
    median = sorted(rates)[len(rates) // 2]
    console.print(f"median {median:,.0f} a second; must reach {LEAST:,}")
    reached("recorder: signals a second from 8 threads to files, against 400,000", median / LEAST, at_least=1.0)


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many others, that want a core each."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@dataclass
class Used:
    """The time of one round of the eight threads."""

    signals: int
    seconds: float
    signalling: float
    """Processor seconds of the threads that signal; `writing`: of the one that writes files."""
    writing: float
    waited: float
    """Seconds that a thread waited for the files, on average."""
    switches: int
    """How often a thread gave up its core to wait: mostly for the GIL."""


def clock_of_writer() -> float:
    threads = [item for item in threading.enumerate() if item.name == "trace writer"]
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) for thread in threads if thread.ident is not None
    )


def one_round(folder: str, number: int) -> Used:
    """Each of eight threads records one subscription."""
    writer = TraceWriter(folder, f"beside-{number}")
    recorder = writer.recorder()
    used: list[float] = []

    def push() -> None:
        recorder.wrap(Loop(), "loop", ascending=True).subscribe(Taker())
        used.append(time.thread_time())

    threads = [threading.Thread(target=push) for _ in range(THREADS)]
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.flush()
    took = time.perf_counter() - begin
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - switches
    found = Used(writer.rows, took, sum(used), clock_of_writer(), writer.waited / THREADS, switches)
    writer.close()
    return found


def beside(counts: list[int], rounds: int = 5) -> None:
    """The eight threads, with busy processes beside them; medians."""
    found: dict[int, list[Used]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for count in counts:
                with busy(count):
                    found[count].append(one_round(folder, number * len(counts) + counts.index(count)))
    table = Table(title=f"{THREADS} threads to Parquet files, medians of {rounds}", title_justify="left")
    columns = (
        "busy processes beside",
        "signals a second",
        "a signal, ns",
        "its file, ns",
        "cores had",
        "waited",
        "waits",
    )
    for column in columns:
        table.add_column(column, justify="right")
    for count, of in found.items():
        median = [
            statistics.median(item)
            for item in zip(
                *(
                    (
                        one.signals / one.seconds,
                        one.signalling / one.signals * 1e9,
                        one.writing / one.signals * 1e9,
                        (one.signalling + one.writing) / one.seconds,
                        one.waited / one.seconds,
                        one.switches / one.signals * 1e6,
                    )
                    for one in of
                ),
                strict=True,
            )
        ]
        rate, signal, file, cores, waited, switches = median
        cells = (f"{rate:,.0f}", f"{signal:,.0f}", f"{file:,.0f}", f"{cores:.2f}", f"{waited:.0%}", f"{switches:,.0f}")
        table.add_row(str(count), *cells)
    console.print(table)
    console.print(
        "a signal, its file: processor time; waited: share of the time, for the files; waits: in a million signals"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--signals", type=int, default=16_000_000)
    parser.add_argument("--beside", help="numbers of busy processes, with commas between them")
    asked = parser.parse_args()
    if asked.beside is not None:
        beside([int(item) for item in asked.beside.split(",")])
        return
    signals = asked.signals
    with tempfile.TemporaryDirectory() as folder:
        runs = iter(range(1_000))
        pairs: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "on_next, to a sink that forgets": (
                lambda: run(Taker()),
                lambda: run(Taker(), Recorder(sink=forget)),
            ),
            "request, to a sink that forgets": (
                lambda: run(Asker()),
                lambda: run(Asker(), Recorder(sink=forget)),
            ),
            "on_next, to Parquet files": (lambda: run(Taker()), lambda: on_disk(folder, runs)),
        }
        ways = {f"{name}{kind}": way for name, pair in pairs.items() for kind, way in zip("-+", pair, strict=True)}
        medians = measure(ways, rounds=7)
    table = Table(title="what recording costs", title_justify="left")
    for column in ("signal", "unrecorded, ns", "recorded, ns", "recording, ns", "must reach"):
        table.add_column(column, justify="left" if column in ("signal", "must reach") else "right")
    for name in pairs:
        plain, recorded = (medians[f"{name}{kind}"] / N * 1e9 for kind in "-+")
        table.add_row(name, f"{plain:,.0f}", f"{recorded:,.0f}", f"{recorded - plain:,.0f}", f"at most {AIM:,}")
    console.print(table)
    from_threads(signals)


if __name__ == "__main__":
    main()
