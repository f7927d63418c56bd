"""Signals as a diagram: a column a thread, time downwards."""

from __future__ import annotations

from reactive_runtime.testing._diagram import diagram
from reactive_runtime.testing._records import Record, Signal


def record(thread: int, signal: Signal, begin: int, end: int | None, n: int | None = None) -> Record:
    return Record("", "", 0, True, True, None, thread, signal.value, n, begin, end, 0, 0, n, None)


def test_calls_that_overlap_have_a_line_for_each_end_and_the_breach_is_marked() -> None:
    records = [
        record(1, Signal.ON_NEXT, 1, 6, 7),
        record(2, Signal.REQUEST, 2, 3, 5),
        record(2, Signal.ON_NEXT, 4, 5, 8),
    ]
    assert diagram(records, 4).splitlines() == [
        "                 thread 1      thread 2",
        "              1  ┌ on_next(7)",
        "              2  │             request(5)",
        "  >>          4  │             on_next(8)",
        "              6  └ on_next(7)",
    ]


def test_a_call_inside_of_another_on_the_same_thread_is_indented() -> None:
    records = [record(1, Signal.ON_NEXT, 1, 4, 7), record(1, Signal.REQUEST, 2, 3, 1)]
    assert diagram(records, 1).splitlines() == [
        "                 thread 1",
        "  >>          1  ┌ on_next(7)",
        "              2  │request(1)",
        "              4  └ on_next(7)",
    ]


def test_a_call_that_never_returned_stays_open() -> None:
    records = [record(1, Signal.ON_NEXT, 1, None, 7), record(2, Signal.CANCEL, 2, 3)]
    assert diagram(records, 2).splitlines() == [
        "                 thread 1      thread 2",
        "              1  ┌ on_next(7)",
        "  >>          2  │             cancel",
    ]
