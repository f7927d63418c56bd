"""`circuit_breaker`: refuses calls to a service that fails, until the service has had time to recover."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from reactive_runtime._core.drains.combinator import PENDING, Clock, Elements
from reactive_runtime._core.failures.error_carrier import carried
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import When, at_least, check_clock, failures, seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._operators.error_handling import Again
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime.errors import CircuitOpenError

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["CircuitBreaker", "CircuitOperators"]

T_co = TypeVar("T_co", covariant=True)

State = Literal["closed", "open", "half-open"]
Outcome = Literal["answer", "failure", "none"]


class CircuitBreaker:
    """Counts the failures of a service, and refuses subscriptions while it fails; shared by flows that call it.

    A closed breaker opens after `failures` failures within `window`. An open breaker refuses subscriptions. After
    `reset_after` it is half-open, and lets one subscription try: if this one completes, the breaker closes; if it
    fails, the breaker opens again.

    The breaker ignores the end of a subscription that began before the last change of state. It stays half-open until
    the subscription that tries has ended: limit its time, with `timeout` or `deadline` before `circuit_breaker`.

    Args:
        failures: How many failures within `window` open it; 1 or more.
        window: For how many seconds a failure counts; above 0.
        reset_after: For how many seconds it stays open; above 0.
        when: Which errors are failures of the service: a class of exceptions, a tuple of classes, or a function of the
            error. Any other error counts as an answer of the service, as a completion does.
        clock: Tells the time: `VirtualTimeExecutor` in tests. None: the monotonic clock.

    Raises:
        TypeError: An argument has another type.
        ValueError: `failures` is below 1, or `window` or `reset_after` is not above 0, or not finite.

    Example:
        >>> from reactive_runtime import CircuitBreaker
        >>> CircuitBreaker(failures=3).state
        'closed'
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        window: float = 60.0,
        reset_after: float = 30.0,
        when: When = Exception,
        clock: Clock | None = None,
    ) -> None:
        self._most = at_least("CircuitBreaker", "failures", 1, failures)
        self._window = seconds_of("CircuitBreaker", "window", window, positive=True)
        self._reset_after = seconds_of("CircuitBreaker", "reset_after", reset_after, positive=True)
        self._when = _failures("CircuitBreaker", when)
        check_clock("CircuitBreaker", clock)
        self._now: Callable[[], float] = primitives.monotonic if clock is None else clock.now
        self._lock = primitives.Lock()
        self._failed: deque[float] = deque()  # _lock; the times of the failures that count, while it is closed
        self._opened: float | None = None  # _lock; when it opened; None: it is closed
        self._trying = False  # _lock; while it is not closed: a subscription tries
        self._round = 0  # _lock; how often the state has changed

    @property
    def state(self) -> State:
        """`closed`: subscriptions pass; `open`: they are refused; `half-open`: one may try, or tries."""
        now = self._now()
        with self._lock:
            if self._opened is None:
                return "closed"
            return "half-open" if self._trying or now >= self._opened + self._reset_after else "open"

    def _enter(self, operator: str) -> int:
        """A subscription begins. Returns the round it belongs to. Raises CircuitOpenError."""
        now = self._now()
        with self._lock:
            opened, trying = self._opened, self._trying
            if opened is None:
                return self._round
            left = opened + self._reset_after - now
            if left <= 0 and not trying:
                self._trying = True
                self._round += 1
                return self._round
        why = "one subscription tries whether it works again" if left <= 0 else f"the next try is in {left:.3g} s"
        raise CircuitOpenError(f"{operator}: the circuit is open after {self._most} failures; {why}")

    def _leave(self, round: int, outcome: Outcome) -> None:
        """A subscription of that round is over."""
        now = self._now()
        with self._lock:
            if round != self._round:
                return
            if self._opened is not None:
                self._trying = False
                if outcome == "none":
                    return  # the next one tries
                self._round += 1
                self._opened = now if outcome == "failure" else None
            elif outcome == "failure":
                failed = self._failed
                failed.append(now)
                while failed[0] <= now - self._window:
                    failed.popleft()
                if len(failed) >= self._most:
                    failed.clear()
                    self._opened = now
                    self._round += 1

    def __repr__(self) -> str:
        return f"<CircuitBreaker {self.state}>"


_failures: Final = failures  # an argument has this name


class CircuitOperators(FlowBase[T_co]):
    """`circuit_breaker`: refuses calls to a service that fails."""

    __slots__ = ()

    def circuit_breaker(self, breaker: CircuitBreaker) -> Flow[T_co]:
        """The source; while `breaker` is open, a CircuitOpenError at once, without a subscription to the source.

        The breaker counts each subscription once, when it ends. To count each call to a service, put `circuit_breaker`
        on the flow of the call, inside `flat_map` or `on_error_continue`.

        Args:
            breaker: Counts the failures; all flows that call one service share it.

        Returns:
            A flow of the elements of the source, with its end. A CircuitOpenError comes without demand, and does not
            count as a failure of the source. An error that the breaker's `when` raises ends the flow.

        Raises:
            TypeError: `breaker` is no CircuitBreaker.

        Demand:
            Passes through.

        Cancellation:
            Passes through. A cancelled subscription counts as an answer if it has delivered an element; otherwise it
            does not count, and if it was the one that tries, the next one tries.

        Thread:
            The breaker's `when` is called on the thread on which the source fails.

        Example:
            >>> from reactive_runtime import CircuitBreaker, Flow
            >>> breaker = CircuitBreaker(failures=2)
            >>> call = Flow.error(OSError("down")).circuit_breaker(breaker).map_error(lambda error: OSError(str(error)))
            >>> for _ in range(3):
            ...     _ = call.subscribe(print, on_error=lambda error: print(str(error)[:41]))
            down
            down
            circuit_breaker(): the circuit is open af

        Origin:
            `CircuitBreaker` of resilience4j and of Pekko.
        """
        if not isinstance(breaker, CircuitBreaker):
            raise TypeError(f"circuit_breaker: breaker must be a CircuitBreaker, not {instead(breaker)}")
        return combinator_flow("circuit_breaker()", lambda: _Circuit(self, breaker), self)


class _Circuit(Again):
    def __init__(self, source: FlowBase[Any], breaker: CircuitBreaker) -> None:
        super().__init__(source)
        self.breaker = breaker
        self.round: int | None = None  # the owner's; that of a subscription under way
        self.answered = False  # the owner's; it has given an element

    def elements(self) -> Elements:
        try:
            self.round = self.breaker._enter(self.title)
        except CircuitOpenError as error:
            raise self.fault(error)  # noqa: B904  # the same error
        run = self.run(self.source)
        while True:
            try:
                element = next(run)
            except StopIteration as end:
                failure: Exception | None = end.value
                break
            self.answered = self.answered or element is not PENDING
            yield element
        failed = failure is not None and bool(self.asked(self.breaker._when, failure))
        self.leave_round("failure" if failed else "answer")
        if failure is not None:
            raise carried(failure)

    def leave_round(self, outcome: Outcome) -> None:
        """The subscription to the source is over."""
        round, self.round = self.round, None
        if round is not None:
            self.breaker._leave(round, outcome)

    def closed(self) -> None:
        super().closed()
        self.leave_round("answer" if self.answered else "none")
