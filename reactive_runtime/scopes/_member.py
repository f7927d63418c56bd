"""One flow of a scope: whether it has ended, and what it still waits for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from reactive_runtime._core.failures.error_carrier import own_copy
from reactive_runtime._core.failures.exits import contained
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.queues.upstream import Relayed
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.runtime.arguments import not_none, signalled_error
from reactive_runtime._core.timeout_reason import awaited_by, kept_by
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._spec import MAX_DEMAND, Subscriber, Subscription
from reactive_runtime.scopes._gate import ScopeGate

if TYPE_CHECKING:
    from reactive_runtime.scopes._members import Members

__all__ = ["Member", "Signals", "Work"]

T = TypeVar("T")


class Work(activity.Activity):
    """The tasks under way for one flow of a scope."""

    spreads = False

    def __init__(self, at_rest: Callable[[], object]) -> None:
        super().__init__()
        self._at_rest = at_rest

    def rests(self) -> bool:
        """Whether no task of the flow is under way."""
        with self._changed:
            return not self._under_way

    def where(self) -> list[str]:
        """A text that says where the tasks are."""
        with self._changed:
            tasks = list(self._under_way)
        return [task.where() for task in tasks[: activity.SHOWN]]

    def end(self, task: activity.UnderWay) -> None:
        super().end(task)
        if self.rests():
            self._at_rest()


class Member(Generic[T]):
    """One flow of a scope. Any thread calls its methods, without a lock."""

    __slots__ = (
        "_last",
        "_signalled",
        "_subscription",
        "_thread",
        "cancelled",
        "error",
        "flow",
        "future",
        "gate",
        "members",
        "settled",
        "work",
    )

    def __init__(self, members: Members, flow: FlowBase[T]) -> None:
        """`flow`: as the user has written it."""
        self.members: Members = members
        self.flow: FlowBase[T] = flow
        self.gate: ScopeGate = ScopeGate(members.valve)
        self.work: Work = Work(self._check)
        self.future: primitives.Future[T | None] = primitives.Future()
        self.future.set_running_or_notify_cancel()  # `cancel` of the future would not end the flow
        self._last: T | None = None  # the signals own it, and the thread that settles it after them
        # The lock of the scope, `Members.changed`, owns the rest.
        self._subscription: PulledSubscription | None = None  # set once, by `on_subscribe`
        self._thread: int = primitives.get_ident()  # the thread that is inside `start`; 0: it has returned
        self._signalled: bool = False  # the last signal has returned
        self.cancelled: bool = False  # the subscription has heard of it
        self.error: BaseException | None = None
        self.settled: bool = False  # final

    def cancel(self) -> None:
        """See `Running.cancel`."""
        with self.members.changed:
            subscription = self._subscription
            if self._signalled or self.settled:
                return
            if subscription is None:
                self.cancelled = True  # `on_subscribe` sees it
                return
        subscription.cancel()
        with self.members.changed:
            self.cancelled = True  # only now: a drain that rests, and has heard of it, is closed
        self._check()

    # -- how it runs -------------------------------------------------------------------------------------------

    def start(self, flow: FlowBase[Any], signals: Signals) -> None:
        """Subscribe. Called once, in a context of its own."""
        try:
            flow._run(signals)
        except BaseException:
            with self.members.changed:
                self.cancelled = True  # an exit on this thread: it goes on up, and has closed the drain
            raise
        finally:
            with self.members.changed:
                self._thread = 0
            self._check()

    def subscribed(self, subscription: Subscription) -> bool:
        """Keep the subscription. Returns False if the flow was cancelled before."""
        drain = Relayed.unwrapped(subscription)
        assert isinstance(drain, PulledSubscription)
        with self.members.changed:
            self._subscription = drain
            return not self.cancelled

    def failed(self, error: BaseException) -> None:
        """The flow, or its subscriber, has failed: cancel the other flows."""
        with self.members.changed:
            if self.error is not None:  # of a flow that was late, or whose subscriber has raised
                return
            self.error = error
        self.members.fail(error, self)

    def raised(self, error: BaseException) -> None:
        """The subscriber has raised an error on this thread, which owns the drain, and now ends it."""
        with self.members.changed:
            self.cancelled = True
        self.failed(error)
        self._check()

    def came(self, element: T) -> None:
        """Keep the last element so far."""
        self._last = element

    def ended(self) -> None:
        """The last signal has returned."""
        with self.members.changed:
            self._signalled = True
        self._check()

    def _check(self) -> None:
        """Settle the future if the flow has ended. Any thread, without a lock."""
        with self.members.changed:
            if self.settled or self._thread:
                return
            subscription, signalled, cancelled = self._subscription, self._signalled, self.cancelled
        if not signalled:
            if not cancelled:
                return
            if subscription is not None and not subscription.rests(self._check):
                return
        if self.work.rests():
            self._settle()

    def _settle(self) -> None:
        with self.members.changed:
            if self.settled:
                return
            self.settled = True
            error, ended = self.error, self._signalled
        if error is not None:
            self.future.set_exception(own_copy(error))
        elif ended:
            self.future.set_result(self._last)
        else:
            self.future.set_exception(CancelledError("the flow was cancelled, by its scope or by its handle"))
        self.members.left(self)

    def late(self, caller: str, seconds: float) -> TimeoutError | None:
        """The error of a flow that has not ended in time; None: it has ended."""
        with self.members.changed:
            if self.settled:
                return None
            subscription, thread = self._subscription, self._thread
        parts = [] if subscription is None else [awaited_by(subscription)]
        parts += self.work.where()
        if thread:
            parts.append(kept_by(subscription, thread))
        return TimeoutError(f"{caller}: `{self.flow}` had not ended in {seconds:g} s: {'; '.join(parts)}")

    def give_up(self, error: TimeoutError) -> None:
        """End the flow with `error`, and wait no longer, even if a user's function keeps its thread."""
        with self.members.changed:
            subscription = self._subscription
        try:
            if subscription is not None:
                subscription.context.copy().run(contained, subscription.fail, error)
        finally:
            self._settle()


