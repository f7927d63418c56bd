"""A small trace for each way to break a rule, and for what only looks like it."""

from __future__ import annotations

from typing import Any

from strategies import record

from reactive_runtime import MAX_DEMAND
from reactive_runtime.testing import Record

__all__ = ["BREACHES", "INNOCENT", "LARGE", "TWO_RULES", "element", "named_lists", "request", "trace"]


def trace(*signals: tuple[Any, ...], **facts: Any) -> list[Record]:
    """Records from (signal, begin, end, fields): on_subscribe comes by itself, tickets 1 and 2."""
    records = [record("on_subscribe", 1, 2, **facts)]
    for signal, begin, end, *fields in signals:
        records.append(record(signal, begin, end, **{**facts, **(fields[0] if fields else {})}))
    return records


def request(n: int | None, begin: int, end: int, **fields: Any) -> tuple[Any, ...]:
    return ("request", begin, end, {"n": n, **fields})


def element(value: int, begin: int, end: int, **fields: Any) -> tuple[Any, ...]:
    return ("on_next", begin, end, {"value": value, **fields})


LARGE: list[tuple[list[int], list[str]]] = [
    ([1, 2**63 - 1, 2**63, 2**64 + 1, 2**70, 10**30, 10**400], []),
    ([-(10**400), -(2**64), -(2**63) - 1, -(2**63), -1, 0, 2**64], []),
    ([2**63, 2**64 + 1, 2**63 + 1], ["order"]),
    ([2**64, 5], ["order"]),
    ([-5, -(2**64)], ["order"]),
    ([2**70, 2**70], ["conservation"]),
]
"""Elements beyond 64 bits, and the rules that they break in an ascending subscription."""

