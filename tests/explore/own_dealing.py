"""`partition` and `balance`, for the explorer: their subscribers come, ask and leave beside the elements."""

from __future__ import annotations

from declared.values import odd
from sinks import Sink

from reactive_runtime import Flow
from reactive_runtime.hot import PublishProcessor


class WorkerLeavesBesideEmission:
    """One thread emits, another cancels a worker that waits for an element, and the other worker gets the rest."""

    def __init__(self) -> None:
        self.source: PublishProcessor[int] = PublishProcessor()
        self.leaves, self.stays = Sink(), Sink()
        for worker, sink in zip(self.source.balance(2, prefetch=1), (self.leaves, self.stays), strict=True):
            worker.subscribe(sink)

    def actor_emits(self) -> None:
        for n in range(2):
            self.source.on_next(n)
        self.source.on_complete()

    def actor_leaves(self) -> None:
        self.leaves.subscription.cancel()

    def at_end(self) -> None:
        assert sorted(self.leaves.elements + self.stays.elements) == [0, 1]
        assert self.stays.end == ("on_complete",)


class WorkerAsksBesideEmission(WorkerLeavesBesideEmission):
    """One thread emits; the demand of one worker comes late, beside it, and the other has enough for one."""

    def __init__(self) -> None:
        self.source = PublishProcessor()
        self.leaves, self.stays = Sink(1), Sink(0)
        for worker, sink in zip(self.source.balance(2, prefetch=1), (self.leaves, self.stays), strict=True):
            worker.subscribe(sink)

    def actor_leaves(self) -> None:
        self.stays.subscription.request(2)


class WorkerParksBesideAnother:
    """A worker of a merge finds nothing, is woken for an element, and another takes that before it looks again."""

    def __init__(self) -> None:
        self.source: PublishProcessor[int] = PublishProcessor()
        self.parks, self.takes = Sink(0), Sink(0)
        first, second = self.source.balance(2, prefetch=1)
        first.merge_with(Flow.never()).subscribe(self.parks)
        second.subscribe(self.takes)

    def actor_asks(self) -> None:
        self.parks.subscription.request(2)

    def actor_emits(self) -> None:
        self.source.on_next(0)

    def actor_takes(self) -> None:
        self.takes.subscription.request(1)

    def at_end(self) -> None:
        self.source.on_next(1)
        self.source.on_next(2)
        assert sorted(self.parks.elements + self.takes.elements) == [0, 1, 2]


class PartsGetSubscribers:
    """The two flows get their subscribers on two threads, one of which cancels."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.flows = Flow.defer(lambda: self.begun.append(1) or Flow.range(2)).partition(odd)  # type: ignore[func-returns-value]
        self.odds, self.evens = Sink(), Sink()

    def actor_a(self) -> None:
        self.flows[0].subscribe(self.odds)
        self.odds.subscription.cancel()

    def actor_b(self) -> None:
        self.flows[1].subscribe(self.evens)

    def at_end(self) -> None:
        assert self.begun in ([], [1])
        if self.begun:
            assert (self.evens.elements, self.evens.end) == ([0], ("on_complete",))


DEALING = [WorkerParksBesideAnother, PartsGetSubscribers]
LARGE_DEALING = [WorkerLeavesBesideEmission, WorkerAsksBesideEmission]
