"""A subscription in pieces gets the reference's verdict, wherever it is cut and however the pieces are merged."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from breaches import element, named_lists, request, trace
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import by_reference, rows_of, same
from listing import lists_each
from random_traces import dirty, likely, shuffled

from reactive_runtime import MAX_DEMAND
from reactive_runtime.judging import Gathered, Rows
from reactive_runtime.judging import _gathering as gathering
from reactive_runtime.judging import _stretches as stretches
from reactive_runtime.judging._here import together
from reactive_runtime.judging._pieces import Findings, Summary, judge_in_pieces, judge_piece, verdict
from reactive_runtime.judging._stretches import Stretches
from reactive_runtime.testing import RULES, Record
from reactive_runtime.testing._records import in_order
from reactive_runtime.testing.trace import table_of

LISTS = int(os.environ.get("JUDGE_TRACES", "500"))
"""Random lists of records, of each kind; 2,000 at night (`make nightly PART=judge`)."""

EXAMPLES = LISTS // 5
"""Lists by hypothesis, of each kind for each property."""

Pieces = list[list[Record]]


def rows(records: Sequence[Record]) -> Rows:
    return Rows.of_table(table_of(list(records)))


def subscriptions(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each subscription, in order."""
    found: dict[tuple[str, int], list[Record]] = {}
    for item in in_order(records):
        found.setdefault((item.run, item.subscription), []).append(item)
    return list(found.values())


def cut_at(records: Sequence[Record], places: Iterable[int]) -> Pieces:
    return [list(records[begin:end]) for begin, end in pairwise([0, *places, len(records)])]


@st.composite
def cut(draw: st.DrawFn, make: Callable[..., list[Record]], pieces: int | None = None) -> Pieces:
    """A subscription in pieces, each of them in any order."""
    rng = draw(st.randoms(use_true_random=False))
    records = draw(st.sampled_from(subscriptions(make(rng, "run", 2))))
    count = draw(st.integers(1, 6)) if pieces is None else pieces
    places = sorted(draw(st.integers(0, len(records))) for _ in range(count - 1))
    return [shuffled(rng, piece) for piece in cut_at(records, places)]


def in_turn(pieces: Pieces, late_signals: int) -> Any:
    parts = [[rows(piece)] for piece in pieces if piece]
    return rows_of(judge_in_pieces(parts, late_signals))


class AtOnce:
    """Pieces that are summed up and judged one at a time; the merge is in the association that the dice say."""

    def __init__(self, pieces: Pieces, late_signals: int, dice: random.Random) -> None:
        self._dice = dice
        self._summaries = [Summary.of(rows(piece)) for piece in pieces]
        self._findings = []
        for number, piece in enumerate(pieces):
            before = self._merged(self._summaries[:number], Summary())
            self._findings.append(judge_piece([rows(piece)], before, late_signals)[0] if piece else Findings())

    def _merged(self, parts: list[Any], nothing: Any) -> Any:
        if len(parts) < 2:
            return parts[0] if parts else nothing
        at = self._dice.randrange(1, len(parts))
        return self._merged(parts[:at], nothing).then(self._merged(parts[at:], nothing))

    def verdict(self) -> Any:
        merged = self._merged(self._findings, Findings()), self._merged(self._summaries, Summary())
        return rows_of(verdict(*merged))


def shown(summary: Summary) -> Any:
    """A summary as what can be compared."""
    kept = None if summary.rows is None else summary.rows.packed().to_pylist()
    return replace(summary, rows=None), kept


MAKES = pytest.mark.parametrize("make", [likely, dirty])


@MAKES
def test_pieces_in_turn_get_the_verdict_of_the_reference(make: Any) -> None:
    @settings(max_examples=EXAMPLES)
    @given(cut(make), st.integers(0, 2))
    def holds(pieces: Pieces, late_signals: int) -> None:
        records = [item for piece in pieces for item in piece]
        same(in_turn(pieces, late_signals), by_reference(records, late_signals), records)

    holds()


@MAKES
def test_pieces_at_once_get_it_in_any_association(make: Any) -> None:
    @settings(max_examples=EXAMPLES)
    @given(cut(make), st.integers(0, 2), st.randoms(use_true_random=False))
    def holds(pieces: Pieces, late_signals: int, dice: random.Random) -> None:
        records = [item for piece in pieces for item in piece]
        found = AtOnce(pieces, late_signals, dice).verdict()
        same(found, by_reference(records, late_signals), records)

    holds()