BREACHES: dict[str, tuple[str, int, list[Record]]] = {
    "an element more than requested": ("1.1", 1, trace(request(1, 3, 4), element(0, 5, 6), element(1, 7, 8))),
    "an element before any request": ("1.1", 1, trace(element(0, 3, 4), request(1, 5, 6))),
    "two elements at once": ("1.3", 1, trace(request(2, 3, 4), element(0, 5, 8), element(1, 6, 7, thread=2))),
    "an element inside another on one thread": ("1.3", 1, trace(request(2, 3, 4), element(0, 5, 8), element(1, 6, 7))),
    "an end beside an element": (
        "1.3",
        1,
        trace(request(1, 3, 4), element(0, 5, 8), ("on_complete", 6, 7, {"thread": 2})),
    ),
    "an element beside on_subscribe, on another thread": (
        "1.3",
        1,
        [record("on_subscribe", 1, 6), record("request", 2, 3, n=1), record("on_next", 4, 5, thread=2)],
    ),
    "an element beside one that never returned": (
        "1.3",
        1,
        trace(request(2, 3, 4), element(0, 5, -1), element(1, 6, 7, thread=2)),
    ),
    "an element after the end": ("1.7", 1, trace(request(1, 3, 4), ("on_complete", 5, 6), element(0, 7, 8))),
    "a second end": ("1.7", 1, trace(("on_complete", 3, 4), ("on_error", 5, 6))),
    "two elements after a cancel from outside": (
        "1.8",
        2,
        trace(request(9, 3, 4), ("cancel", 5, 6, {"thread": 2}), element(0, 7, 8), element(1, 9, 10)),
    ),
    "an element after a cancel from outside, of a publisher that promised none": (
        "1.8",
        1,
        trace(request(9, 3, 4), ("cancel", 5, 6, {"thread": 2}), element(0, 7, 8), late_signals=0, shared_callers=True),
    ),
    "an element after a cancel from inside": (
        "1.8",
        1,
        trace(request(9, 3, 4), element(0, 5, 8), ("cancel", 6, 7), element(1, 9, 10)),
    ),
    "no on_subscribe": ("1.9", 1, [record("request", 1, n=1), record("on_next", 3)]),
    "an element that is None": ("2.13", 1, trace(request(1, 3, 4), ("on_next", 5, 6, {"none": True}))),
    "an error that is None": ("2.13", 1, trace(("on_error", 3, 4, {"none": True}))),
    "a subscription that is None": ("2.13", 1, [record("on_subscribe", 1, none=True)]),
    "a second on_subscribe": ("2.12", 1, trace(("on_subscribe", 3, 4))),
    "a subscribe that raised": (
        "1.9",
        1,
        [record("subscribe", 1, 4, error="raised OSError()"), record("on_subscribe", 2, 3)],
    ),
    "settled, and never on_subscribe": ("1.9", 1, [record("subscribe", 1, 2), record("settled", 3)]),
    "requests of two threads at once": ("2.7", 1, trace(request(1, 3, 6), request(1, 4, 5, thread=2))),
    "a cancel beside a request of another thread": ("2.7", 1, trace(request(1, 3, 6), ("cancel", 4, 5, {"thread": 2}))),
    "less delivered than requested, of more that there are, and nothing runs": (
        "3.8",
        1,
        trace(request(2, 3, 4), element(0, 5, 6), ("settled", 7, 8), elements=9),
    ),
    "less delivered than requested, no end, and nothing runs": (
        "1.2",
        1,
        trace(request(2, 3, 4), element(0, 5, 6), ("settled", 7, 8)),
    ),
    "all delivered, more requested, and no end": (
        "1.5",
        1,
        trace(request(2, 3, 4), element(0, 5, 6), ("settled", 7, 8), elements=1),
    ),
    "all delivered, everything requested, and no end": (
        "1.5",
        1,
        trace(request(MAX_DEMAND, 3, 4), element(0, 5, 6), ("settled", 7, 8), elements=1),
    ),
    "an end from inside which the subscriber requests": (
        "2.3",
        1,
        trace(("on_complete", 3, 6), request(1, 4, 5)),
    ),
    "an end from inside which the subscriber cancels": (
        "2.3",
        1,
        trace(("on_error", 3, 6, {"error": "OSError()"}), ("cancel", 4, 5)),
    ),
    "a request of a serial subscriber after the end": ("2.4", 1, trace(("on_complete", 3, 4), request(1, 5, 6))),
    "a request from inside on_next that never returns": (
        "3.2",
        1,
        trace(request(1, 3, 4), element(0, 5, -1), request(1, 6, -1), shared_callers=True),
    ),
    "an element deep inside others' calls": ("3.3", 1, trace(request(1, 3, 4), element(0, 5, 6, depth=17))),
    "a second cancel that raised": (
        "3.7",
        1,
        trace(("cancel", 3, 4), ("cancel", 5, 6, {"error": "raised OSError()"})),
    ),
    "a second cancel that never returned": ("3.7", 1, trace(("cancel", 3, 4), ("cancel", 5, -1))),
    "nothing delivered of all that was requested": (
        "3.17",
        1,
        trace(request(MAX_DEMAND, 3, 4), request(MAX_DEMAND, 5, 6), ("settled", 7, 8)),
    ),
    "an invalid request without an answer": ("3.9", 1, trace(request(0, 3, 4), ("settled", 5, 6))),
    "a request of no int without an answer": ("3.9", 1, trace(request(None, 3, 4), ("settled", 5, 6))),
    "elements after an invalid request": (
        "3.9",
        3,
        trace(request(9, 3, 4), request(-1, 5, 6), *(element(n, 7 + 2 * n, 8 + 2 * n) for n in range(3))),
    ),
    "a request that raised": ("3.16", 1, trace(("request", 3, 4, {"n": 1, "error": "raised OSError()"}))),
    "a cancel that raised": ("3.16", 1, trace(("cancel", 3, 4, {"error": "raised OSError()"}))),
    "an element twice": (
        "conservation",
        1,
        trace(request(9, 3, 4), element(0, 5, 6), element(0, 7, 8), ascending=True),
    ),
    "an element out of order": (
        "order",
        1,
        trace(request(9, 3, 4), element(5, 5, 6), element(4, 7, 8), ascending=True),
    ),
    "an end before all elements": (
        "conservation",
        1,
        trace(request(9, 3, 4), element(0, 5, 6), ("on_complete", 7, 8), elements=2),
    ),
    "more elements than there are": (
        "conservation",
        1,
        trace(request(9, 3, 4), element(0, 5, 6), element(1, 7, 8), elements=1),
    ),
    "more elements than there are, and an error": (
        "conservation",
        1,
        trace(request(9, 3, 4), element(0, 5, 6), element(1, 7, 8), ("on_error", 9, 10), elements=1),
    ),
}

