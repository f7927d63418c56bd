"""The answers to the exercises in examples/hazards/exercises."""

from __future__ import annotations

from typing import Any

from examples.hazards.exercises.batches import Batches, BatchSubscription
from examples.hazards.exercises.merge import Merge, feeder
from examples.hazards.exercises.promise import Promise
from reactive_runtime.atomics import AtomicReference
from reactive_runtime.explore import call, publisher_scenario, request
from reactive_runtime.spec import MAX_DEMAND


class KeptBatch(BatchSubscription):
    """What was delivered is taken off: what came meanwhile stays."""

    def drain(self) -> None:
        batch = self.demand.get()
        while batch > 0:
            for _ in range(batch):
                if self.cancelled.get():
                    return
                self.subscriber.on_next(self.next)
                self.next += 1
            batch = self.demand.add_and_get(-batch)


class KeptBatches(Batches):
    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(KeptBatch(subscriber))


class OncePromise(Promise):
    """One state: nothing, asked for, there, done. The thread that completes the pair emits."""

    def __init__(self) -> None:
        super().__init__()
        self.state: AtomicReference[Any] = AtomicReference(None)

    def request(self, n: int, /) -> None:
        if not self.state.compare_and_set(None, "asked") and type(value := self.state.get()) is int:
            self.once(value, value)

    def set(self, value: int) -> None:
        if not self.state.compare_and_set(None, value):
            self.once("asked", value)

    def once(self, state: Any, value: int) -> None:
        if self.state.compare_and_set(state, "done"):
            self.emit(value)


class OneEnds(Merge):
    """The step that takes the count to zero is the one that ends."""

    def end(self) -> None:
        if self.open.add_and_get(-1) == 0:
            with self.signals:
                self.subscriber.on_complete()


ANSWERS = {
    "batches": publisher_scenario(KeptBatches, [request(1), request(1)]),
    "promise": publisher_scenario(OncePromise, [request(1), call("set(7)", lambda driven: driven.publisher.set(7))]),
    "merge": publisher_scenario(OneEnds, [feeder(1), feeder(2)], demand=MAX_DEMAND, ascending=False),
}
