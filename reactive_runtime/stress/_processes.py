"""Load in processes of their own: one for each scenario, or one for each interpreter.

A crash or a hang ends its own process, and no other scenario. Each process records to a pipe; here
the records of all are put together to one run, their subscriptions numbered anew.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, TextIO

import reactive_runtime
from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import ReactiveError
from reactive_runtime.stress._cancellation_metrics import CancellationMetrics
from reactive_runtime.stress._harness import PATIENCE, Failure, Load, Result
from reactive_runtime.stress._shares import Share
from reactive_runtime.testing._buffers import Chunk
from reactive_runtime.testing._records import SubscriptionMetadata
from reactive_runtime.testing.trace import TraceWriter

__all__ = ["Order", "Processes", "run_in_processes", "version_of"]

GRACE: Final = 3 * PATIENCE
"""Seconds that a process may take beyond its load: its own watchdog has to have barked by then."""

_ENDED: Final = "\n"
"""The line in the pipe of a process that has ended. After a line that was cut off, it ends that one."""


@dataclass(frozen=True)
class Order:
    """The order to one process."""

    where: str
    names: Sequence[str]
    load: Load
    fault: str = ""
    python: str = sys.executable

    def __str__(self) -> str:
        return self.names[0] if len(self.names) == 1 else f"{len(self.names)} scenarios"


def version_of(python: str) -> str:
    """Ask the interpreter for its version. ReactiveError, in one line, where it does not start or is too old."""
    ask = (
        "import sys, platform; print(platform.python_version()"
        " + ('' if getattr(sys, '_is_gil_enabled', lambda: True)() else 't'), *sys.version_info[:2])"
    )
    try:
        answer = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ReactiveError(f"--python {python}: can't be started: {error}") from error
    try:
        version, major, minor = answer.split()
        is_old = (int(major), int(minor)) < (3, 11)
    except ValueError:
        raise ReactiveError(f"--python {python}: is no Python: it does not say its version") from None
    if is_old:
        raise ReactiveError(f"--python {python}: is {version}, and 3.11 or newer is needed")
    return version


def run_in_processes(
    orders: Sequence[Order], writer: TraceWriter, at_once: int, processes: Processes | None = None
) -> Result:
    """Carry out the orders, up to `at_once` (1 or more) side by side; `writer` gets what is recorded.

    `processes` are those at work: they can be stopped by it.

    A process that crashes, or does not end, is a failure of the scenarios it had; the others go on.
    """
    counter = _Numbers()
    total = Result()
    with ThreadPoolExecutor(at_once, thread_name_prefix="stress") as pool:
        at_work = processes or Processes()
        for result in pool.map(lambda order: _carried_out(order, writer, counter, at_work), orders):
            total.failures += result.failures
            total.rounds += result.rounds
            total.subscriptions += result.subscriptions
            total.seconds += result.seconds
            total.signals += result.signals
            total.load.update(result.load)
            total.dropped.update(result.dropped)
            total.cut_short.update(result.cut_short)
            total.cancellation_metrics.update(result.cancellation_metrics)
    total.seconds /= min(at_once, len(orders))
    return total


class Processes:
    """The processes at work, which can be stopped."""

    def __init__(self) -> None:
        self._lock = primitives.RLock()  # `stop` is called by a handler of signals, in the midst of anything
        self._at_work: list[subprocess.Popen[str]] = []  # _lock
        self._stopped = False  # _lock

    def stopped(self) -> bool:
        """Whether `stop` was called."""
        with self._lock:
            return self._stopped

    def stop(self) -> None:
        """Let each end after its round, and no other begin."""
        with self._lock:
            self._stopped = True
            for process in self._at_work:
                process.terminate()

    def add(self, process: subprocess.Popen[str]) -> None:
        """One has begun."""
        with self._lock:
            self._at_work.append(process)
            if self._stopped:
                process.terminate()

    def remove(self, process: subprocess.Popen[str]) -> None:
        """One has ended."""
        with self._lock:
            self._at_work.remove(process)


class _Numbers:
    """Gives numbers to subscriptions, across processes."""

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._given = 0  # _lock

    def take(self, count: int) -> int:
        with self._lock:
            first, self._given = self._given, self._given + count
            return first


def _carried_out(order: Order, writer: TraceWriter, numbers: _Numbers, processes: Processes) -> Result:
    unbegun = Result(cut_short=dict.fromkeys(order.names, "it had no round: the load was ended before its process"))
    if processes.stopped():
        return unbegun
    process, lines = _begun(order)
    assert process.stdin is not None
    processes.add(process)
    subscriptions: dict[int, SubscriptionMetadata] = {}
    source = writer.source(subscriptions)
    given: dict[int, int] = {}
    answer: dict[str, Any] = {}
    try:
        with suppress(BrokenPipeError):  # then its end says why
            process.stdin.write(_line(order))
            process.stdin.close()
        for text in lines:
            if text == _ENDED:
                break
            try:
                line = json.loads(text)
            except ValueError:  # it was cut off; and if it was not, it is not read on
                process.kill()
                break
            if "metadata" not in line:
                answer = line
                source.end()
                continue
            first = numbers.take(len(line["metadata"]))
            for at, item in enumerate(line["metadata"]):
                given[item["subscription"]] = first + at
                subscriptions[first + at] = replace(SubscriptionMetadata(**item), subscription=first + at)
            if "rows" in line:
                source.write(Chunk(line["thread"], [(given[row[0]], *row[1:]) for row in line["rows"]]))
            else:
                source.passed(
                    line["ticket"], [(thread, (given[row[0]], *row[1:])) for thread, row in line["under_way"]]
                )
        ended = process.wait()
    finally:
        process.kill()
        processes.remove(process)
        lines.close()
    if "unable" in answer:
        raise ReactiveError(answer["unable"])
    if "failures" in answer:
        failures = [Failure(**fields) for fields in answer["failures"]]
        left = {name: CancellationMetrics(**fields) for name, fields in answer["leaving"].items()}
        return Result(
            failures,
            answer["rounds"],
            answer["subscriptions"],
            answer["seconds"],
            Counter(answer["dropped"]),
            answer["signals"],
            {name: Share(**fields) for name, fields in answer["load"].items()},
            answer["cut_short"],
            cancellation_metrics=left,
        )
    if processes.stopped() and ended == -signal.SIGTERM:  # it had not begun
        return unbegun
    why = f"its process ended with {f'signal {-ended}' if ended < 0 else f'status {ended}'} before the load was over"
    failures = [Failure(name, why, stuck=True) for name in order.names]
    return Result(failures, subscriptions=len(subscriptions), seconds=order.load.seconds)


def _begun(order: Order) -> tuple[subprocess.Popen[str], TextIO]:
    """The process, over which a watchdog watches, and the lines that it says."""
    root = str(Path(reactive_runtime.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    heard, said = os.pipe()
    try:
        process = subprocess.Popen(
            [order.python, "-m", "reactive_runtime.stress._worker"],
            stdin=subprocess.PIPE,
            stdout=said,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    except BaseException:
        os.close(heard)
        os.close(said)
        raise
    seconds = order.load.seconds + GRACE
    primitives.Thread(target=_watch, args=(process, seconds, said), name="watchdog", daemon=True).start()
    return process, os.fdopen(heard, encoding="utf-8")


def _watch(process: subprocess.Popen[str], seconds: float, said: int) -> None:
    """Kill the process where it has not ended within so many seconds; say in its pipe `said` that it has ended.

    The pipe alone does not say so: a process that a scenario has left behind, of a `ProcessPoolExecutor` for one, may
    keep it open for ever. The lines of the process come before that one.
    """
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(OSError):  # nothing reads any more
        os.write(said, _ENDED.encode())
    os.close(said)


def _line(order: Order) -> str:
    said = {"where": order.where, "names": list(order.names), "fault": order.fault, **asdict(order.load)}
    return json.dumps(said) + "\n"
