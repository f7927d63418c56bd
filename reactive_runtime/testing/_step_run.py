"""One verification by steps: signals come in, on any thread, and are compared with what is expected."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._spec import Publisher, Subscription
from reactive_runtime.errors import ReactiveError
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.testing._protocol import (
    Breach,
    SubscriptionCheck,
    described,
    not_awaited,
    shown,
    unawaited,
)

__all__ = ["Match", "Run", "Step"]

LINGER: Final = 0.02
"""Seconds that are given for a signal to follow the last one, where signals come from another thread."""

OVERLAP: Final = 0.02
"""Seconds that are given for a signal to overlap with the first one of a thread that is new to the subscription."""

STRANGERS: Final = 3
"""Threads whose first signal is given that."""

MOST: Final = 1_000_000
"""Signals that wait for the thread that verifies, at most, where they come from a call that it is inside of."""

MANY: Final = 100_000
"""Such signals, beyond which they may not come for longer than `timeout`."""

Match = Callable[[str, Any], str | None]
"""Says what is wrong with a signal, or None. It raises what a predicate or a comparison raises."""


@dataclass(frozen=True)
class Step:
    text: str
    match: Match | None = None
    """Called with each signal that the step is for."""
    count: int = 1
    """How many signals the step is for."""
    act: Callable[[Run], object] | None = None
    """The action of a step that is for no signal."""
    cancels: bool = False
    """It is `then_cancel`, which is taken as soon as it is due, also inside a signal."""
    silent: bool = False
    """It is `expect_no_event`, which fails where a signal waits for it."""


class _StopError(Exception):
    """A step can't be taken; raised and caught on the thread that verifies."""


