"""What a flow is expected to do, step by step; with virtual time, hours in an instant."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar

from reactive_runtime._core import primitives
from reactive_runtime._core.arguments import at_least, check_callable, seconds_of
from reactive_runtime.executors import VirtualTimeExecutor, clock_of
from reactive_runtime.spec import MAX_DEMAND, Publisher, Subscription

__all__ = ["StepVerifier"]

T = TypeVar("T")

PATIENCE = 10.0


@dataclass(frozen=True)
class _Step:
    text: str
    run: Callable[[_Run], None]


class StepVerifier(Generic[T]):
    """Steps to take with a publisher, and what to expect of each; nothing runs before `verify`.

    What happened, and was not expected, is an AssertionError that names the step and shows all signals. The end has to
    be expected too, or cancelled (`then_cancel`).

    Args:
        publisher: The publisher to verify.
        demand: How many elements are requested at first, 0 or more.
        clock: A virtual clock, which the steps that wait move. The steps are taken with it as the clock of the context,
            so it is that of each operator that was given none, as with `executors.clock_of`.

    Raises:
        TypeError: `demand` is no int.
        ValueError: `demand` is below 0.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.testing import StepVerifier
        >>> StepVerifier(Flow.range(3)).expect_next(0, 1).expect_next(2).expect_complete().verify()

        Virtual time:

        >>> from reactive_runtime.executors import VirtualTimeExecutor
        >>> hourly = StepVerifier(Flow.interval(3600).take(1), clock=VirtualTimeExecutor())
        >>> hourly.expect_no_event(3599).then_wait(1).expect_next(0).expect_complete().verify()

    Origin:
        `StepVerifier` of Reactor.
    """

    def __init__(
        self, publisher: Publisher[T], *, demand: int = MAX_DEMAND, clock: VirtualTimeExecutor | None = None
    ) -> None:
        self._publisher = publisher
        self._demand = at_least("StepVerifier", "demand", 0, demand)
        self._clock = clock
        self._steps: list[_Step] = []

    def _step(self, text: str, run: Callable[[_Run], None]) -> Self:
        self._steps.append(_Step(text, run))
        return self

    def expect_next(self, *elements: T) -> Self:
        """The next elements are these.

        Args:
            *elements: What the elements are equal to, in their order.

        Returns:
            This verifier.
        """
        for element in elements:
            self._step(f"expect_next({element!r})", partial(_Run.expect, signal="on_next", value=element))
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
        return self._step("expect_next_matches()", lambda run: run.expect_match(predicate))

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
        return self._step(f"expect_next_count({n})", lambda run: run.expect_count(n))

    def expect_complete(self) -> Self:
        """The next signal is the end.

        Returns:
            This verifier.
        """
        return self._step("expect_complete()", lambda run: run.expect("on_complete", None))

    def expect_error(self, kind: type[BaseException] = Exception, *, match: str = "") -> Self:
        """The next signal is the end, by an error.

        Args:
            kind: The class of the error.
            match: What its text has in it. "": any text.

        Returns:
            This verifier.
        """
        return self._step(f"expect_error({kind.__name__})", lambda run: run.expect_error(kind, match=match))

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
        return self._step(f"expect_no_event({seconds:g})", lambda run: run.expect_silence(seconds))

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
        clock = self._clock
        if clock is None:
            raise ValueError("then_wait: there is no virtual clock to move: StepVerifier(..., clock=)")
        return self._step(f"then_wait({seconds:g})", lambda run: clock.advance(seconds))

    def then_request(self, n: int) -> Self:
        """Ask for `n` more elements.

        Args:
            n: How many; it is passed on as it is, for the publisher to answer.

        Returns:
            This verifier.
        """
        return self._step(f"then_request({n})", lambda run: _call(partial(run.subscription.request, n)))

    def then_cancel(self) -> Self:
        """Cancel; nothing is expected after that.

        Returns:
            This verifier.
        """
        return self._step("then_cancel()", lambda run: run.cancel())

    def then(self, fn: Callable[[], object]) -> Self:
        """Call `fn()`.

        Args:
            fn: The function to call. What it raises, `verify` raises.

        Returns:
            This verifier.

        Raises:
            TypeError: `fn` cannot be called.

        Thread:
            `fn` is called on the thread that verifies.
        """
        check_callable("then", "fn", fn)
        return self._step("then()", lambda run: _call(fn))

    def verify(self, *, timeout: float = PATIENCE) -> None:
        """Subscribe, and take the steps.

        Args:
            timeout: Seconds (of real time) for each signal that is waited for.

        Raises:
            AssertionError: A step saw something else, or the end was neither expected nor cancelled.
        """
        with nullcontext() if self._clock is None else clock_of(self._clock):
            self._verify(timeout)

    def _verify(self, timeout: float) -> None:
        run = _Run(self._clock, timeout)
        self._publisher.subscribe(run.subscriber())
        if self._demand:
            run.subscription.request(self._demand)
        try:
            for number, step in enumerate(self._steps, start=1):
                try:
                    step.run(run)
                except AssertionError as error:
                    raise AssertionError(f"step {number}, {step.text}: {error}{run.history()}") from None
            run.expect_end()
        finally:
            run.cancel()


class _Run:
    """One verification."""

    def __init__(self, clock: VirtualTimeExecutor | None, timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._changed = primitives.Condition()
        self._events: deque[tuple[str, Any]] = deque()  # _changed; not yet expected
        self._seen: list[str] = []  # _changed
        self.subscription: Subscription
        self._over = False  # the end was expected, or cancelled

    def subscriber(self) -> _Noting:
        return _Noting(self)

    def note(self, signal: str, value: Any) -> None:
        with self._changed:
            self._seen.append(signal if value is None else f"{signal}({value!r})")
            self._events.append((signal, value))
            self._changed.notify_all()

    def _next(self) -> tuple[str, Any]:
        with self._changed:
            there = self._changed.wait_for(lambda: bool(self._events), self._timeout)
            assert there, f"nothing came in {self._timeout:g} s"
            return self._events.popleft()

    def expect(self, signal: str, value: Any) -> None:
        came, what = self._next()
        assert (came, what) == (signal, value), f"{_text(came, what)} came"
        self._over = self._over or signal != "on_next"

    def expect_match(self, predicate: Callable[[Any], object]) -> None:
        came, what = self._next()
        assert came == "on_next", f"{_text(came, what)} came"
        assert predicate(what), f"{what!r} does not match"

    def expect_count(self, n: int) -> None:
        for _ in range(n):
            self.expect_match(lambda _: True)

    def expect_error(self, kind: type[BaseException], match: str) -> None:
        came, what = self._next()
        assert came == "on_error", f"{_text(came, what)} came"
        assert isinstance(what, kind), f"{what!r} came"
        assert match in str(what), f"{match!r} is not in {what!r}"
        self._over = True

    def expect_silence(self, seconds: float) -> None:
        if self._clock is not None:
            self._clock.advance(seconds)
            seconds = 0
        with self._changed:
            self._changed.wait_for(lambda: bool(self._events), seconds)
            assert not self._events, f"{_text(*self._events[0])} came"

    def expect_end(self) -> None:
        with self._changed:
            left = list(self._events)
        assert not left, f"after the last step, {_text(*left[0])} came{self.history()}"
        assert self._over, f"the end was neither expected nor cancelled{self.history()}"

    def cancel(self) -> None:
        self._over = True
        self.subscription.cancel()

    def history(self) -> str:
        with self._changed:
            return f"; all signals: {', '.join(self._seen) or 'none'}"


def _call(fn: Callable[[], object]) -> None:
    fn()


def _text(signal: str, value: Any) -> str:
    return signal if value is None else f"{signal}({value!r})"


class _Noting:
    """The subscriber, which notes each signal."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._run.subscription = subscription

    def on_next(self, element: Any, /) -> None:
        self._run.note("on_next", element)

    def on_error(self, error: BaseException, /) -> None:
        self._run.note("on_error", error)

    def on_complete(self) -> None:
        self._run.note("on_complete", None)
