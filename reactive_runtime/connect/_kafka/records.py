"""A record, and what a reader reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import length_hint
from typing import Any, Final, NamedTuple

from reactive_runtime.connect._elements.acked import Acked
from reactive_runtime.connect._kafka.cluster import Cluster
from reactive_runtime.connect._kafka.offsets import Offsets, Place, Run

# isort: split
from confluent_kafka import Message

__all__ = ["Record", "Row", "Topics", "rows_of"]


class Record(NamedTuple):
    """A record of a partition.

    Args:
        topic: Its topic.
        partition: The number of its partition.
        offset: Its place there.
        key: Its key; None: it has none.
        value: Its value; None: it deletes the key, where the topic is compacted.
        headers: The names and values of its headers.
        timestamp: Milliseconds since 1970; -1 where the record has none.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = -1


_new: Final = object.__new__
_new_tuple: Final = tuple.__new__
"""Make objects in a third of the time of a call of their class."""

_topic_of: Final = Message.topic
_number_of: Final = Message.partition
"""Of a message; `map` calls them without a frame of Python."""


class Row:
    """Records of one partition that were taken from the client, and are not all handed out. The drain owns it.

    An element is made when it is handed out. Of elements that are made ahead, some are alive whenever the garbage
    collector runs; it would take them for ones that stay, and look at all objects of the program again and again.

    Args:
        run: Their offsets.
        values: The values of elements.
        offsets: The offset that each of them settles.
    """

    __slots__ = ("_values", "elements", "run")

    def __init__(self, run: Run, values: Sequence[Any], offsets: Iterable[int]) -> None:
        self.run = run
        self._values = iter(values)
        self.elements = self._made(offsets)  # an iterator, which keeps its place

    def __len__(self) -> int:
        return length_hint(self._values)

    def _made(self, offsets: Iterable[int]) -> Iterator[Acked[Any]]:
        run = self.run
        for value, offset in zip(self._values, offsets, strict=True):
            place = _new(Place)
            place.run, place.offset = run, offset
            element = _new(Acked)
            element.value, element.claim = value, place
            yield element


def rows_of(messages: Sequence[Any], offsets: Offsets, *, as_lists: bool) -> list[Row]:
    """The elements of messages of the client.

    An element for each; or one for each row of messages of a partition, which is handled as a whole.
    """
    rows = []
    for run, records, numbers in _runs_of(messages, offsets):
        values, settled = ((records,), numbers[:1]) if as_lists else (records, numbers)
        run.assigned.add(run, settled, len(records))
        rows.append(Row(run, values, settled))
    return rows


def _runs_of(messages: Sequence[Any], offsets: Offsets) -> Iterator[tuple[Run, list[Record], Sequence[int]]]:
    """The records of each partition, and their offsets. Each record comes through here: the loops are few."""
    for row in _rows_of(messages):
        assigned = offsets.assigned((row[0].topic(), row[0].partition()))
        if assigned is None:
            continue
        if row[0].offset() < assigned.next:
            assigned = offsets.begin_anew(assigned.partition)
        topic, number = assigned.partition
        records = [
            _new_tuple(
                Record,
                (
                    topic,
                    number,
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.headers() or (),
                    message.timestamp()[1],
                ),
            )
            for message in row
        ]
        first, following = records[0].offset, records[-1].offset + 1
        whole = following - first == len(records)  # there are gaps where a topic is compacted
        numbers = range(first, following) if whole else [record.offset for record in records]
        yield Run(assigned, first, following), records, numbers


def _rows_of(messages: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Messages of one partition that stand together, and whose offsets rise."""
    if messages and len(set(map(_number_of, messages))) == 1 and len(set(map(_topic_of, messages))) == 1:
        yield from _rising(messages)
        return
    for _, of_topic in groupby(messages, _topic_of):
        for _, row in groupby(of_topic, _number_of):
            yield from _rising(list(row))


def _rising(row: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Messages of a partition, in parts where the offsets go back: its topic was deleted and made anew."""
    if row[-1].offset() - row[0].offset() + 1 == len(row):
        yield row
        return
    begin = 0
    for at in range(1, len(row)):
        if row[at].offset() <= row[at - 1].offset():
            yield row[begin:at]
            begin = at
    yield row[begin:]


class Topics(NamedTuple):
    """The topics, and the settings of their reader."""

    cluster: Cluster
    topics: tuple[str, ...]
    group: str
    start: str
    at_most: int
    as_lists: bool = False