@MAKES
def test_three_pieces_are_merged_to_the_same_from_either_side(make: Any) -> None:
    @settings(max_examples=EXAMPLES)
    @given(cut(make, 3))
    def holds(pieces: Pieces) -> None:
        first, second, third = (Summary.of(rows(piece)) for piece in pieces)
        whole = Summary.of(rows([item for piece in pieces for item in piece]))
        left, right = first.then(second).then(third), first.then(second.then(third))
        assert shown(left) == shown(right) == shown(whole)
        assert shown(whole.then(Summary())) == shown(Summary().then(whole)) == shown(whole)
        before = Summary(), first, first.then(second)
        found = [
            judge_piece([rows(piece)], of)[0] if piece else Findings() for piece, of in zip(pieces, before, strict=True)
        ]
        one, two, three = found
        assert one.then(two).then(three) == one.then(two.then(three))

    holds()


def test_random_subscriptions_at_random_cuts_by_plain_dice() -> None:
    broken: set[str] = set()
    for seed in range(10 * LISTS):  # until each rule was broken
        if seed >= LISTS // 2 and broken == set(RULES):
            break
        rng = random.Random(seed)
        make = rng.choice([likely, dirty])
        for records in subscriptions(make(rng, "run", 2)):
            late_signals = rng.randint(0, 2)
            expected = by_reference(records, late_signals)
            broken |= {row[3] for row in expected["violations"]}
            places = sorted(rng.sample(range(len(records) + 1), min(rng.randint(1, 4), len(records))))
            pieces = cut_at(records, places)
            same(in_turn(pieces, late_signals), expected, records)
            same(AtOnce(pieces, late_signals, rng).verdict(), expected, records)
    lists_each("what these traces break", broken, RULES)


@pytest.mark.parametrize("name", named_lists())
def test_each_breach_and_what_is_none_at_every_cut(name: str) -> None:
    for records in subscriptions(named_lists()[name]):
        expected = by_reference(records)
        for places in combinations(range(1, len(records)), min(2, len(records) - 1)):
            same(in_turn(cut_at(records, places), 1), expected, records)
            same(AtOnce(cut_at(records, places), 1, random.Random(1)).verdict(), expected, records)
        for place in range(1, len(records)):
            same(in_turn(cut_at(records, [place]), 1), expected, records)
        each = range(1, len(records))
        same(in_turn(cut_at(records, each), 1), expected, records)


def test_a_summary_stays_small() -> None:
    calls = [("request", 10 * n, 10 * n + 15, {"n": 2, "thread": n % 3}) for n in range(1, 3_000)]
    elements = [element(n % 7, 10 * n + 5, 10 * n + 27, thread=n % 2) for n in range(1, 3_000)]
    cancels = [("cancel", 10 * n + 7, 40_000 - n, {"error": "raised X()"}) for n in range(2_000, 2_500)]
    records = in_order(trace(*calls, *elements, *cancels, ascending=True))
    kept = Summary.of(rows(records)).rows
    assert kept is not None
    assert len(kept) <= 18
    numbers = random.Random(1).sample(range(1, len(records)), 9)
    same(in_turn(cut_at(records, sorted(numbers)), 1), by_reference(records), records)


FAR = 2**36


@cache
def served(delivered: int, requested: int) -> Summary:
    """As after so many elements and so much demand."""
    before = Summary.of(rows(trace(request(1, 3, 4), element(0, 5, 6))))
    return replace(before, delivered=delivered, requested=requested)


@pytest.mark.parametrize(
    ("requested", "asks", "beyond"),
    [
        (FAR, 2, 1),  # two of the three are asked for
        (FAR + 1, 2, 0),
        (FAR - 1, 2, 2),
        (FAR - 2**33, 2**33 + 2, 1),
        (FAR - 2**33, 2**33, 3),
        (FAR - 2**33, MAX_DEMAND, 0),
        (MAX_DEMAND, 2, 0),
        (MAX_DEMAND - 1, 2, 0),
        (0, FAR + 1, 2),
    ],
)
def test_demand_is_exact_after_any_number_of_elements(requested: int, asks: int, beyond: int) -> None:
    elements = [element(n, 11 + 2 * n, 12 + 2 * n) for n in range(1, 4)]
    piece = rows(trace(request(asks, 9, 10), *elements)[1:])
    found, after = judge_piece([piece], served(FAR, requested))
    assert found.broken.get("1.1", (0, 0))[0] == beyond
    assert (after.delivered, after.requested) == (FAR + 3, min(requested + asks, MAX_DEMAND))
    assert len(found.waits) == (requested == FAR)  # the request that found no demand outstanding


