"""The offsets of a Kafka consumer against a model: what is committed, whatever threads and the broker do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from confluent_kafka import Message
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reactive_runtime.connect._elements.acked import Acked, Claim, claim_of
from reactive_runtime.connect._kafka.offsets import Offsets, Partition
from reactive_runtime.connect._kafka.records import rows_of

PARTITIONS = [("a", 0), ("a", 1), ("b", 0)]
chosen = st.sampled_from(PARTITIONS)


def messages_of(partition: Partition, numbers: Any) -> list[Any]:
    topic, number = partition
    kind: Any = Message
    return [kind(topic=topic, partition=number, offset=offset, value=b"x", timestamp=(1, 7)) for offset in numbers]


def elements_of(messages: list[Any], offsets: Offsets, *, as_lists: bool = False) -> list[Acked[Any]]:
    return [element for row in rows_of(messages, offsets, as_lists=as_lists) for element in row.elements]


class Group(RuleBasedStateMachine):
    """The model: of each partition the offset that the group knows, and what became of each element handed out."""

    def __init__(self) -> None:
        super().__init__()
        self.news = 0
        self.offsets = Offsets(self.count)
        self.known = dict.fromkeys(PARTITIONS, 0)  # at the broker
        self.handed: dict[Partition, list[str]] = {}  # since the assignment: "open", "handled" or "refused"
        self.begun: dict[Partition, int] = {}  # the offset that the assignment began with
        self.claims: list[tuple[Claim, Partition, int, object]] = []
        self.assignment: dict[Partition, object] = {}
        self.sent: list[tuple[Partition, int]] = []  # under way to the broker

    def count(self) -> None:
        self.news += 1

    def committable(self, partition: Partition) -> int:
        states = self.handed[partition]
        done = next((n for n, state in enumerate(states) if state != "handled"), len(states))
        return self.begun[partition] + done

    @rule(partition=chosen)
    def assign(self, partition: Partition) -> None:
        if partition not in self.handed:
            self.offsets.assign([partition])
            self.handed[partition], self.begun[partition] = [], self.known[partition]
            self.assignment[partition] = object()

    @rule(partition=chosen, lost=st.booleans())
    def revoke(self, partition: Partition, lost: bool) -> None:
        if partition in self.handed:
            if not lost:
                for one, offset in self.offsets.finished([partition]).items():
                    assert offset == self.committable(one) > self.known[one]
                    self.known[one] = offset
            del self.handed[partition], self.begun[partition], self.assignment[partition]
            self.sent = [(one, offset) for one, offset in self.sent if one != partition]
        self.offsets.revoke([partition])

    @rule(partition=chosen, n=st.integers(1, 5))
    def hand_out(self, partition: Partition, n: int) -> None:
        assigned = self.offsets.assigned(partition)
        assert (assigned is None) == (partition not in self.handed)
        following = self.begun.get(partition, 0) + len(self.handed.get(partition, ()))
        elements = elements_of(messages_of(partition, range(following, following + n)), self.offsets)
        if assigned is None:
            assert elements == []
            return
        assert [element.value.offset for element in elements] == list(range(following, following + n))
        for element in elements:
            index = len(self.handed[partition])
            self.handed[partition].append("open")
            self.claims.append((claim_of(element), partition, index, self.assignment[partition]))

    @precondition(lambda self: self.claims)
    @rule(at=st.integers(0, 1_000), refused=st.sampled_from([False, False, False, True]))
    def settle(self, at: int, refused: bool) -> None:
        claim, partition, index, assignment = self.claims.pop(at % len(self.claims))
        counts = self.assignment.get(partition) is assignment
        known = any("refused" in states for states in self.handed.values())
        before = self.news
        assert not claim.settled
        assert claim.settle(OSError("no disk") if refused else None)
        assert not claim.settle(None)
        assert self.news - before == (refused and counts and not known)
        if counts:
            self.handed[partition][index] = "refused" if refused else "handled"

    @rule()
    def commit(self) -> None:
        if not self.sent:
            self.sent = list(self.offsets.finished().items())
            assert dict(self.sent) == {
                one: self.committable(one)
                for one in self.handed
                if self.committable(one) > max(self.known[one], self.begun[one])
            }

    @rule(failed=st.booleans())
    def answer(self, failed: bool) -> None:
        sent, self.sent = self.sent, []
        for partition, offset in sent:
            if not failed:
                self.known[partition] = max(self.known[partition], offset)
                self.offsets.told(partition, offset)

    @invariant()
    def as_the_model(self) -> None:
        refusal = self.offsets.refusal()
        assert (refusal is not None) == any("refused" in states for states in self.handed.values())
        if refusal is not None:
            one = refusal.assigned.partition
            assert self.handed[one][refusal.offset - self.begun[one]] == "refused"


TestGroup = Group.TestCase


def handed_out(offsets: Offsets, partition: Partition, numbers: Any) -> list[Claim]:
    return [claim_of(element) for element in elements_of(messages_of(partition, numbers), offsets)]


def test_a_refused_offset_is_not_passed() -> None:
    offsets = Offsets(lambda: None)
    offsets.assign(PARTITIONS)
    first, second, third = handed_out(offsets, ("a", 0), range(3))
    first.settle(None)
    second.settle(OSError("no disk"))
    third.settle(None)
    assert offsets.finished() == {("a", 0): 1}


def test_a_refusal_after_one_of_a_partition_that_has_gone_is_news() -> None:
    news: list[None] = []
    offsets = Offsets(lambda: news.append(None))
    offsets.assign(PARTITIONS)
    for n, partition in enumerate(PARTITIONS):
        [claim] = handed_out(offsets, partition, range(1))
        claim.settle(OSError("no disk"))
        assert len(news) == n + 1
        refusal = offsets.refusal()
        assert refusal is not None
        assert refusal.assigned.partition == partition
        offsets.revoke([partition])
        assert offsets.refusal() is None


def test_a_late_answer_takes_no_offset_back() -> None:
    offsets = Offsets(lambda: None)
    offsets.assign(PARTITIONS)
    for claim in handed_out(offsets, ("a", 0), range(3)):
        claim.settle(None)
    assert offsets.finished() == {("a", 0): 3}
    offsets.told(("a", 0), 3)
    offsets.told(("a", 0), 1)
    assert offsets.finished() == {}


def test_offsets_with_gaps_are_passed_when_all_before_are_handled() -> None:
    offsets = Offsets(lambda: None)
    offsets.assign(PARTITIONS)
    first, second, third = handed_out(offsets, ("a", 0), (3, 7, 8))
    second.settle(None)
    assert offsets.finished() == {}
    first.settle(None)
    assert offsets.finished() == {("a", 0): 8}
    third.settle(None)
    assert offsets.finished() == {("a", 0): 9}
    assert offsets.held() == 0


def test_offsets_that_go_back_begin_anew() -> None:
    offsets = Offsets(lambda: None)
    offsets.assign([("a", 0)])
    [old, open] = handed_out(offsets, ("a", 0), (7, 8))
    assert old.settle(None)
    assert offsets.finished() == {("a", 0): 8}
    offsets.told(("a", 0), 8)
    [first, second, third] = handed_out(offsets, ("a", 0), (0, 1, 2))  # the topic was deleted and made anew
    assert open.settle(OSError("of the old topic"))
    offsets.told(("a", 0), 9)  # the answer to a commit of before
    assert offsets.refusal() is None
    for claim in (first, second, third):
        assert claim.settle(None)
    assert offsets.finished() == {("a", 0): 3}


def test_offsets_that_go_back_in_one_fetch_begin_anew() -> None:
    offsets = Offsets(lambda: None)
    offsets.assign([("a", 0)])
    claims = handed_out(offsets, ("a", 0), (7, 8, 0, 1))
    for claim in claims[2:]:
        assert claim.settle(None)
    assert offsets.finished() == {("a", 0): 2}


def test_messages_of_several_partitions_keep_their_order() -> None:
    offsets = Offsets(lambda: None)
    offsets.assign(PARTITIONS)
    messages = [
        *messages_of(("a", 0), (0, 1)),
        *messages_of(("b", 0), (0,)),
        *messages_of(("a", 1), (5,)),
        *messages_of(("c", 0), (0,)),
        *messages_of(("a", 0), (2,)),
    ]
    elements = elements_of(messages, offsets)
    assert [element.value[:3] for element in elements] == [
        ("a", 0, 0), ("a", 0, 1), ("b", 0, 0), ("a", 1, 5), ("a", 0, 2),
    ]  # fmt: skip
    assert offsets.held() == 5


def test_a_list_is_passed_as_a_whole() -> None:
    offsets = Offsets(lambda: None)
    offsets.assign(PARTITIONS)
    first, second = elements_of([*messages_of(("a", 0), (2, 4)), *messages_of(("a", 1), (0,))], offsets, as_lists=True)
    [third] = elements_of(messages_of(("a", 0), (5, 6)), offsets, as_lists=True)
    assert [record.offset for element in (first, second, third) for record in element.value] == [2, 4, 0, 5, 6]
    assert offsets.held() == 5
    assert third.acknowledge()
    assert offsets.finished() == {}
    assert first.acknowledge()
    assert not first.refuse()
    assert offsets.finished() == {("a", 0): 7}
    second.refuse(OSError("no disk"))
    assert offsets.finished() == {("a", 0): 7}
    refusal = offsets.refusal()
    assert refusal is not None
    assert (refusal.assigned.partition, refusal.offset) == (("a", 1), 0)


@pytest.mark.parametrize("refusing", [0, 1, 4], ids=["none refuses", "one refuses", "all refuse"])
def test_of_several_threads_one_settles_an_element(refusing: int) -> None:
    """And an offset that is refused is passed at no time."""
    offsets = Offsets(lambda: None)
    offsets.assign(PARTITIONS)
    threads, n = 4, 2_000
    elements: list[Acked[Any]] = elements_of(messages_of(("a", 0), range(n)), offsets)
    begun = Barrier(threads + 1)

    def settle(refuses: bool) -> list[int]:
        begun.wait()
        done = []
        for element in elements:
            won = element.refuse(OSError("no disk")) if refuses and element.value.offset % 100 == 99 else None
            if element.acknowledge() if won is None else won:
                done.append(element.value.offset * (-1 if won else 1))
        return done

    with ThreadPoolExecutor(threads) as pool:
        calls = [pool.submit(settle, number < refusing) for number in range(threads)]
        begun.wait()
        passed = [offsets.finished().get(("a", 0), 0) for _ in range(1_000)]
        done = [offset for call in calls for offset in call.result()]
    assert sorted(map(abs, done)) == list(range(n))
    first = min((-offset for offset in done if offset < 0), default=n)
    assert passed == sorted(passed)
    assert offsets.finished() == {("a", 0): first}
    assert max(passed) <= first