TWO_RULES: dict[str, tuple[set[str], list[Record]]] = {
    "a request that raised, and no error was signalled": (
        {"1.4", "3.16"},
        trace(("request", 3, 4, {"n": 1, "error": "raised OSError()"}), ("settled", 5, 6)),
    ),
    "an element for a request that came after the end": (
        {"1.6", "1.7"},
        trace(request(1, 3, 4), ("on_complete", 5, 6), request(1, 7, 8), element(0, 9, 10), shared_callers=True),
    ),
    "elements for a request that came after the cancel": (
        {"1.8", "3.6"},
        trace(("cancel", 3, 4), request(2, 5, 6), element(0, 7, 8), element(1, 9, 10), shared_callers=True),
    ),
    "a second subscription that is not cancelled": (
        {"2.5", "2.12"},
        trace(("on_subscribe", 3, 4), ("settled", 5, 6)),
    ),
}
"""Rules that can't be broken by themselves."""

INNOCENT: dict[str, list[Record]] = {
    "an element that begins inside the request for it": trace(request(1, 3, 6), element(0, 4, 5)),
    "elements on other threads, one after another": trace(
        request(2, 3, 4), element(0, 5, 6), element(1, 7, 8, thread=2)
    ),
    "a request from inside on_next": trace(request(1, 3, 4), element(0, 5, 8), request(1, 6, 7), element(1, 9, 10)),
    "an element from inside on_subscribe": [
        record("on_subscribe", 1, 6),
        record("request", 2, 5, n=1),
        record("on_next", 3, 4),
    ],
    "an end without demand": trace(("on_complete", 3, 4)),
    "one element after a cancel from outside": trace(
        request(9, 3, 4), ("cancel", 5, 6, {"thread": 2}), element(0, 7, 8), shared_callers=True
    ),
    "an element that began before the cancel had returned": trace(
        request(9, 3, 4), ("cancel", 5, 8, {"thread": 2}), element(0, 6, 7), element(1, 9, 10)
    ),
    "calls of many threads, on purpose": trace(request(1, 3, 6), request(1, 4, 5, thread=2), shared_callers=True),
    "a request inside a request, through on_next": trace(
        request(1, 3, 8), element(0, 4, 7), request(1, 5, 6), element(1, 9, 10)
    ),
    "less than requested, and then the end": trace(request(9, 3, 4), ("on_complete", 5, 6), ("settled", 7, 8)),
    "less than requested, and a cancel": trace(request(9, 3, 4), ("cancel", 5, 6), ("settled", 7, 8)),
    "less than requested, and still running": trace(request(9, 3, 4), element(0, 5, 6)),
    "an invalid request that was answered": trace(request(0, 3, 6), ("on_error", 4, 5), ("settled", 7, 8)),
    "an invalid request after a cancel": trace(("cancel", 3, 4), request(0, 5, 6), ("settled", 7, 8)),
    "a subscriber that raised gets no more": trace(
        request(9, 3, 4), element(0, 5, 6, error="raised OSError()"), ("settled", 7, 8), elements=9
    ),
    "all delivered, and no more requested": trace(request(1, 3, 4), element(0, 5, 6), ("settled", 7, 8), elements=1),
    "a cancel after the end, and calls beside it": trace(
        ("on_complete", 3, 6), ("cancel", 4, 5, {"thread": 2}), request(1, 7, 8), shared_callers=True
    ),
    "an element not so deep": trace(request(1, 3, 4), element(0, 5, 6, depth=16)),
    "an element of an old trace, which says nothing of depth": trace(request(1, 3, 4), element(0, 5, 6, depth=None)),
    "a request from outside that never returns": trace(request(1, 3, -1), element(0, 5, 6, thread=2)),
    "an element under way beside an invalid request": trace(
        request(9, 3, 4), request(0, 5, 6), element(0, 7, 8), ("on_error", 9, 10), ("settled", 11, 12)
    ),
    "an end before all elements, after a cancel": trace(
        request(9, 3, 4), ("cancel", 5, 8), ("on_complete", 6, 7), elements=2
    ),
    "an error before all elements": trace(request(9, 3, 4), element(0, 5, 6), ("on_error", 7, 8), elements=2),
    "the same value twice, where values may repeat": trace(request(9, 3, 4), element(0, 5, 6), element(0, 7, 8)),
}


def named_lists() -> dict[str, list[Record]]:
    """All of them, each by its name."""
    broken = {name: records for name, (_, _, records) in BREACHES.items()}
    return broken | {name: records for name, (_, records) in TWO_RULES.items()} | INNOCENT
