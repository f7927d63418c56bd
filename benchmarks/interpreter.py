"""The cost of a build without a GIL: ten lines of plain Python, without this package, on both builds.

python benchmarks/interpreter.py [--beside PYTHON] [--rounds 9]

Run by a Python without a GIL; `--beside` names one with a GIL. Both work in turn, on one thread and on two, and the
table prints the medians: calls a second, and the build without a GIL as a multiple of the other.

- *a signal*: a lock, a method call, an object that is appended to a list, as for each element that one thread hands to
  another. That is most of the harness's work.
- *traced*: the same under `sys.settrace`, with which the harness makes threads hesitate, in every other round.
- *tasks*: calls of a pool of one thread, whose results come back in order.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

SECONDS = 0.3


class Element:
    """An object for each signal."""

    def __init__(self, n: int) -> None:
        self.n = n


def signals(over: threading.Event) -> int:
    lock, seen, n = threading.Lock(), list[Element](), 0
    while not over.is_set():
        for _ in range(100):
            with lock:
                seen.append(Element(n))
                n += 1
        seen.clear()
    return n


def traced(over: threading.Event) -> int:
    def trace(frame: object, event: str, argument: object) -> None: ...

    sys.settrace(trace)
    try:
        return signals(over)
    finally:
        sys.settrace(None)


def tasks(over: threading.Event) -> int:
    n = 0
    with ThreadPoolExecutor(1) as pool:
        while not over.is_set():
            n += sum(1 for _ in pool.map(abs, range(1_000)))
    return n


def rate(work: Callable[[threading.Event], int], threads: int) -> float:
    """Calls a second, of all threads."""
    over = threading.Event()
    with ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        futures = [pool.submit(work, over) for _ in range(threads)]
        time.sleep(SECONDS)
        over.set()
        return sum(future.result() for future in futures) / (time.perf_counter() - began)


WORKS = {"a signal": signals, "traced": traced, "tasks": tasks}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--beside", default="")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--one", action="store_true", help="print one round, for the other process")
    asked = options.parse_args()
    if asked.one:
        print(*(rate(work, threads) for work in WORKS.values() for threads in (1, 2)))
        return
    pythons = [sys.executable, *([asked.beside] if asked.beside else [])]
    rows: list[list[list[float]]] = [[] for _ in pythons]
    for _ in range(asked.rounds):
        for python, figures in zip(pythons, rows, strict=True):
            done = subprocess.run([python, __file__, "--one"], capture_output=True, text=True, check=True)
            figures.append([float(figure) for figure in done.stdout.split()])
    medians = [[statistics.median(column) for column in zip(*figures, strict=True)] for figures in rows]
    for at, name in enumerate(f"{work}, {threads} thread{'s' * (threads - 1)}" for work in WORKS for threads in (1, 2)):
        ratio = f"{medians[0][at] / medians[1][at]:.2f} x the other" if asked.beside else ""
        print(f"{name:20}", *(f"{figures[at]:>12,.0f}" for figures in medians), ratio)


if __name__ == "__main__":
    main()