class Run:
    """One verification. Where no lock is named, the thread that verifies owns it."""

    def __init__(self, steps: Sequence[Step], demand: int, clock: VirtualTimeExecutor | None, timeout: float) -> None:
        self._steps = list(steps)
        self._demand = demand
        self._clock = clock
        self._timeout = timeout
        self._thread = primitives.get_ident()
        self._check = SubscriptionCheck()
        self._changed = primitives.Condition()
        self._events: deque[tuple[str, Any]] = deque()  # _changed; came, and not yet expected
        self._subscription: Subscription | None = None  # _changed; the first
        self._left = False  # _changed; no subscription is wanted any more: one that comes is cancelled
        self._failure: BaseException | None = None  # _changed; the first: a step's, or a rule that was broken
        self._strangers: set[int] = set()  # _changed; threads, other than the one that verifies, that have signalled
        self._at = 0  # the step to be taken; others read it only to say where they were
        self._acting = ""  # the step that is being taken, where it is for no signal; others read it for that as well
        self._silent = False  # it is one that expects that nothing comes
        self._seen = 0  # how many signals that step has had
        self._busy = False  # what comes is compared later: it is inside of a comparison, or expects that nothing comes
        self._over = False  # the end was expected, or cancelled
        self._cancelled = False  # others may read a stale False, and request after a cancel: that does nothing (3.6)
        self._late = 0  # signals on this thread since then
        self._since = primitives.monotonic()  # when the first signal came of those that wait, and come on this thread

    # -- on the thread that verifies --------------------------------------------------------------------------

    def take(self, publisher: Publisher[Any]) -> BaseException | None:
        """Subscribe, and take the steps; returns what failed."""
        try:
            try:
                answer: object = publisher.subscribe(_Noting(self))
            except Exception as error:
                self._breaks(Breach("1.9", f"subscribe raised {shown(error)}"), error)
            else:
                self._plain("1.9", "subscribe", answer)
            while not self._failed() and self._at < len(self._steps):
                self._next_step()
            self._conclude()
        finally:
            self._leave()
        try:
            self._rest()  # another verification may follow, of the same flow
        except _StopError as stop:
            self._fail(str(stop))
        with self._changed:
            return self._failure

    def _next_step(self) -> None:
        """Take the step at hand, or as much of it as there are signals for; wait for one more."""
        step = self._steps[self._at]
        if step.act is not None:
            self._act(step)
            return
        self._compare()
        if self._at < len(self._steps) and self._steps[self._at] is step and not self._failed():
            self._wait()

    def _act(self, step: Step) -> None:
        """Take a step that is for no signal. Signals that come meanwhile are for the steps behind it."""
        __tracebackhide__ = True
        assert step.act is not None
        outer = self._acting
        where = self._acting = self._where()
        self._at += 1
        try:
            step.act(self)
        except _StopError as stop:
            self._fail(str(stop), where=where)
        except AssertionError as error:
            self._fail(str(error) or "AssertionError", error, where=where)
        except BaseException as error:
            with suppress(Exception):  # an error that takes none goes on without
                error.add_note(f"{where}; {self._check.history()}")
            self._fails(error)
        finally:
            self._acting = outer

    def _compare(self) -> None:
        """Hold what came against the steps that are for it, up to one that has to wait for more, or does something."""
        while not (self._busy or self._failed()):
            step = self._steps[self._at] if self._at < len(self._steps) else None
            if step is not None and step.act is not None:
                if step.silent and not self._acting:  # the call that signals may have no end
                    self._refuse_what_waits()
                if not step.cancels or not self._check.subscribed:
                    return
                self._act(step)
                continue
            if step is not None and self._seen == step.count:
                self._at, self._seen = self._at + 1, 0
                continue
            with self._changed:
                if not self._events or (step is None and self._cancelled):
                    return
                event = self._events.popleft()
            if step is None or step.match is None:
                self._fail(f"{described(*event)} came")
                return
            self._hold(step.match, *event)

    def _refuse_what_waits(self) -> None:
        with self._changed:
            event = self._events[0] if self._events else None
        if event is not None:
            self._fail(f"{described(*event)} came")

    def _hold(self, match: Match, signal: str, value: Any) -> None:
        self._busy = True
        try:
            wrong = match(signal, value)
        except Exception as error:
            self._fail(f"{described(signal, value)} came, and what compares it raised {shown(error)}", error)
            return
        except BaseException as error:  # an exit, or an outcome of pytest's: it is verify's
            self._fails(error)
            return
        finally:
            self._busy = False
        if wrong is not None:
            self._fail(wrong)
            return
        self._seen += 1
        self._over = self._over or signal != "on_next"

    def _wait(self) -> None:
        ended = self._over and not self._cancelled
        with self._changed:
            most = min(LINGER if self._strangers else 0, self._timeout) if ended else self._timeout
            there = self._wait_for(lambda: bool(self._events) or self._failure is not None, most)
        if not there:
            self._fail("nothing came after the end" if ended else self._nothing())

    def _wait_for(self, predicate: Callable[[], bool], seconds: float) -> bool:
        """Called with `_changed`."""
        return self._changed.wait_for(predicate, primitives.one_wait(seconds))

    def _nothing(self) -> str:
        waited = f"in {self._timeout:g} s; verify(timeout=) says how long a signal is waited for"
        if self._clock is not None:
            waited += "; the virtual clock moves only by then_wait and expect_no_event"
        return f"nothing came {waited}" if self._check.subscribed else f"no on_subscribe came {waited} (rule 1.9)"

    def _subscribed(self) -> Subscription:
        """The subscription, which may have to be waited for."""
        with self._changed:
            self._wait_for(lambda: self._subscription is not None or self._failure is not None, self._timeout)
            subscription = self._subscription
        if subscription is None:
            raise _StopError(self._nothing())
        return subscription

    def request(self, n: Any) -> None:
        subscription = self._subscribed()
        self._check.request(n)
        text = f"request({shown(n)})"
        try:
            answer: object = subscription.request(n)
        except Exception as error:
            self._breaks(Breach("3.16", f"{text} raised {shown(error)}"), error)
        else:
            self._plain("3.16", text, answer)

    def cancel_now(self) -> None:
        subscription = self._subscribed()
        ended = self._check.over
        self._over = self._cancelled = True
        with self._changed:
            self._events.clear()
        if not ended:  # 2.3; later it would do nothing
            self._cancel(subscription)

    def advance(self, seconds: float) -> None:
        """Move the clock; what that sets off on other threads is done when it returns."""
        assert self._clock is not None
        try:
            self._clock.advance(seconds)
        except TimeoutError as error:
            raise _StopError(str(error)) from None

    def calls(self, fn: Callable[[], object]) -> None:
        """Call a function of the test between two rests."""
        __tracebackhide__ = True
        self._rest()
        wrong = unawaited("fn", fn())
        if wrong is not None:
            raise _StopError(wrong)
        self._rest()

    def _rest(self) -> None:
        """Wait until what the flow has begun on other threads is done, where there is a clock that knows."""
        rest = getattr(self._clock, "rest", None)
        if rest is None:
            return
        try:
            rest("StepVerifier")
        except TimeoutError as error:
            raise _StopError(str(error)) from None

    def silence(self, seconds: float) -> None:
        self._busy = self._silent = True
        try:
            if self._clock is not None:
                self.advance(seconds)
                seconds = 0
            with self._changed:
                self._wait_for(lambda: bool(self._events) or self._failure is not None, seconds)
                event = self._events[0] if self._events else None
        finally:
            self._busy = self._silent = False
        if event is not None and not self._failed():
            raise _StopError(f"{described(*event)} came")

    def _conclude(self) -> None:
        """All steps were taken: nothing more may have come."""
        self._compare()
        if not self._failed() and not self._over:
            self._fail("the end was neither expected nor cancelled")
        with self._changed:
            if self._strangers and self._failure is None:
                self._changed.wait_for(lambda: self._failure is not None, LINGER)

    def _leave(self) -> None:
        """Cancel what has not ended."""
        with self._changed:
            self._left = True
            subscription = self._subscription
        if subscription is not None and not self._cancelled and not self._check.over:
            self._cancelled = True
            self._cancel(subscription)

    def _failed(self) -> bool:
        with self._changed:
            return self._failure is not None

    def _where(self) -> str:
        at = self._at  # once: another thread asks where the one that verifies is, and that goes on meanwhile
        return f"step {at + 1}, {self._steps[at].text}" if at < len(self._steps) else "after the last step"

    def _fail(self, what: str, cause: BaseException | None = None, *, where: str = "") -> None:
        """A step has failed."""
        joined = ": " if where or self._at < len(self._steps) else ", "
        failure = AssertionError(f"{where or self._where()}{joined}{what}; {self._check.history()}")
        failure.__cause__ = cause
        self._fails(failure)

    # -- on any thread ----------------------------------------------------------------------------------------

    def _cancel(self, subscription: Subscription) -> None:
        try:
            answer: object = subscription.cancel()
        except Exception as error:
            self._breaks(Breach("3.15", f"cancel raised {shown(error)}"), error)
        else:
            self._plain("3.15", "cancel", answer)

    def _plain(self, rule: str, text: str, answer: object) -> None:
        """A call has returned: where it was one of a coroutine function, nothing has happened."""
        breach = not_awaited(rule, text, answer)
        if breach is not None:
            self._breaks(breach)

    def _breaks(self, breach: Breach, cause: BaseException | None = None) -> None:
        failure = AssertionError(f"{self._where()}: {breach}; {self._check.history()}")
        failure.__cause__ = cause
        self._fails(failure)

    def _fails(self, failure: BaseException) -> None:
        """The first failure is the verdict; an exit (Ctrl-C, an outcome of pytest's) goes before any."""
        leaves = not isinstance(failure, Exception)
        with self._changed:
            if self._failure is None or (leaves and isinstance(self._failure, Exception)):
                self._failure = failure
            self._changed.notify_all()

    def _begins(self, signal: str, value: Any) -> None:
        breach = self._check.begin(signal, value)
        if breach is not None:
            self._breaks(breach)
        thread = primitives.get_ident()
        with self._changed:
            if thread == self._thread:
                return
            new = thread not in self._strangers and len(self._strangers) < STRANGERS
            self._strangers.add(thread)
            if new and self._failure is None:  # one that overlaps would come now
                self._changed.wait_for(lambda: self._failure is not None, OVERLAP)

    def subscribed(self, subscription: Subscription | None) -> None:
        again = self._check.subscribed
        self._begins("on_subscribe", subscription)
        try:
            if subscription is None:
                return
            with self._changed:
                left = self._left
                if not again and self._subscription is None:
                    self._subscription = subscription
                self._changed.notify_all()
            if again or left:
                self._cancel(subscription)  # 2.5
                return
            if self._is_here():
                self._compare()
            if self._demand and not self._cancelled:
                self.request(self._demand)
        finally:
            self._check.end("on_subscribe")

    def signalled(self, signal: str, value: Any) -> None:
        self._begins(signal, value)
        try:
            with self._changed:
                if not self._left:
                    self._events.append((signal, value))
                waiting = len(self._events)
                self._changed.notify_all()
            if self._is_here():
                self._compare_here(waiting)
        finally:
            self._check.end(signal)

    def _compare_here(self, waiting: int) -> None:
        """The publisher signals from a call that this thread is inside of: it may go on without end."""
        self._compare()
        if self._silent and not self._failed():
            with self._changed:
                event = self._events[0] if self._events else None
            if event is not None:  # it decides: what signals without end is cancelled
                self._fail(f"{described(*event)} came", where=self._acting)
        if waiting == 1:
            self._since = primitives.monotonic()
        long = waiting > MANY and primitives.monotonic() - self._since > self._timeout
        if (long or waiting > MOST) and not self._failed():
            what = "signals came from a call that is still under way, and wait for this step: request less (demand=)"
            self._fail(f"{waiting:,} {what}", where=self._acting)
        if self._failed():
            self._leave()
        if self._cancelled:
            self._late += 1
            if self._late > MOST:
                breach = Breach("1.8", f"{self._late:,} signals came after cancel had returned, on the same thread")
                self._breaks(breach)
                raise ReactiveError(str(breach))  # it is the only way out of a call that does not end

    def _is_here(self) -> bool:
        return primitives.get_ident() == self._thread


class _Noting:
    """The subscriber, which notes each signal."""

    shown_as: Final = "StepVerifier"

    def __init__(self, run: Run) -> None:
        self._run = run

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._run.subscribed(subscription)

    def on_next(self, element: Any, /) -> None:
        self._run.signalled("on_next", element)

    def on_error(self, error: BaseException, /) -> None:
        self._run.signalled("on_error", error)

    def on_complete(self) -> None:
        self._run.signalled("on_complete", None)
