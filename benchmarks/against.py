"""The package as it is, beside the package as it was at a revision: the same work, in turn, in two processes.

`python benchmarks/against.py REVISION` prints, for each work, the time that it takes now, as a ratio to the time that
it took then: the median of the rounds, and the quartiles. A work of which the revision knows nothing yet is left out.
"""

from __future__ import annotations

import argparse
import gc
import io
import statistics
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = 1.05
"""The ratio up to which a work is as fast as it was."""

N = 100_000


def add(n: int) -> int:
    return n + 1


def odd(n: int) -> bool:
    return n % 2 == 1


def take_all(flow: Any) -> None:
    """Subscribe with unbounded demand, and wait for the end."""
    done = threading.Event()
    total = [0]

    def on_next(element: object) -> None:
        total[0] += 1

    flow.subscribe(on_next, on_complete=done.set)
    done.wait()


def works() -> dict[str, Callable[[], object]]:
    """The measured works, of the package that this process has imported."""
    from reactive_runtime import Flow

    pools = [ThreadPoolExecutor(1) for _ in range(2)]
    two = ThreadPoolExecutor(2)
    numbers = Flow.range(N)

    class StopAndWait:
        """Requests one element at a time."""

        def on_subscribe(self, subscription: Any, /) -> None:
            self.subscription = subscription
            subscription.request(1)

        def on_next(self, element: object, /) -> None:
            self.subscription.request(1)

        def on_error(self, error: BaseException, /) -> None:
            raise error

        def on_complete(self) -> None: ...

    def subscriptions() -> None:
        flow = Flow.range(3).map(add)
        for _ in range(5_000):
            flow.subscribe(add)

    def schedules(strategy: Any, points: Any) -> None:
        from reactive_runtime.explore import explore

        explore(_Counter, schedules=1_500, seed=1, strategy=strategy, points=points)

    flows: dict[str, Callable[[], object]] = {
        "map, filter, map, fused": lambda: take_all(numbers.map(add).filter(odd).map(add)),
        "scan, batch, flatten, enumerate, fused": lambda: take_all(
            numbers.scan(max, 0).batch(64).flatten().enumerate()
        ),
        "request(1), element by element": lambda: numbers.map(add).subscribe(StopAndWait()),
        "a boundary between two threads": lambda: take_all(numbers.subscribe_on(pools[0]).publish_on(pools[1])),
        "concat_map of ten each": lambda: take_all(Flow.range(N // 20).concat_map(lambda n: Flow.range(10))),
        "flat_map of ten each": lambda: take_all(Flow.range(N // 20).flat_map(lambda n: Flow.range(10))),
        "map_parallel on two threads": lambda: take_all(Flow.range(N // 20).map_parallel(add, executor=two)),
        "5,000 subscriptions of three elements": subscriptions,
    }
    return flows | {
        f"1,500 schedules of the explorer: {strategy}, {points}": partial(schedules, strategy, points)
        for strategy, points in product(["random", "pct3", "pos", "bounded", "dpor"], ["shared", "sync"])
    }


class _Counter:
    """Three threads that count with a lock, for the explorer: 1,680 orders."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n = 0

    def actor_one(self) -> None:
        self._count()

    def actor_two(self) -> None:
        self._count()

    def actor_three(self) -> None:
        self._count()

    def _count(self) -> None:
        for _ in range(3):
            with self.lock:
                self.n += 1

    def at_end(self) -> None:
        assert self.n == 9


def child(clock: str) -> None:
    """Do the work whose name comes in, and say how many seconds it took, or why it can't be done."""
    now = {"wall": time.perf_counter, "processor": time.process_time}[clock]
    known = works()
    for line in sys.stdin:
        work = known[line.strip()]
        gc.collect()
        begin = now()
        try:
            work()
        except Exception as error:
            print(f"{type(error).__name__}: {error}".splitlines()[0], flush=True)
        else:
            print(now() - begin, flush=True)


class Package:
    """A process with the package as it stands in `tree`."""

    def __init__(self, tree: Path, clock: str) -> None:
        begin = "import sys; clock, *sys.path[:0] = sys.argv[1:]; import against; against.child(clock)"
        self._process = subprocess.Popen(
            [sys.executable, "-c", begin, clock, str(tree), str(ROOT / "benchmarks")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tree,
        )  # fmt: skip

    def seconds(self, name: str) -> float:
        """Raises LookupError where this package can't do it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            raise LookupError(answer or "the process has ended") from None

    def end(self) -> None:
        self._process.communicate()


def exported(revision: str) -> Path:
    """The package as it was at `revision`, in a folder of its own."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run(
        [*git, "rev-parse", "--short", f"{revision}^{{commit}}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    folder = ROOT / "build" / "against" / commit
    if not folder.exists():
        packed = subprocess.run(
            [*git, "archive", commit, "reactive_runtime", "stress"], check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    return folder


def main() -> None:
    from rich.table import Table
    from side_by_side import console

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("revision", help="a commit, tag or branch of git")
    parser.add_argument("--rounds", type=int, default=15, help="how often each work is done by each, in turn")
    parser.add_argument("--only", default="", help="a part of the names of the works to do")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall", help="which seconds count")
    options = parser.parse_args()
    before, now = Package(exported(options.revision), options.clock), Package(ROOT, options.clock)
    table = Table(title=f"now, {options.revision} = 1.00; {options.rounds} rounds", title_justify="left")
    for column in ("work", "ms then", "ms now", "median", "quartiles", f"within {ALLOWED - 1:.0%}"):
        table.add_column(column, justify="left" if column == "work" else "right")
    for name in (name for name in works() if options.only in name):
        try:
            before.seconds(name), now.seconds(name)  # once to warm up
            pairs = [
                (before.seconds(name), now.seconds(name))
                if turn % 2
                else (now.seconds(name), before.seconds(name))[::-1]
                for turn in range(options.rounds)
            ]
        except LookupError as error:
            table.add_row(name, "", "", "", "", str(error))
            continue
        ratios = [after / first for first, after in pairs]
        low, middle, high = statistics.quantiles(ratios, n=4)
        times = (f"{statistics.median(column) * 1e3:.1f}" for column in zip(*pairs, strict=True))
        table.add_row(name, *times, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", "yes" if middle <= ALLOWED else "no")
    console.print(table)
    before.end()
    now.end()


if __name__ == "__main__":
    main()
