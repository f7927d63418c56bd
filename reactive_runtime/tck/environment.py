"""One trial of one check: what happens in it is noted, waited for, and reported if it is wrong.

The body of a check runs on a thread of its own, under watch: a factory, `subscribe`, `request` or `cancel` that
does not come back is named after `call_timeout`, the thread is left behind, and the next check goes on.

Every signal takes the one lock of the trial, is noted, and wakes the threads that wait; so a check waits as long
as it has to. What is found wrong on a publisher's thread (a *fault*) fails the check on the thread of its body.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from unittest import SkipTest

from reactive_runtime.rules import RULES
from reactive_runtime.spec import MAX_DEMAND
from reactive_runtime.tck.settings import Settings

__all__ = ["ConformanceError", "NotVerified", "Over", "TestEnvironment", "shown"]

T = TypeVar("T")

KEPT = 40
"""How many signals a trial remembers, the last ones; a failure shows them."""

BRIEF = 0.05
"""Seconds that a call may take without being mentioned."""


class ConformanceError(AssertionError):
    """A check has failed: `rule` is its rule, `seen` what was wrong; the text has the signals in order."""

    def __init__(self, rule: str, seen: str, signals: str) -> None:
        self.rule = rule
        self.seen = seen
        self.signals = signals
        asks = f": {RULES[rule]}" if rule in RULES else ""
        super().__init__(f"rule {rule}{asks}\n  seen: {seen}\n{signals}".rstrip())


class NotVerified(SkipTest):
    """A check does not apply, or the implementation does not do what is optional; test runners show it as skipped."""


class Over(BaseException):
    """Raised into an implementation that goes on signalling without end after its check is over, to end its thread."""


@dataclass(frozen=True, slots=True)
class Note:
    """One signal or call."""

    thread: str
    text: str


class TestEnvironment:
    """What one check knows. Everything that changes is owned by `lock`, but where it says otherwise."""

    def __init__(self, rule: str, settings: Settings) -> None:
        self.rule = rule
        self.settings = settings
        self.lock: threading.Condition = threading.Condition(threading.RLock())
        self._notes: deque[Note] = deque(maxlen=KEPT)
        self._noted = 0
        self._fault: ConformanceError | None = None
        self._calls: dict[int, tuple[str, str, float]] = {}  # what is being called: text, thread, since
        self._last_signal = 0.0
        self._names = 0
        self._subscribers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.elements = MAX_DEMAND  # how many the publisher of this trial was asked for; set before it is made
        self.over: bool = False

    # -- noting ------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """A signal, or a call, as it happens on this thread."""
        with self.lock:
            self._notes.append(Note(threading.current_thread().name, text))
            self._noted += 1
            self._last_signal = time.monotonic()
            self.lock.notify_all()

    def name(self, kind: str) -> str:
        """A name for one more `kind`."""
        with self.lock:
            self._names += 1
            return f"{kind} {self._names}"

    def follow(self, subscriber: Any) -> None:
        """Cancel the subscription of this subscriber when the trial is over. It is not kept alive by that."""
        with self.lock:
            self._subscribers.add(subscriber)

    def signals(self) -> str:
        """The notes as text."""
        with self.lock:
            notes, left_out = list(self._notes), self._noted - len(self._notes)
            now = time.monotonic()
            running = [f"  still inside {text} after {now - since:.2f} s, on {thread}"
                       for text, thread, since in self._calls.values() if now - since > BRIEF]  # fmt: skip
        if not notes:
            return "\n".join(["  signals: none", *running])
        width = max(len(note.thread) for note in notes)
        head = f"  signals, in order{f' (the last {KEPT} of {left_out + KEPT})' if left_out else ''}:"
        lines = [f"    {note.thread:<{width}}  {note.text}" for note in notes]
        return "\n".join([head, *lines, *running])

    # -- judging -----------------------------------------------------------------------------------------------

    def failure(self, seen: str) -> ConformanceError:
        """A failure of this check, with the signals up to now."""
        return ConformanceError(self.rule, seen, self.signals())

    def fail(self, seen: str) -> NoReturn:
        """End the check: it failed. From its body."""
        raise self.failure(seen)

    def check(self, holds: object, seen: str) -> None:
        """Fail with `seen` unless it `holds`."""
        self.verify()
        if not holds:
            self.fail(seen)

    def fault(self, seen: str) -> None:
        """Note that something is wrong, from any thread; the first fault fails the check."""
        with self.lock:
            if self._fault is None and not self.over:
                self._fault = self.failure(seen)
            self.lock.notify_all()

    def verify(self) -> None:
        """Raise the first fault there was."""
        with self.lock:
            fault = self._fault
        if fault is not None:
            raise fault

    # -- waiting -----------------------------------------------------------------------------------------------

    def happens(self, condition: Callable[[], object], timeout: float | None = None) -> bool:
        """Wait until `condition`, looked at under the lock, holds; True if it does in time (`default_timeout`)."""
        timeout = self.settings.default_timeout if timeout is None else timeout
        with self.lock:
            self.lock.wait_for(lambda: self._fault is not None or condition(), timeout)
            self.verify()
            return bool(condition())

    def wake(self) -> None:
        """Wake the threads that wait: they look again."""
        with self.lock:
            self.lock.notify_all()

    def silence(self, count: Callable[[], int]) -> int:
        """Wait for `default_no_signals_timeout`; by how much did `count` grow? Returns early once it has."""
        before = count()
        self.happens(lambda: count() > before, self.settings.default_no_signals_timeout)
        with self.lock:
            return count() - before

    def collected(self, reference: weakref.ref[Any]) -> bool:
        """Whether what `reference` refers to can be collected within `publisher_reference_gc_timeout`."""
        deadline = time.monotonic() + self.settings.publisher_reference_gc_timeout
        while True:
            gc.collect()
            if reference() is None:
                return True
            if time.monotonic() > deadline:
                return False
            self.happens(lambda: False, self.settings.default_poll_timeout)

    # -- calling out -------------------------------------------------------------------------------------------

    def call(self, text: str, function: Callable[..., T], /, *arguments: Any) -> T:
        """Call into the implementation; what it raises fails the check."""
        try:
            with self.calling(text):
                return function(*arguments)
        except (ConformanceError, SkipTest):
            raise
        except Exception as error:
            failure = self.failure(f"{text} raised {type(error).__name__}: {error}")
            raise failure from error

    @contextlib.contextmanager
    def calling(self, text: str) -> Iterator[None]:
        """While inside, this thread is in the implementation's hands: the watch may find that it hangs."""
        token = object()
        with self.lock:
            self._calls[id(token)] = (text, threading.current_thread().name, time.monotonic())
        try:
            yield
        finally:
            with self.lock:
                del self._calls[id(token)]

    # -- the watch ---------------------------------------------------------------------------------------------

    def run(self, body: Callable[[], object]) -> None:
        """Run a check's body; raise what it raised, or a failure if a call it made does not come back."""
        outcome: list[BaseException] = []  # written by the thread, read when it has ended
        thread = threading.Thread(target=self._guarded, args=(body, outcome), name="tck", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(self.settings.default_poll_timeout)
                if (hanging := self._hanging()) and thread.is_alive():
                    outcome = [self.failure(hanging)]
                    break
        finally:
            self._close()
        if outcome:
            raise outcome[0]

    def _guarded(self, body: Callable[[], object], outcome: list[BaseException]) -> None:
        try:
            body()
            self.verify()
            self._cancel_all()
        except BaseException as error:
            with self.lock:
                fault = self._fault
            if isinstance(error, Over):
                outcome.append(fault or self.failure("it signals without end"))
            else:
                outcome.append(error if fault is None or isinstance(error, ConformanceError) else fault)
            with contextlib.suppress(Exception, Over):
                self._cancel_all()

    def _hanging(self) -> str | None:
        with self.lock:
            now = time.monotonic()
            for text, thread, since in self._calls.values():
                if now - max(since, self._last_signal) > self.settings.call_timeout:
                    return f"{text} has not returned within {self.settings.call_timeout:g} s (on {thread})"
        return None

    def _cancel_all(self) -> None:
        with self.lock:
            subscribers = list(self._subscribers)
        for subscriber in subscribers:
            subscriber.leave()

    def _close(self) -> None:
        with self.lock:
            self.over = True


def shown(value: object) -> str:
    """`value` in a few characters; never raises."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}..."
