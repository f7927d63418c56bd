"""Server-Sent Events as bytes: a parser beside one that has the whole text, and what is written comes back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reactive_runtime.connect._http.event_parser import LONGEST_RETRY, EventParser, LineParser
from reactive_runtime.connect._http.sse import Event, fits_header, record, text_of

MOST = 1_000_000


def whole(data: bytes) -> tuple[list[Event], str, float | None]:
    """The events, the last id and the retry of a whole stream, line by line as the specification has it."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    *lines, _unfinished = re.split("\r\n|\n|\r", text)
    events: list[Event] = []
    buffer, kind, id_buffer, last_id = "", "", "", ""
    retry: float | None = None
    for line in lines:
        if line == "":
            last_id = id_buffer
            if buffer:
                events.append(Event(buffer[:-1], kind or "message", last_id or None))
            buffer = kind = ""
            continue
        if line[0] == ":":
            continue
        field, colon, value = line.partition(":")
        if colon and value.startswith(" "):
            value = value[1:]
        if field == "event":
            kind = value
        elif field == "data":
            buffer += value + "\n"
        elif field == "id" and "\0" not in value:
            id_buffer = value
        elif field == "retry" and re.fullmatch("[0-9]+", value):
            retry = min(int(value) / 1000, LONGEST_RETRY)
    return events, last_id, retry


def in_chunks(data: bytes, cuts: list[int]) -> tuple[list[Event], str, float | None]:
    parser, events, at = EventParser(MOST), [], 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        events += parser.feed(data[at:cut])
        at = cut
    assert not parser.failed
    return events, parser.last_id, parser.retry


PIECES = [
    b"\r", b"\n", b"\r\n", b"\n\n", b":", b": ", b" ", b"data", b"data:", b"data: x", b"event: e", b"event", b"id: 7",
    b"id", b"id: a\0b", b"retry: 10", b"retry: x", b"retry:\xd9\xa1", b"retry: 99999999999999999999", b"other: y",
    b"\xef\xbb\xbf", b"\xc3\xa4", b"\xc3", b"\xff", b"\0", b"\xe2\x80\xa8", b"\x0b", b"\x85", b"text",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join), st.lists(st.integers(0, 10_000), max_size=12))
@example(b"\xef\xbb\xbfdata: x\r\n\r\n", [1, 2, 3, 11, 12, 13])
@example(b"data: \xc3\xa4\r\rdata\r\n\n", [7, 9, 10, 15])
@example(b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n", [])
def test_any_split_gives_the_same_events(data: bytes, cuts: list[int]) -> None:
    assert in_chunks(data, cuts) == whole(data)
    assert in_chunks(data, list(range(len(data)))) == whole(data)


@given(st.text("ab\r\n", max_size=30), st.lists(st.integers(0, 100), max_size=6))
def test_any_split_gives_the_same_lines(text: str, cuts: list[int]) -> None:
    data = text.encode()
    for cr, ends in ((True, "\r\n|\r|\n"), (False, "\n")):
        parser, lines, at = LineParser("utf-8", MOST, cr=cr), [], 0
        for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
            lines += parser.feed(data[at:cut])
            at = cut
        *expected, left = re.split(ends, text)
        assert [*lines, parser.left()] == [*(line if cr else line.removesuffix("\r") for line in expected), left]


@given(st.text("ab\r\n", max_size=30), st.lists(st.integers(0, 100), max_size=6))
def test_any_split_gives_the_same_bound(text: str, cuts: list[int]) -> None:
    data, most = text.encode(), 3
    *ended, left = re.split("\n", text)
    parser, at = LineParser("utf-8", most, cr=False), 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        parser.feed(data[at:cut])
        at = cut
        if parser.failed:
            break
    else:
        parser.left()
    assert bool(parser.failed) == any(len(line) > most for line in [*(line.removesuffix("\r") for line in ended), left])


ONE_LINE = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), max_size=10)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(blacklist_categories=["Cs"])),
            ONE_LINE.filter(bool),
            st.none() | ONE_LINE.filter(fits_header),
        )
    )
)
def test_what_is_written_is_read(parts: list[tuple[str, str, str | None]]) -> None:
    """But a CR in the data, which has become a line feed."""
    written = [Event(*part) for part in parts]
    parser, last = EventParser(MOST), None
    read = parser.feed(b"".join(record(event, text_of) for event in written))
    expected = []
    for event in written:
        last = event.id or (None if event.id == "" else last)
        expected.append(Event(re.sub("\r\n|\r", "\n", event.data), event.event, last))
    assert read == expected


