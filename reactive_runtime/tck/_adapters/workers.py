"""A worker in another process, which the kit kills; it reports the number of each message that it has handled."""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from reactive_runtime.tck._adapters.demanding_reader import until
from reactive_runtime.tck._running.environment import started

__all__ = ["Worker", "report"]

LOADS = "import base64, pickle, sys; sys.path[:] = {path!r}; pickle.loads(base64.b64decode(sys.stdin.readline()))(\n\
    __import__('reactive_runtime.tck._adapters.workers', fromlist=['report']).report)"


def report(number: int) -> None:
    """Report a number, in the worker: one write, so that a kill leaves whole lines."""
    os.write(1, f"{number}\n".encode())


class Worker:
    """A process that handles messages. `_lock` owns the numbers.

    Args:
        work: A command, or a function that can be pickled; see `Adapter.worker`.
    """

    def __init__(self, work: Sequence[str] | Callable[[Callable[[int], object]], object]) -> None:
        said = b""
        if callable(work):
            command = [sys.executable, "-c", LOADS.format(path=[path or os.getcwd() for path in sys.path])]
            said = base64.b64encode(pickle.dumps(work)) + b"\n"
        else:
            command = list(work)
        self._lock = threading.Lock()
        self._numbers: list[int] = []
        self._words: list[str] = []  # the last lines of its errors
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(said)
            self.process.stdin.close()
        except OSError:
            pass  # it has ended, and its errors say why
        self._threads = [started(self._listen, "tck-worker"), started(self._hear_errors, "tck-worker-errors")]

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if line.strip().lstrip(b"-").isdigit() and line.endswith(b"\n"):
                    with self._lock:
                        self._numbers.append(int(line))

    def _hear_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                with self._lock:
                    self._words = [*self._words[-20:], line.decode(errors="replace").rstrip()]

    @property
    def numbers(self) -> list[int]:
        """The numbers that it has handled, in order; all of them when it has ended."""
        with self._lock:
            return list(self._numbers)

    @property
    def words(self) -> str:
        """The last line of its errors."""
        with self._lock:
            return next((word for word in reversed(self._words) if word.strip()), "")

    def wait(self, n: int, seconds: float) -> bool:
        """Wait until it has handled `n` messages, or has ended; whether it has handled them."""
        until(lambda: len(self.numbers) >= n or self.process.poll() is not None, seconds)
        return len(self.numbers) >= n

    def kill(self) -> None:
        """SIGKILL, and wait until all that it has reported is here."""
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