class _Leash(Relayed):
    """The subscription that a user's subscriber gets: the scope sees when it is cancelled."""

    __slots__ = ("_member", "subscriber", "subscription")

    def __init__(self, subscriber: Subscriber[Any], subscription: Subscription, member: Member[Any]) -> None:
        self.subscriber = subscriber
        self.subscription = subscription
        self._member = member

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        self.subscription.request(n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._member.cancel()


class Signals:
    """The scope's subscriber to a flow. It passes the signals on to the user's subscriber, if there is one."""

    shown_as: Final = "scope"

    __slots__ = ("_member", "_subscriber", "_subscription")

    def __init__(self, member: Member[Any], subscriber: Subscriber[Any] | None) -> None:
        self._member = member
        self._subscriber = subscriber
        self._subscription: Subscription | None = None  # the signals own it, which are serial (1.3)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        if self._subscription is not None:
            subscription.cancel()  # 2.5
            return
        self._subscription = subscription
        goes_on = self._member.subscribed(subscription)
        if not goes_on:
            subscription.cancel()
        elif self._subscriber is None:
            subscription.request(MAX_DEMAND)
        else:
            leash = _Leash(self._subscriber, subscription, self._member)
            self._pass_on(partial(self._subscriber.on_subscribe, leash))

    def on_next(self, element: Any, /) -> None:
        not_none("on_next", element)
        self._member.came(element)
        if self._subscriber is not None:
            self._pass_on(partial(self._subscriber.on_next, element))

    def on_error(self, error: BaseException, /) -> None:
        error = signalled_error(error, "the publisher")
        self._member.failed(error)
        try:
            if self._subscriber is not None:
                self._pass_on(partial(self._subscriber.on_error, error))
        finally:
            self._member.ended()

    def on_complete(self) -> None:
        try:
            if self._subscriber is not None:
                self._pass_on(self._subscriber.on_complete)
        finally:
            self._member.ended()

    def _pass_on(self, signal: Callable[[], object]) -> None:
        """Signal to the user's subscriber. If it raises an error, the flow is cancelled (2.13), and has failed."""
        try:
            signal()
        except BaseException as error:
            self._member.raised(error)
            raise
