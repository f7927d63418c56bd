"""Random traces: nearly conformant runs of a few subscriptions, with a few random edits that break some."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from reactive_runtime import MAX_DEMAND
from reactive_runtime.testing import Record, Signal

__all__ = ["record", "traces"]


def record(signal: str, begin: int, end: int | None = None, **fields: Any) -> Record:
    """A record with what matters given, and the rest as it usually is. `end` is the next ticket unless given."""
    values: dict[str, Any] = {
        "run": "run",
        "scenario": "scenario",
        "subscription": 0,
        "shared_callers": False,
        "ascending": False,
        "elements": None,
        "thread": 1,
        "signal": Signal(signal).value,
        "n": None,
        "begin": begin,
        "end": begin + 1 if end is None else end,
        "begin_ns": begin * 10,
        "end_ns": (begin + 1 if end is None else end) * 10,
        "value": None,
        "error": None,
        "depth": 0,
        "late_signals": None,
        "none": False,
    }
    if end == -1:  # never returned
        values.update(end=None, end_ns=None)
    return Record(**{**values, **fields})


@st.composite
def _subscription(draw: st.DrawFn, run: str, number: int) -> list[Record]:
    """One subscription: its calls in a random but mostly lawful order, nested and overlapping at random."""
    facts = {
        "run": run,
        "scenario": draw(st.sampled_from(["one", "two"])),
        "subscription": number,
        "shared_callers": draw(st.booleans()),
        "ascending": draw(st.booleans()),
        "elements": draw(st.sampled_from([None, None, 0, 1, 3])),
        "late_signals": draw(st.sampled_from([None, None, 0, 2, 15])),
    }
    kinds = [Signal.SUBSCRIBE, Signal.ON_SUBSCRIBE]
    middle = st.sampled_from([Signal.ON_NEXT] * 5 + [Signal.REQUEST] * 5 + [Signal.CANCEL])
    kinds += draw(st.lists(middle, max_size=14))
    kinds += draw(st.sampled_from([[], [Signal.ON_COMPLETE], [Signal.ON_ERROR]]))
    kinds += draw(st.sampled_from([[], [], [Signal.REQUEST], [Signal.REQUEST, Signal.ON_NEXT]]))
    kinds += draw(st.sampled_from([[], [Signal.SETTLED]]))
    for _ in range(draw(st.integers(0, 2))):  # what breaks the law of the order
        place = draw(st.integers(0, len(kinds)))
        kinds.insert(place, draw(st.sampled_from(list(Signal))))
    if draw(st.booleans()):
        kinds.pop(draw(st.integers(0, len(kinds) - 1)))
    threads = draw(st.sampled_from([(1,), (1, 2), (1, 2, 3)]))
    records = []
    for place, kind in enumerate(kinds):
        begin = 100 * place
        # Most calls return before the next begins; some reach over one, two or more of them, some never return.
        reach = draw(st.sampled_from([50, 50, 50, 50, 50, 150, 250, 450, -1]))
        end = -1 if reach == -1 and draw(st.booleans()) else begin + abs(reach) + place % 50
        fields: dict[str, Any] = {"thread": draw(st.sampled_from(threads))}
        if kind == Signal.REQUEST:
            fields["n"] = draw(st.sampled_from([1, 1, 2, 3, 5, 2**62, MAX_DEMAND - 1, MAX_DEMAND, 0, -1, None]))
        elif kind == Signal.ON_NEXT:
            fields["value"] = draw(
                st.one_of(st.just(place), st.integers(-2, 6), st.none(), st.sampled_from([2**63, 2**70, -(2**64)]))
            )
        fields["none"] = draw(st.integers(0, 29)) == 0
        if kind == Signal.ON_ERROR:
            fields["error"] = draw(st.sampled_from(["OSError()", "raised OSError()"]))
        elif draw(st.integers(0, 29)) == 0:
            fields["error"] = "raised OSError()"
        fields["depth"] = draw(st.sampled_from([0, 1, 2, 16, 17, None]))
        records.append(record(kind, begin, end, **{**facts, **fields}))
    return records


@st.composite
def traces(draw: st.DrawFn, run: str = "run", most: int = 3) -> list[Record]:
    """A trace of 1 to `most` subscriptions, in order of `begin`; tickets are unique in the run."""
    count = draw(st.integers(1, most))
    records = [item for number in range(count) for item in draw(_subscription(run, number))]
    return _ranked(records)


def _ranked(records: list[Record]) -> list[Record]:
    """The same order of beginnings and ends within each subscription, with tickets from one dispenser."""
    edges = [(item.begin, place, "begin") for place, item in enumerate(records)]
    edges += [(item.end, place, "end") for place, item in enumerate(records) if item.end is not None]
    tickets: list[dict[str, Any]] = [{} for _ in records]
    for ticket, (_, place, edge) in enumerate(sorted(edges), start=1):
        tickets[place].update({edge: ticket, f"{edge}_ns": ticket * 10})
    ranked = [item._replace(**mine) for item, mine in zip(records, tickets, strict=True)]
    return sorted(ranked, key=lambda item: item.begin)
