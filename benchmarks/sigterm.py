"""Sends SIGTERM to processes at random moments, and counts what is lost: `python benchmarks/sigterm.py --signals 1000`.

Each process runs three flows in a scope: a pipeline with a boundary, a `flat_map` and a `map_parallel` on a pool, and a
hot source with a queue, which the main thread and another thread fill. A ledger has each element that has left its
source: that a generator has yielded, or that `emit` has taken. The subscriber has to get each of them before the
deadline, in order where the flow keeps the order. Another exit than that of a process that has drained is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from reactive_runtime import Flow
from reactive_runtime.hot import EmitResult, UnicastProcessor
from reactive_runtime.scopes import on_sigterm, scope

DEADLINE = 20.0
AT_ONCE = 4


class Ledger:
    """The elements that have left a source, and those that the subscriber has. Each list has one writer at a time."""

    def __init__(self) -> None:
        self.left: list[int] = []
        self.came: list[int] = []

    def source(self) -> Iterator[int]:
        n = 0
        while True:
            self.left.append(n)
            yield n
            n += 1

    def lost(self) -> int:
        return len(set(self.left) ^ set(self.came)) + len(self.came) - len(set(self.came))


def work(n: int) -> int:
    """A little work, and now and then a wait."""
    if n % 7 == 0:
        time.sleep(0.001)
    return n


def fill(hot: UnicastProcessor[int], ledger: Ledger, lock: threading.Lock) -> None:
    """Emit, and note each element that was taken, until the flow has ended."""
    while True:
        with lock:
            n = len(ledger.left)
            result = hot.emit(n)
            if result is EmitResult.OK:
                ledger.left.append(n)
        if result is EmitResult.OVERFLOW:
            time.sleep(0)
        elif result is not EmitResult.OK:
            return


def child(ready: int) -> dict[str, Any]:
    """Run the three flows until SIGTERM; return the counts."""
    boundary, fanned, queued = Ledger(), Ledger(), Ledger()
    hot: UnicastProcessor[int] = UnicastProcessor(capacity=64)
    lock = threading.Lock()
    with ThreadPoolExecutor(3) as source_pool, ThreadPoolExecutor(4) as pool, scope() as s:
        on_sigterm(s, within=DEADLINE)
        os.write(ready, b"r")
        first = Flow.from_iterable(boundary.source()).subscribe_on(source_pool).publish_on(pool, prefetch=16).map(work)
        s.start(first, boundary.came.append)
        second = (
            Flow.from_iterable(fanned.source())
            .subscribe_on(source_pool)
            .flat_map(lambda n: Flow.just(n).subscribe_on(pool).map(work), concurrency=4)
            .map_parallel(work, pool, concurrency=3)
        )
        s.start(second, fanned.came.append)
        s.start(hot.publish_on(pool, prefetch=8).map(work), queued.came.append)
        emitter = threading.Thread(target=fill, args=(hot, queued, lock))
        emitter.start()
        fill(hot, queued, lock)
    emitter.join()
    ledgers = {"boundary": boundary, "flat_map, map_parallel": fanned, "hot source": queued}
    return {
        "lost": {name: ledger.lost() for name, ledger in ledgers.items()},
        "elements": sum(len(ledger.left) for ledger in ledgers.values()),
        "ordered": boundary.came == sorted(boundary.came) and queued.came == sorted(queued.came),
    }


def forked(delay: float) -> tuple[int, int, float]:
    """Fork a process, which is to get its signal after `delay`; return its pid, its pipe, and the delay."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writes)
        return pid, reads, delay
    status = 1
    try:
        os.close(reads)
        result = child(writes)
        os.write(writes, json.dumps(result).encode())
        status = 0
    except BaseException:
        os.write(writes, traceback.format_exc().encode()[-3000:])
    finally:
        os._exit(status)


def outcome(pid: int, reads: int, delay: float) -> tuple[dict[str, Any] | str, float]:
    """Signal a process that has begun; return what it said, and the seconds that it took to end."""
    assert os.read(reads, 1) == b"r"
    time.sleep(delay)
    os.kill(pid, signal.SIGTERM)
    began = time.monotonic()
    said = b""
    while True:
        there, _, _ = select.select([reads], [], [], 3 * DEADLINE)
        if not there:
            os.kill(pid, signal.SIGKILL)
            said = b"it did not end"
            break
        part = os.read(reads, 65536)
        if not part:
            break
        said += part
    _, status = os.waitpid(pid, 0)
    seconds = time.monotonic() - began
    os.close(reads)
    return (json.loads(said) if status == 0 else f"status {status}: {said.decode()}"), seconds


def main() -> int:
    parser = argparse.ArgumentParser(description="Sends SIGTERM to processes, and counts what is lost.")
    parser.add_argument("--signals", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    drawn = random.Random(arguments.seed)
    lost: dict[str, int] = {}
    elements, slowest, drained, wrong = 0, 0.0, 0, []
    waiting = arguments.signals
    while waiting:
        batch = [forked(drawn.uniform(0, 0.05)) for _ in range(min(AT_ONCE, waiting))]
        waiting -= len(batch)
        for process in batch:
            said, seconds = outcome(*process)
            slowest = max(slowest, seconds)
            if isinstance(said, str):
                wrong.append(said)
                continue
            drained += 1
            elements += said["elements"]
            if not said["ordered"]:
                wrong.append("out of order")
            for name, count in said["lost"].items():
                lost[name] = lost.get(name, 0) + count
    print(f"{arguments.signals} signals, {drained} processes drained, {elements} elements")
    print("lost: " + ", ".join(f"{count} of {name}" for name, count in lost.items()))
    print(f"slowest from the signal to the exit: {slowest:.2f} s, of {DEADLINE:g} s")
    for problem in wrong[:3]:
        print(problem)
    return 1 if wrong or any(lost.values()) or slowest > DEADLINE else 0


if __name__ == "__main__":
    sys.exit(main())
