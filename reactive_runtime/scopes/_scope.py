"""Scopes: flows that start in a block, and end with it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from reactive_runtime._core.drains.combinator import Clock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.error_carrier import own_copy
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._core.sources.core_flow import gated
from reactive_runtime._core.sources.naming import is_subscriber
from reactive_runtime._operators.flow_base import FlowBase, as_flow
from reactive_runtime._operators.side_effects import DoOnNext
from reactive_runtime._spec import Publisher, Subscriber
from reactive_runtime.scopes._member import Member, Signals
from reactive_runtime.scopes._members import Members

if TYPE_CHECKING:
    import asyncio

__all__ = ["Running", "Scope", "members_of", "scope"]

T = TypeVar("T")


class Running(Generic[T]):
    """A flow that a scope has started; see `Scope.start`.

    Its methods may be called from any thread, at any time.

    Args:
        member: The scope's record of the flow. A user gets a handle from `Scope.start`.
    """

    __slots__ = ("_member", "future")

    future: primitives.Future[T | None]
    """Done when the flow has ended, and no task of it is under way, with the last element; or with a copy of the error;
    or with a `CancelledError`."""

    def __init__(self, member: Member[T]) -> None:
        self._member: Member[T] = member
        self.future = member.future

    def cancel(self) -> None:
        """Cancel the flow: its subscriber gets at most the signal that is being delivered (1.8)."""
        self._member.cancel()

    def drain(self, within: float, *, clock: Clock | None = None) -> primitives.Future[None]:
        """Stop the sources of this flow, and let the elements in flight reach the subscriber; see `Scope.drain`.

        Args:
            within: How many seconds it has; 0 or more.
            clock: An executor with a clock, by which `within` is counted. None: the clock of this context.

        Returns:
            A future that is done when the flow has ended. If the flow is late, it fails, and with it the scope, with a
            TimeoutError, which this future has too.

        Raises:
            TypeError: `within` is no number, or `clock` has no clock.
            ValueError: `within` is negative or not finite.
        """
        return self._member.members.drain("Running.drain", [self._member], within, clock)


class Scope:
    """Flows that start in a block and end with it; made by `scope`.

    A `with` block, or an `async with` block, begins the scope. The scope ends when the block has ended and all flows
    have ended. Any thread may call its methods.
    """

    def __init__(self) -> None:
        self._members: Members = Members()
        self._block_cancelled: bool = False  # the event loop's

    # -- flows -------------------------------------------------------------------------------------------------

    @overload
    def start(self, flow: Publisher[T], on_next: Callable[[T], object]) -> Running[T]: ...

    @overload
    def start(self, flow: Publisher[T], on_next: Subscriber[T] | None = None) -> Running[T]: ...

    def start(self, flow: Publisher[T], on_next: Any = None) -> Running[T]:
        """Run a flow, which ends with the scope.

        An error of the flow, or of its subscriber, cancels the other flows, and the end of the block raises it.

        Args:
            flow: Any publisher.
            on_next: A function that gets each element, or a `Subscriber`. None: the scope ignores the elements.

        Returns:
            A handle, which cancels this flow, drains it, and has a future for its last element.

        Raises:
            TypeError: `flow` is no publisher, or `on_next` cannot be called.
            RuntimeError: The scope has not begun; it ends because a flow or the block has failed; or it has ended. In a
                scope that drains, the flow completes without an element.

        Demand:
            Unbounded. A `Subscriber` requests from its subscription.

        Cancellation:
            The handle cancels the flow, and so does `Scope.cancel`, an error of another flow, or an error of the block.

        Thread:
            As with `Flow.subscribe`: a flow without a boundary runs on this thread, inside this call. The gate at its
            sources costs each element less than 1 µs.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.scopes import scope
            >>> with scope() as s:
            ...     total = s.start(Flow.range(5).sum())
            >>> total.future.result()
            10

        Origin:
            `start_soon` of Trio's nurseries, `create_task` of `asyncio.TaskGroup`.
        """
        source = as_flow("Scope.start", "flow", flow)
        subscriber: Subscriber[Any] | None = None
        ran: FlowBase[Any] = source
        if is_subscriber(on_next) and not isinstance(on_next, type):
            subscriber = on_next
        elif on_next is not None:
            ran = source._then(DoOnNext(check_callable("Scope.start", "on_next", on_next), "start"))
        member: Member[T] = Member(self._members, source)
        behind_gate = cast("FlowBase[Any]", gated(ran, member.gate))  # flows make flows
        self._members.start(member, behind_gate, Signals(member, subscriber))
        return Running(member)

    def cancel(self) -> None:
        """Cancel all flows; no further one may start.

        The call does not interrupt the block, and the end of the block raises no error for it.
        """
        self._members.cancel("it was cancelled")

    def drain(self, within: float, *, clock: Clock | None = None) -> primitives.Future[None]:
        """Stop the sources of all flows, and let the elements in flight reach the subscribers.

        The flows request no more elements from their sources: they pull an iterator no more, take from a hot source the
        elements that wait for them, and cancel another library's publisher. Elements that have left a source go on
        through queues, pools and inner flows. A flow that starts from now on completes without an element. A paused
        scope drains too.

        This call returns at once; the end of the block waits for the flows.

        Args:
            within: How many seconds the flows have; 0 or more. A flow that is late fails with a TimeoutError, and the
                scope stops waiting for it.
            clock: An executor with a clock, by which `within` is counted. None: the clock of this context; see
                `executors.clock_of`.

        Returns:
            A future that is done when all flows have ended, or the time has passed. Its error is the TimeoutError of
            the first late flow. If a flow of this scope waits for the future, it gets a RuntimeError.

        Raises:
            TypeError: `within` is no number, or `clock` has no clock.
            ValueError: `within` is negative or not finite.
            RuntimeError: The block has not been entered.

        Thread:
            May be called on any thread, also inside a flow of the scope. A flow may signal its end on this thread, or
            on that of the clock.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.scopes import scope
            >>> with ThreadPoolExecutor(1) as pool, scope() as s:
            ...     endless = s.start(Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(pool))
            ...     s.drain(within=10).result()

        Origin:
            `DrainingControl` of Akka and Pekko Streams.
        """
        return self._members.drain("Scope.drain", None, within, clock)

    def pause(self) -> None:
        """Request no more elements from the sources; elements that have left a source go on."""
        self._members.valve.pause()

    def resume(self) -> None:
        """Request the elements that `pause` held back. A source without an executor continues on this thread."""
        self._members.valve.resume()

    def is_paused(self) -> bool:
        """Whether the scope is paused.

        Returns:
            True between `pause` and `resume`.
        """
        return self._members.valve.is_paused()

    # -- the block ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Scope:
        self._members.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(error)
        interrupt: BaseException | None = None
        while not self._members.end():
            try:
                self._members.until_empty().result()
            except BaseException as raised:  # a Ctrl-C; with the second one the flows are left behind
                if interrupt is not None or isinstance(raised, RuntimeError):
                    raise
                interrupt = raised
                self._members.cancel(f"its block was left by {type(raised).__name__}")
        self._raise(error, interrupt)

    async def __aenter__(self) -> Scope:
        import asyncio

        self.__enter__()
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            with self._members.changed:
                self._members.cancel_block = lambda: loop.call_soon_threadsafe(self._cancel_task, task)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        import asyncio

        with self._members.changed:
            self._members.cancel_block = None
        task = asyncio.current_task()
        cancelled, self._block_cancelled = self._block_cancelled, False
        if cancelled and task is not None and task.uncancel() == 0 and isinstance(error, asyncio.CancelledError):
            error = None  # this scope has cancelled its block, since a flow has failed: the error of the flow says so
        self._leave(error)
        interrupt: BaseException | None = None
        while not self._members.end():
            try:
                await asyncio.wrap_future(self._members.until_empty())
            except BaseException as raised:
                if interrupt is not None or isinstance(raised, RuntimeError):
                    raise
                interrupt = raised
                self._members.cancel(f"its block was left by {type(raised).__name__}")
        self._raise(error, interrupt)

    def _cancel_task(self, task: asyncio.Task[Any]) -> None:
        """Cancel the block of an `async with`, unless it has ended. On the event loop."""
        with self._members.changed:
            runs, self._members.cancel_block = self._members.cancel_block is not None, None
        if runs:
            self._block_cancelled = True
            task.cancel()

    def _leave(self, error: BaseException | None) -> None:
        """The block ends; `error`: what it raised."""
        with self._members.changed:
            drains = self._members.drains or self._members.signalled
        # An exit, as a former handler of a signal raises it, does not cut a drain short, which has a deadline.
        if error is not None and not (drains and not isinstance(error, Exception)):
            self._members.cancel(f"its block was left by {type(error).__name__}")

    def _raise(self, error: BaseException | None, interrupt: BaseException | None) -> None:
        """Raise the errors of the flows and of the block. An exit that the block raised goes on after this call."""
        with self._members.changed:
            errors = [own_copy(item) for item in self._members.errors]
        out = interrupt if error is None or isinstance(error, Exception) else error
        if out is not None:  # an exit
            for item in errors:
                dropping.error_dropped("a flow of a scope failed, and its block was left by an exit", item)
            if out is not error:
                raise out
            return
        count = f"{len(errors)} flow{'s' * (len(errors) != 1)} failed"
        if error is not None:
            raise BaseExceptionGroup("scope: its block raised" + f", and {count}" * bool(errors), [error, *errors])
        if errors:
            raise BaseExceptionGroup(f"scope: {count}", errors)


def members_of(scope: Scope) -> Members:
    """The flows of a scope."""
    return scope._members


def scope() -> Scope:
    """A scope: flows that start in its block end with the block.

    The end of the block waits until all its flows have ended, with their tasks on pools. An error of a flow cancels the
    other flows; an error of the block cancels all. The end of the block raises the errors as one `ExceptionGroup`, also
    if there is only one. It raises `KeyboardInterrupt` and other exits of the block as they are.

    A scope has one block. Scopes may nest: each waits for its own flows. An `async with` waits without blocking the
    event loop, and a flow that fails cancels its block, as in `asyncio.TaskGroup`. A flow that fails does not interrupt
    the block of a `with`.

    Returns:
        A `Scope`, for one `with` or one `async with`.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.scopes import scope
        >>> with scope() as s:
        ...     _ = s.start(Flow.range(2), print)
        0
        1

    Origin:
        The nurseries of Trio, `asyncio.TaskGroup`.
    """
    return Scope()
