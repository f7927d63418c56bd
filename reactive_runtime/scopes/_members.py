"""The flows of one scope, from the beginning of its block to the end. Users see it as `Scope`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final

from reactive_runtime._core.drains.combinator import Clock
from reactive_runtime._core.failures.exits import contained, each
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.runtime.arguments import check_clock, seconds_of
from reactive_runtime._executors.shared_clock import clock_in
from reactive_runtime._operators.backpressure import Valve
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime.scopes._member import Member, Signals

__all__ = ["Members"]

_inside: Final[ContextVar[tuple[Members, ...]]] = ContextVar("scopes", default=())
"""The scopes whose flows this code runs in."""


class Members:
    """The flows of a scope that have not ended, and what they raised."""

    def __init__(self) -> None:
        self.valve: Valve = Valve()
        self.changed: primitives.Condition = primitives.Condition()
        self.there: dict[Member[Any], None] = {}  # changed
        self.refusal: str = "its block has not been entered"  # changed; why no flow may start; empty: it may
        self.began: bool = False  # changed; final
        self.drains: bool = False  # changed; final: a drain of all flows has begun
        self.signalled: bool = False  # the main thread's, which handles signals; a drain of all flows will begin
        self.over: bool = False  # changed; final
        self.errors: list[BaseException] = []  # changed; in the order in which they came
        self.cancel_block: Callable[[], object] | None = None  # changed; of an `async with`, while it runs
        self._waits: list[primitives.Future[None]] = []  # changed; done when no flow is left
        self._at_end: list[Callable[[], object]] = []  # changed; called on the thread that leaves the block

    def begin(self) -> None:
        """The block is entered."""
        with self.changed:
            if self.began:
                raise RuntimeError("scope: its block was entered before, and a scope has one: make another scope()")
            self.began, self.refusal = True, ""

    def at_end(self, call: Callable[[], object]) -> str:
        """Call `call` when the scope ends. Returns the reason if the scope refuses: it has not begun, or has ended."""
        with self.changed:
            if self.began and not self.over:
                self._at_end.append(call)
                return ""
            return "the scope has ended" if self.over else "the block of the scope has not been entered"

    def start(self, member: Member[Any], flow: FlowBase[Any], signals: Signals) -> None:
        """Subscribe to `flow`, in a context of its own."""
        with self.changed:
            if self.refusal:
                raise RuntimeError(f"Scope.start: `{member.flow}` is not started: {self.refusal}")
            self.there[member] = None
            drains = self.drains
        if drains:
            member.gate.shut()
        copy_context().run(self._begin, member, flow, signals)

    def _begin(self, member: Member[Any], flow: FlowBase[Any], signals: Signals) -> None:
        activity.of_context.set((*activity.of_context.get(), member.work))
        _inside.set((*_inside.get(), self))
        member.start(flow, signals)

    def until_empty(self) -> primitives.Future[None]:
        """A future that is done when no flow is left."""
        wait: primitives.Future[None] = _Wait(self, "leaving its block")
        wait.set_running_or_notify_cancel()
        with self.changed:
            empty = not self.there
            if not empty:
                self._waits.append(wait)
        if empty:
            wait.set_result(None)
        return wait

    def end(self) -> bool:
        """End the scope. Returns False if a flow has not ended."""
        with self.changed:
            if self.there:
                return False
            self.over, self.refusal = True, "the scope has ended"
            at_end, self._at_end = self._at_end[::-1], []  # the last first: a handler of a signal restores the former
        each(at_end)
        return True

    def left(self, member: Member[Any]) -> None:
        """A flow has ended."""
        with self.changed:
            self.there.pop(member, None)
            waits: list[primitives.Future[None]] = []
            if not self.there:
                waits, self._waits = self._waits, []
        for wait in waits:
            wait.set_result(None)

    def fail(self, error: BaseException, failed: Member[Any]) -> None:
        """A flow has failed: cancel the others."""
        with self.changed:
            self.errors.append(error)
        self.cancel(f"a flow of it has failed with {type(error).__name__}", but=failed)
        with self.changed:
            cancel_block = self.cancel_block
        if cancel_block is not None:
            cancel_block()

    def cancel(self, refusal: str, but: Member[Any] | None = None) -> None:
        """Cancel the flows, and start no more: `refusal` says why."""
        with self.changed:
            self.refusal = self.refusal or refusal
            members = [member for member in self.there if member is not but]
        each([partial(contained, member.cancel) for member in members])

    def drain(
        self, caller: str, chosen: Sequence[Member[Any]] | None, within: float, clock: Clock | None
    ) -> primitives.Future[None]:
        """See `Scope.drain`; `chosen`: these flows only."""
        seconds_of(caller, "within", within)
        check_clock(caller, clock)
        drained = _Wait(self, "a drain")
        drained.set_running_or_notify_cancel()
        with self.changed:
            if not self.began:
                raise RuntimeError(f"{caller}: {self.refusal}")
            self.drains = self.drains or chosen is None  # a flow that starts after this shuts its gate itself
            members = list(self.there) if chosen is None else chosen
        left = _Left(members, drained)
        if not left.any():
            return drained
        too_late = partial(self._too_late, caller, chosen, within, left)
        timer = (clock_in() if clock is None else clock).schedule(within, partial(contained, too_late))
        drained.add_done_callback(lambda _: timer.cancel())
        for member in members:
            member.gate.closing = True  # all, before one wakes: flows that share a source stop it if all are to end
        each([partial(contained, member.gate.shut) for member in members])
        return drained

    def _too_late(self, caller: str, chosen: Sequence[Member[Any]] | None, within: float, left: _Left) -> None:
        """The deadline of a drain has passed. Make all errors first: the first flow that ends cancels the others."""
        with self.changed:
            members = list(self.there) if chosen is None else chosen
        late = [(member, member.late(caller, within)) for member in members]
        given_up: list[tuple[Member[Any], TimeoutError]] = []
        with self.changed:
            for member, error in late:
                if error is not None and member.error is None and not member.settled:
                    member.error = error
                    self.errors.append(error)
                    given_up.append((member, error))
        if given_up:
            left.was_late(given_up[0][1])
            each([partial(member.give_up, error) for member, error in given_up])
            self.cancel("a flow of it was not drained in time")


class _Wait(primitives.Future[None]):
    """A future that raises an error if a flow that it depends on waits for it."""

    def __init__(self, members: Members, what: str) -> None:
        super().__init__()
        self._members = members
        self._what = what

    def result(self, timeout: float | None = None) -> None:
        self._check()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._check()
        return super().exception(timeout)

    def _check(self) -> None:
        if not self.done() and self._members in _inside.get():
            raise RuntimeError(
                f"scope: this code runs in a flow of the scope, and {self._what} waits for the flow: begin the drain"
                " here, without waiting (`scope.drain(within=...)`), or wait on another thread"
            )


class _Left:
    """Counts the flows of a drain that have not ended."""

    def __init__(self, members: Sequence[Member[Any]], drained: primitives.Future[None]) -> None:
        self._lock = primitives.Lock()
        self._count = len(members) + 1  # _lock
        self._late: TimeoutError | None = None  # _lock; of the first that was
        self._drained = drained
        for member in members:
            member.future.add_done_callback(self._one_less)
        self._one_less(None)

    def any(self) -> bool:
        """Whether a flow is left."""
        return not self._drained.done()

    def was_late(self, error: TimeoutError) -> None:
        """A flow has not ended in time."""
        with self._lock:
            self._late = error

    def _one_less(self, _: object) -> None:
        with self._lock:
            self._count -= 1
            over, late = not self._count, self._late
        if over and late is not None:
            self._drained.set_exception(late)
        elif over:
            self._drained.set_result(None)
