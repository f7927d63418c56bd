"""What a flow is expected to do, step by step; with virtual time, hours in an instant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar

from reactive_runtime._core.runtime.arguments import at_least, check_callable, is_coroutine_function, seconds_of
from reactive_runtime._spec import MAX_DEMAND, Publisher
from reactive_runtime.executors import VirtualTimeExecutor, clock_of
from reactive_runtime.testing._protocol import (
    NOT_AWAITED,
    check_publisher,
    described,
    shown,
    unawaited,
)
from reactive_runtime.testing._step_run import Match, Run, Step

__all__ = ["StepVerifier"]

T = TypeVar("T")

PATIENCE: Final = 10.0


class StepVerifier(Generic[T]):
    """Steps to take with a publisher, and what to expect of each; nothing runs before `verify`.

    What happened, and was not expected, is an AssertionError that names the step and shows the signals. The end has to
    be expected too, or cancelled (`then_cancel`). `on_subscribe` may come later, on any thread.

    A rule that the publisher breaks meanwhile is an AssertionError that names the rule: elements beyond demand (1.1),
    signals that overlap (1.3), a signal after the end (1.7), one before `on_subscribe`, no `on_subscribe`, or a
    `subscribe` that raises (1.9), a second `on_subscribe` (2.12), None (2.13), a `cancel` or `request` that raises
    (3.15, 3.16). Signals that come after `verify` are not seen.

    Args:
        publisher: The publisher to verify.
        demand: How many elements are requested in `on_subscribe`, 0 or more.
        clock: A virtual clock, which the steps that wait move. The steps are taken with it as the clock of the context,
            so it is that of each operator that was given none, as with `executors.clock_of`. No operator of the flow
            needs to be given it. A step that moves the clock, that expects nothing, or that calls a function, first
            waits until what the flow has begun on pools and event loops is done, and so does what follows it: with
            boundaries the steps mean what they mean without. See `VirtualTimeExecutor`.

    Raises:
        TypeError: `publisher` has no `subscribe`, `demand` is no int, or `clock` can't be advanced.
        ValueError: `demand` is below 0.

    Demand:
        `demand` in `on_subscribe`, and what `then_request` says.

    Cancellation:
        Where the stream has not ended, it is cancelled: by `then_cancel`, at the first failure, and at the end.

    Thread:
        Steps are taken on the thread that calls `verify`. Signals may come on any thread. Those that come on this one,
        from a call that it is inside of, are compared as they come: an endless publisher can be cancelled.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.testing import StepVerifier
        >>> StepVerifier(Flow.range(3)).expect_next(0, 1).expect_next(2).expect_complete().verify()

        Virtual time:

        >>> from reactive_runtime.executors import VirtualTimeExecutor
        >>> hourly = StepVerifier(Flow.interval(3600).take(1), clock=VirtualTimeExecutor())
        >>> hourly.expect_no_event(3599).then_wait(1).expect_next(0).expect_complete().verify()

        Of an endless flow:

        >>> StepVerifier(Flow.just(7).repeat()).expect_next(7, 7).then_cancel().verify()

    Origin:
        `StepVerifier` of Reactor.
    """

    def __init__(
        self, publisher: Publisher[T], *, demand: int = MAX_DEMAND, clock: VirtualTimeExecutor | None = None
    ) -> None:
        check_publisher("StepVerifier", publisher)
        if is_coroutine_function(publisher.subscribe):
            raise TypeError(f"StepVerifier: {shown(publisher)}.subscribe is a coroutine function: {NOT_AWAITED}")
        if clock is not None and (isinstance(clock, type) or not callable(getattr(clock, "advance", None))):
            raise TypeError(f"StepVerifier: clock must be a VirtualTimeExecutor, not {shown(clock)}")
        self._publisher = publisher
        self._demand = at_least("StepVerifier", "demand", 0, demand)
        self._clock = clock
        self._steps: list[Step] = []
        self._cancels = False  # one of them is `then_cancel`

    def _step(
        self,
        text: str,
        match: Match | None = None,
        *,
        count: int = 1,
        act: Callable[[Run], object] | None = None,
        cancels: bool = False,
        silent: bool = False,
    ) -> Self:
        if match is not None and self._cancels:
            raise ValueError(f"{text} after then_cancel(): nothing is expected there; what still comes is dropped")
        self._cancels = self._cancels or cancels
        self._steps.append(Step(text, match, count, act, cancels, silent))
        return self

    def expect_next(self, *elements: T) -> Self:
        """The next elements are these.

        Args:
            *elements: What the elements are equal to, in their order.

        Returns:
            This verifier.
        """
        for element in elements:
            self._step(f"expect_next({shown(element)})", partial(_equal, "on_next", element))
        return self

    def expect_next_matches(self, predicate: Callable[[T], object]) -> Self:
        """The next element is one for which `predicate` is true.

        Args:
            predicate: Called with the element.

        Returns:
            This verifier.

        Raises:
            TypeError: `predicate` cannot be called.

        Thread:
            `predicate` is called on the thread that verifies.
        """
        check_callable("expect_next_matches", "predicate", predicate)
        return self._step("expect_next_matches()", partial(_matching, predicate))

    def expect_next_count(self, n: int) -> Self:
        """The next signals are `n` elements, whichever.

        Args:
            n: How many, 0 or more.

        Returns:
            This verifier.

        Raises:
            TypeError: `n` is no int.
            ValueError: `n` is below 0.
        """
        at_least("expect_next_count", "n", 0, n)
        return self._step(f"expect_next_count({n})", partial(_matching, None), count=n)

    def expect_complete(self) -> Self:
        """The next signal is the end.

        Returns:
            This verifier.
        """
        return self._step("expect_complete()", partial(_equal, "on_complete", None))

    def expect_error(self, kind: type[BaseException] = Exception, *, match: str = "") -> Self:
        """The next signal is the end, by an error.

        Args:
            kind: The class of the error.
            match: What its text has in it. "": any text.

        Returns:
            This verifier.

        Raises:
            TypeError: `kind` is no class of exceptions, or `match` is no str.
        """
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(f"expect_error: kind must be a class of exceptions, not {shown(kind)}")
        if not isinstance(match, str):
            raise TypeError(f"expect_error: match must be a str, not {type(match).__name__}")
        return self._step(f"expect_error({kind.__name__})", partial(_failure, kind, match))

    def expect_no_event(self, seconds: float) -> Self:
        """Nothing is signalled for `seconds`.

        Args:
            seconds: Seconds, from 0; of the virtual clock, where there is one.

        Returns:
            This verifier.

        Raises:
            TypeError: `seconds` is no number.
            ValueError: `seconds` is below 0, or not finite.
        """
        seconds_of("expect_no_event", "seconds", seconds)
        return self._step(f"expect_no_event({seconds:g})", act=lambda run: run.silence(seconds), silent=True)

    def then_wait(self, seconds: float) -> Self:
        """Move the virtual clock on by `seconds`.

        Args:
            seconds: Seconds, from 0.

        Returns:
            This verifier.

        Raises:
            TypeError: `seconds` is no number.
            ValueError: `seconds` is below 0, or not finite, or the verifier has no virtual clock.
        """
        seconds_of("then_wait", "seconds", seconds)
        if self._clock is None:
            raise ValueError("then_wait: there is no virtual clock to move: StepVerifier(..., clock=)")
        return self._step(f"then_wait({seconds:g})", act=lambda run: run.advance(seconds))

    def then_request(self, n: int) -> Self:
        """Ask for `n` more elements.

        Args:
            n: How many; it is passed on as it is, for the publisher to answer.

        Returns:
            This verifier.
        """
        return self._step(f"then_request({shown(n)})", act=lambda run: run.request(n))

    def then_cancel(self) -> Self:
        """Cancel; what came and was not expected by then is dropped, and nothing is expected after that.

        It may stand anywhere; no step that expects a signal may follow. Right behind `expect_next` it cancels from
        inside that signal, where the signal comes on the thread that verifies; at first, inside `on_subscribe`, before
        anything is requested.

        Returns:
            This verifier.
        """
        return self._step("then_cancel()", act=lambda run: run.cancel_now(), cancels=True)

    def then(self, fn: Callable[[], object]) -> Self:
        """Call `fn()`.

        Args:
            fn: The function to call. What it raises, `verify` raises; an AssertionError with the step and the signals.

        Returns:
            This verifier.

        Raises:
            TypeError: `fn` cannot be called.

        Thread:
            `fn` is called on the thread that verifies.
        """
        check_callable("then", "fn", fn)
        return self._step("then()", act=lambda run: run.calls(fn))

    def verify(self, *, timeout: float = PATIENCE) -> None:
        """Subscribe, and take the steps.

        Args:
            timeout: Seconds (of real time) for each signal that is waited for, and for `on_subscribe`. It does not
                bound a `subscribe`, `request` or `cancel` of the publisher that does not return: nothing can end a call
                on this thread. A test of such a publisher needs a limit of its test runner. After the end, no signal is
                waited for.

        Raises:
            AssertionError: A step saw something else, a predicate or a comparison raised (its error is the
                `__cause__`), the publisher broke a rule, or the end was neither expected nor cancelled.
            TypeError: `timeout` is no number.
            ValueError: `timeout` is below 0, or not finite.
        """
        __tracebackhide__ = True
        seconds_of("verify", "timeout", timeout)
        with nullcontext() if self._clock is None else clock_of(self._clock):
            failure = Run(self._steps, self._demand, self._clock, timeout).take(self._publisher)
        if failure is not None:
            raise failure


def _equal(signal: str, value: Any, came: str, what: Any) -> str | None:
    return None if came == signal and (what is value or what == value) else f"{described(came, what)} came"


def _matching(predicate: Callable[[Any], object] | None, came: str, what: Any) -> str | None:
    if came != "on_next":
        return f"{described(came, what)} came"
    if predicate is None:
        return None
    answer = predicate(what)
    return unawaited("the predicate", answer) or (None if answer else f"{shown(what)} does not match")


def _failure(kind: type[BaseException], match: str, came: str, what: Any) -> str | None:
    if came != "on_error":
        return f"{described(came, what)} came"
    if not isinstance(what, BaseException):
        return f"{described(came, what)} came, whose argument is no exception"
    if not isinstance(what, kind):
        return f"{shown(what)} came"
    return None if match in str(what) else f"{match!r} is not in {shown(what)}"