STREAMS: list[tuple[bytes, list[Event]]] = [  # those of the specification
    (b"data: YHOO\ndata: +2\ndata: 10\n\n", [Event("YHOO\n+2\n10")]),
    (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        [Event("first event", id="1"), Event("second event"), Event(" third event")],
    ),
    (b"data\n\ndata\ndata\n\ndata:", [Event(""), Event("\n")]),
    (b"data:test\n\ndata: test\n\n", [Event("test"), Event("test")]),
    (
        b"event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n",
        [Event("73857293", "add"), Event("2153", "remove")],
    ),
    (b"event: none\n\ndata: x\n\n", [Event("x")]),
    (b"id: 3\n\ndata: x\n\n", [Event("x", id="3")]),
]


@pytest.mark.parametrize(("data", "events"), STREAMS)
def test_the_streams_of_the_specification(data: bytes, events: list[Event]) -> None:
    assert in_chunks(data, []) == (events, events[-1].id or "", None)


def test_the_id_of_a_record_that_has_not_ended_does_not_count() -> None:
    parser = EventParser(MOST)
    parser.feed(b"id: 1\ndata: x\n\nid: 2\ndata: y\n")
    assert parser.last_id == "1"
    parser.feed(b"\n")
    assert parser.last_id == "2"


def test_an_event_is_there_with_the_cr_that_ends_it() -> None:
    parser = EventParser(MOST)
    assert parser.feed(b"data: x\r\r") == [Event("x")]
    assert parser.feed(b"\ndata: y\r\n\r") == [Event("y")]
    assert parser.feed(b"\n") == []


@pytest.mark.parametrize(
    ("most", "chunks", "events", "failed"),
    [
        (10, [b"data: 1\n\ndata: 23456\n\ndata: 7\n\n"], [Event("1")], "a line has more than 10 characters"),
        (10, [b"data: 1\n\n", b"x" * 6, b"x" * 5], [Event("1")], "a line has more than 10 characters"),
        (10, [b"data: 12\ndata: 3456\ndata: 789\n\n"], [], "the data of an event has more than 10 characters"),
        (10, [b"data: 12\ndata: 3456\ndata: 78\n\n"], [Event("12\n3456\n78")], ""),
        (10, [b":" * 10 + b"\n", b":" * 10 + b"\n"] * 99, [], ""),
    ],
)
def test_a_record_has_a_bound(most: int, chunks: list[bytes], events: list[Event], failed: str) -> None:
    parser, got = EventParser(most), []
    for chunk in chunks:
        got += parser.feed(chunk)
    assert (got, parser.failed) == (events, failed)


def test_a_line_in_many_pieces_costs_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    parser: Any = LineParser("utf-8", MOST, cr=True)
    splits: list[int] = []
    split = parser._split

    def counted(text: str) -> list[str]:
        splits.append(len(text))
        return list(split(text))

    parser._split = counted
    for _ in range(1_000):
        assert parser.feed(b"x" * 10) == []
    assert parser.feed(b"\n") == ["x" * 10_000]
    assert sum(splits) == 10_001


@pytest.mark.parametrize("id", ["7 ", " 7", "7\t", "\x0b7", "a\fb", " "])
def test_an_id_that_no_header_has_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="id of an Event must have no space or tab at its ends"):
        record(Event("x", id=id), text_of)
