"""Elements with acknowledgement, for the explorer: a claim is settled once, whichever thread comes first."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Message
from sinks import Sink

from reactive_runtime import Flow
from reactive_runtime.connect import Acked, AckedFlow, InOrder
from reactive_runtime.connect._elements.acked import Claim, claim_of
from reactive_runtime.connect._kafka.offsets import Offsets
from reactive_runtime.connect._kafka.records import rows_of
from reactive_runtime.hot import EmitResult, PublishProcessor


class AcknowledgedBesideRefused:
    """One thread acknowledges an element, another refuses it."""

    def __init__(self) -> None:
        self.settled: list[BaseException | None] = []
        self.counted: list[bool] = []
        self.element = Acked("a", self.settled.append)

    def actor_acknowledges(self) -> None:
        self.counted.append(self.element.acknowledge())

    def actor_refuses(self) -> None:
        self.counted.append(self.element.refuse())

    def at_end(self) -> None:
        assert len(self.settled) == 1
        assert sorted(self.counted) == [False, True]


class PartsSettledOnTwoThreads:
    """Two elements that were made of one message are settled on two threads; the last one settles the message."""

    def __init__(self) -> None:
        self.settled: list[BaseException | None] = []
        self.sink = Sink(2)
        source: PublishProcessor[Acked[str]] = PublishProcessor()
        AckedFlow(source).flat_map(Flow.from_iterable).elements().subscribe(self.sink)
        source.on_next(Acked("ab", self.settled.append))

    def actor_acknowledges(self) -> None:
        self.sink.elements[0].acknowledge()

    def actor_refuses(self) -> None:
        self.sink.elements[1].refuse(OSError("no disk"))

    def at_end(self) -> None:
        (error,) = self.settled
        assert type(error) is OSError


class HandledBesideCancel:
    """One thread emits an element, which is handled there, while another cancels."""

    def __init__(self) -> None:
        self.settled: list[BaseException | None] = []
        self.sink = Sink()
        self.source: PublishProcessor[Acked[str]] = PublishProcessor()
        AckedFlow(self.source).map(str.upper).batch(1).acknowledge().subscribe(self.sink)

    def actor_emits(self) -> None:
        element = Acked("a", self.settled.append)
        if self.source.emit(element) is not EmitResult.OK:
            element.refuse()

    def actor_cancels(self) -> None:
        self.sink.subscription.cancel()

    def at_end(self) -> None:
        assert len(self.settled) == 1


class PositionsOnTwoThreads:
    """Two threads acknowledge: commits come in order, and none is left out."""

    def __init__(self) -> None:
        self.commits: list[int] = []
        self.order: InOrder[int] = InOrder(self.commits.append)
        self.elements = [self.order.element(n, n) for n in range(3)]

    def actor_a(self) -> None:
        self.elements[0].acknowledge()
        self.elements[2].acknowledge()

    def actor_b(self) -> None:
        self.elements[1].acknowledge()

    def at_end(self) -> None:
        assert self.commits == sorted(set(self.commits))
        assert self.commits[-1] == 2
        assert self.order.open == 0


def claimed(offsets: Offsets, numbers: range) -> list[Claim]:
    """The claims of these offsets of the one partition."""
    kind: Any = Message
    messages = [kind(topic="t", partition=0, offset=number, value=b"x", timestamp=(1, 7)) for number in numbers]
    rows = rows_of(messages, offsets, as_lists=False)
    return [claim_of(element) for row in rows for element in row.elements]


class OffsetsBesideCommits:
    """Two threads acknowledge, while a third looks for what may be committed."""

    def __init__(self) -> None:
        self.commits: list[int] = []
        self.offsets = Offsets(lambda: None)
        self.offsets.assign([("t", 0)])
        self.claims = claimed(self.offsets, range(3))

    def commit(self) -> None:
        for partition, offset in self.offsets.finished().items():
            self.commits.append(offset)
            self.offsets.told(partition, offset)

    def actor_a(self) -> None:
        self.claims[0].settle(None)
        self.claims[2].settle(None)

    def actor_b(self) -> None:
        self.claims[1].settle(None)

    def actor_polls(self) -> None:
        self.commit()
        self.commit()

    def at_end(self) -> None:
        self.commit()
        assert self.commits == sorted(set(self.commits))
        assert self.commits[-1] == 3


class OffsetsBesideRebalance:
    """A partition goes, and comes back, while elements of before are acknowledged and refused: they count no more."""

    def __init__(self) -> None:
        self.refused = 0
        self.commits: list[int] = []
        self.offsets = Offsets(self.count)
        self.offsets.assign([("t", 0)])
        self.claims = claimed(self.offsets, range(2))

    def count(self) -> None:
        self.refused += 1

    def actor_acknowledges(self) -> None:
        self.claims[0].settle(None)

    def actor_refuses(self) -> None:
        self.claims[1].settle(OSError("no disk"))

    def actor_polls(self) -> None:
        self.commits += self.offsets.finished().values()
        self.offsets.revoke([("t", 0)])
        self.offsets.assign([("t", 0)])
        self.again = claimed(self.offsets, range(2))
        assert self.offsets.finished() == {}
        self.again[0].settle(None)

    def at_end(self) -> None:
        assert self.commits in ([], [1])
        assert self.refused in (0, 1)
        assert self.offsets.refusal() is None
        assert self.offsets.finished() == {("t", 0): 1}
        assert self.again[1].settle(OSError("no disk"))
        assert self.offsets.refusal() is not None


ACKED = [
    AcknowledgedBesideRefused,
    OffsetsBesideCommits,
    OffsetsBesideRebalance,
    PartsSettledOnTwoThreads,
    PositionsOnTwoThreads,
]
LARGE_ACKED = [HandledBesideCancel]
