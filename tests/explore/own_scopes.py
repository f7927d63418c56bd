"""Scopes, as programs for the explorer: a call beside the end of the scope, or beside another call.

The clock of a drain is a virtual one, which does not move: a drain that loses its wake-up hangs, and is found.
"""

from __future__ import annotations

from typing import Any

from declared.values import pool

from reactive_runtime import Flow
from reactive_runtime.atomics import AtomicInteger
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import EmitResult, PublishProcessor
from reactive_runtime.scopes import Running, Scope, scope


class _InScope:
    """The block has been entered; `leave` leaves it, and keeps what it raises."""

    def __init__(self) -> None:
        self.scope: Scope = scope()
        self.scope.__enter__()
        self.clock = VirtualTimeExecutor()
        self.raised: BaseException | None = None

    def leave(self) -> None:
        try:
            self.scope.__exit__(None, None, None)
        except ExceptionGroup as error:
            self.raised = error
        assert not self.scope._members.there, "a flow was left behind"

    def started(self, flow: Flow[Any]) -> Running[Any] | None:
        try:
            return self.scope.start(flow)
        except RuntimeError:
            return None


class ScopeStartBesideEnd(_InScope):
    """A flow starts while the block is left: it is refused, or the block waits for it."""

    running: Running[Any] | None = None

    def actor_leaves(self) -> None:
        self.leave()
        assert self.running is None or self.running.future.done(), "the block did not wait"

    def actor_starts(self) -> None:
        self.running = self.started(Flow.range(2))

    def at_end(self) -> None:
        assert self.running is None or self.running.future.result() == 1


class ScopeFailureBesideStart(_InScope):
    """A flow fails while another one starts: the other is refused, or cancelled, and the error is raised."""

    def __init__(self) -> None:
        super().__init__()
        self.hot: PublishProcessor[int] = PublishProcessor()
        self.scope.start(self.hot)
        self.never: Running[Any] | None = None

    def actor_fails(self) -> None:
        self.hot.on_error(OSError("broken"))

    def actor_starts(self) -> None:
        self.never = self.started(Flow.never())

    def at_end(self) -> None:
        self.leave()
        assert isinstance(self.raised, ExceptionGroup), "the error was lost"
        assert [type(error) for error in self.raised.exceptions] == [OSError]
        assert self.never is None or self.never.future.done(), "a flow goes on after the failure of another one"


class ScopeDrainBesideEmission(_InScope):
    """A drain begins while elements are emitted: each one that was taken is delivered, and then the end."""

    def __init__(self) -> None:
        super().__init__()
        self.hot: PublishProcessor[int] = PublishProcessor(capacity=2)
        self.elements: list[int] = []
        self.taken: list[int] = []
        self.scope.start(self.hot, self.elements.append)

    def actor_drains(self) -> None:
        self.drained = self.scope.drain(1, clock=self.clock)

    def actor_emits(self) -> None:
        for n in range(2):
            if self.hot.emit(n) is EmitResult.OK:
                self.taken.append(n)

    def at_end(self) -> None:
        assert self.drained.done(), "the end of the flow was lost"
        self.leave()
        assert self.elements == self.taken, "an element that was taken was lost"
        assert self.raised is None


class ScopeDrainBesideCompletion(ScopeDrainBesideEmission):
    """A drain begins while the source completes."""

    def actor_emits(self) -> None:
        super().actor_emits()
        self.hot.on_complete()


class ScopeDrainBesidePool(_InScope):
    """A drain begins while a pool pulls a source: the elements that have left it are delivered."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[int] = []
        self.left = AtomicInteger()
        self.pool = pool()

    def numbers(self) -> Any:
        for n in range(2):
            self.left.add_and_get(1)
            yield n

    def actor_starts(self) -> None:
        self.scope.start(Flow.from_supplier(self.numbers).subscribe_on(self.pool), self.elements.append)
        self.leave()

    def actor_drains(self) -> None:
        self.scope.drain(1, clock=self.clock)

    def at_end(self) -> None:
        assert len(self.elements) == self.left.get(), "an element that has left the source was lost"
        assert self.raised is None


class ScopePauseBesideResume(_InScope):
    """One thread pauses and resumes, and another one emits and completes: nothing stays behind."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[int] = []
        self.hot: PublishProcessor[int] = PublishProcessor()
        self.running = self.scope.start(self.hot, self.elements.append)

    def actor_pauses(self) -> None:
        self.scope.pause()
        self.scope.resume()

    def actor_emits(self) -> None:
        self.hot.emit(0)
        self.hot.on_complete()

    def at_end(self) -> None:
        assert self.running.future.done(), "the flow is still paused"
        assert self.elements == [0]


class ScopeCancelBesideCompletion(_InScope):
    """A handle is cancelled while its flow completes: the flow has ended once, and the block is left."""

    def __init__(self) -> None:
        super().__init__()
        self.hot: PublishProcessor[int] = PublishProcessor()
        self.running = self.scope.start(self.hot)

    def actor_cancels(self) -> None:
        self.running.cancel()

    def actor_completes(self) -> None:
        self.hot.on_complete()

    def at_end(self) -> None:
        assert self.running.future.done(), "the end was lost"
        self.leave()
        assert self.raised is None


SCOPES = [
    ScopeStartBesideEnd,
    ScopeDrainBesideEmission,
    ScopeDrainBesideCompletion,
    ScopePauseBesideResume,
    ScopeCancelBesideCompletion,
]
LARGE_SCOPES = [ScopeFailureBesideStart, ScopeDrainBesidePool]