@pytest.mark.parametrize("requested", [MAX_DEMAND - 1, MAX_DEMAND])
def test_demand_without_bound_is_known_from_all_pieces(requested: int) -> None:
    found, _ = judge_piece([rows(trace(("settled", 9, 10))[1:])], served(FAR, requested))
    assert list(found.broken) == ["3.17" if requested == MAX_DEMAND else "1.2"]


# -- on disk, in order ----------------------------------------------------------------------------------------


def taken(folder: Path, added: Sequence[Sequence[Record]], size: int, hold: int = 0) -> list[list[int]]:
    """The begins of the pieces that come of records that are added so."""
    kept = Stretches(folder / "long")
    for number, some in enumerate(added):
        kept.add([rows(some)])
        if not hold or number % hold == 0:
            kept.put_away()
    found = [[int(begin) for part in parts for begin in part.begin] for parts in kept.pieces(size)]
    assert list(folder.iterdir()) == []
    return found


@given(
    st.lists(st.lists(st.integers(-5, 60), min_size=1, max_size=9), min_size=1, max_size=12),
    st.integers(1, 20),
    st.integers(0, 3),
)
def test_stretches_give_pieces_in_order(begins: list[list[int]], size: int, hold: int) -> None:
    (record,) = trace(thread=1)
    added = [[record._replace(begin=begin) for begin in some] for some in begins]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "_BLOCK", 3)
        with tempfile.TemporaryDirectory() as folder:
            pieces = taken(Path(folder), added, size, hold)
    assert sorted(begin for piece in pieces for begin in piece) == sorted(begin for some in begins for begin in some)
    assert all(max(before) < min(after) for before, after in pairwise(pieces))


def test_what_comes_in_order_is_one_stretch_and_pieces_have_their_size(tmp_path: Path) -> None:
    (record,) = trace(thread=1)
    added = [[record._replace(begin=at) for at in range(begin, begin + 50)] for begin in range(0, 1_000, 50)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "_BLOCK", 10)
        kept = Stretches(tmp_path / "long")
        for some in added:
            kept.add([rows(some)])
            assert kept.held == 0
        assert len(kept._stretches) == 1
        assert [sum(map(len, parts)) for parts in kept.pieces(200)] == [200] * 5
        mixed = taken(tmp_path, random.Random(1).sample(added, len(added)), 200)
        assert max(map(len, mixed)) <= 200 + 10 * len(added)


LONG = 3_000


def long_and_short() -> list[Record]:
    """A long subscription that breaks three rules, one about half as long, and some short ones."""
    elements = [element(n % (LONG - 9), 5 + 2 * n, 6 + 2 * n) for n in range(LONG)]
    calls = [("cancel", 2 * LONG, 2 * LONG + 1, {"thread": 2})]
    big = trace(request(LONG - 10, 3, 4), *elements, *calls, ascending=True)
    half = [item._replace(subscription=77, run="other") for item in big[: LONG // 2]]
    small = [item._replace(subscription=number) for number in range(1, 30) for item in big[:20]]
    return [*big, *half, *small]


@pytest.mark.parametrize("order", ["shuffled", "by begin", "one after the other"])
@pytest.mark.parametrize("most", [100, 400, 2_000])
def test_a_subscription_beyond_memory_is_judged_in_pieces(
    order: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = long_and_short()
    if order != "one after the other":
        records = shuffled(random.Random(5), records) if order == "shuffled" else in_order(records)
    sizes: list[list[int]] = []
    judged = judge_in_pieces

    def tallied(pieces: Any, late_signals: int) -> Any:
        sizes.append([])

        def each() -> Any:
            for parts in pieces:
                sizes[-1].append(sum(map(len, parts)))
                yield parts

        return judged(each(), late_signals)

    monkeypatch.setattr(gathering, "judge_in_pieces", tallied)
    monkeypatch.setattr(gathering, "_PIECE", 150)
    monkeypatch.setattr(stretches, "_BLOCK", 5)
    with Gathered(most=most) as gathered:
        for at in range(0, len(records), 60):
            gathered.add(rows(records[at : at + 60]))
            assert gathered.held <= most
        same(rows_of(together(gathered.judged())), by_reference(records), records)
    assert LONG + 3 in map(sum, sizes)
    assert max(map(max, sizes)) <= 150 + 5 * (len(records) // 60 + 1)
