"""The cells of the grid, and what must come of each.

A cell is an operator that makes inner flows, what is made of each inner flow, the operator that consumes them, the way
to read, the source, and what fails in the middle: nothing, the source, or one inner flow. Operators are the makers and
the consumers of `declared`.

What holds in every cell: it ends; what was delivered and what went to the hook are together what the source gave, each
element once; the elements of one inner flow keep their order; no function is called more often than there are elements.
Where nothing is left in the middle, and nothing fails, all elements are delivered, and none is dropped.

Where something fails, it is this very error that comes at the end, alone or in an ExceptionGroup, and no other is at
the hook. Only a flow that was left before may end without it. With `delay_error`, a source that fails takes no element
away from inner flows that hand on one by one, and an inner flow that fails none from the others.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sized
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from declared import kinds as declared_kinds
from declared.kinds import Maker
from declared.table import parts

from nesting.readers import LEAVING, READERS
from reactive_runtime import Flow, hooks
from reactive_runtime.errors import RejectedError
from reactive_runtime.hot import EmitResult, PublishProcessor

__all__ = [
    "CONSUMERS",
    "FAILURES",
    "INNERS",
    "MAKERS",
    "NOTHING",
    "SOURCES",
    "Cell",
    "Outcome",
    "all_cells",
    "run",
    "some_cells",
]


COLD = "cold flows"
MADE = 500
"""What a cold inner flow adds to a number."""

NUMBER = 12
"""How many elements the source has."""

MANY = 16

FAILS_AT = 7
"""The element that a source fails in place of."""

BAD = 5
"""The element that an inner flow fails at: the second of a group, of a window, and of a batch."""

NOTHING, THE_SOURCE, AN_INNER = FAILURES = "nothing fails", "the source fails", "an inner flow fails"


_failures: list[tuple[str]] = []  # each thread that fails appends its own; of all cells so far
"""What sources failed with. A flow that was left may bring it to the hook when the next cell is running."""


@dataclass
class Source:
    """What was made, and how often the functions of the cell were called."""

    base: int
    made: list[int] = field(default_factory=list)  # the thread of the source, or of the inner flow, if that is cold
    cold: bool = False  # the inner flows make the elements
    calls: int = 0  # the drain that consumes the inner flows
    pusher: threading.Thread | None = None  # set before it starts; of a hot source
    at: int | None = None
    then: Callable[[], object] = int
    fails: str = NOTHING
    failed: bool = False  # the thread that fails
    eaten: list[int] = field(default_factory=list)  # the thread of the inner flow; the function raised on these

    def __post_init__(self) -> None:
        self.failure = OSError(f"one of {self.base} fails")  # no other is equal to it: a sink raises a copy

    @property
    def begin(self) -> int:
        """The first element."""
        return self.base + MADE * self.cold

    def fail(self) -> None:
        self.fails_now()
        raise self.failure

    def fails_now(self) -> None:
        self.failed = True
        _failures.append((str(self.failure),))

    def numbers(self) -> Iterator[int]:
        for n in range(self.base, self.base + NUMBER):
            if n - self.base == self.at:
                self.then()
            if n - self.base == FAILS_AT and self.fails == THE_SOURCE:
                self.fail()
            if not self.cold:
                self.made.append(n)
            yield n

    def pulled(self, numbers: list[int]) -> Iterator[int]:
        """The elements of a cold inner flow: not the numbers, which may be dropped before."""
        for n in numbers:
            self.made.append(n + MADE)
            yield n + MADE

    def counted(self, inner: Any) -> Any:
        self.calls += 1
        assert self.calls <= NUMBER, "more inner flows than elements"
        return inner.map(self.checked) if self.fails == AN_INNER else inner

    def checked(self, n: int) -> int:
        if n == self.begin + BAD:
            self.eaten.append(n)
            self.fail()
        return n


def pushed(source: Source, pool: Executor) -> Flow[int]:
    """A hot source: its own thread emits, whatever is demanded."""
    hot: PublishProcessor[int] = PublishProcessor(capacity=NUMBER)

    def emit() -> None:
        while not hot.subscribers():
            threading.Event().wait(0.0005)
        for n in range(source.base, source.base + NUMBER):
            if n - source.base == FAILS_AT and source.fails == THE_SOURCE:
                source.fails_now()
                hot.on_error(source.failure)
                return
            if hot.emit(n) is EmitResult.OK and not source.cold:
                source.made.append(n)
        hot.on_complete()

    def begin() -> None:
        if source.pusher is None:
            source.pusher = threading.Thread(target=emit, daemon=True)
            source.pusher.start()

    return hot.do_on_subscribe(begin)


SOURCES: dict[str, Callable[[Source, Executor], Flow[int]]] = {
    "here": lambda source, pool: Flow.from_supplier(source.numbers),
    "on a pool": lambda source, pool: Flow.from_supplier(source.numbers).subscribe_on(pool),
    "hot": pushed,
}


def made_by(maker: Maker, flow: Flow[int], source: Source) -> Flow[Flow[int]]:
    return maker.apply(flow)


MAKERS: dict[str, Callable[[Flow[int], Source], Flow[Flow[int]]]] = {
    **{name: partial(made_by, maker) for name, maker in parts(Maker).items()},
    COLD: lambda flow, source: flow.batch(3).map(lambda some: Flow.from_supplier(lambda: source.pulled(some))),
}

INNERS: dict[str, Callable[[Flow[int], Executor], Flow[Any]]] = {
    "as it is": lambda inner, pool: inner,
    "a step": lambda inner, pool: inner.filter(lambda n: True),
    "take(2)": lambda inner, pool: inner.take(2),
    "a boundary": lambda inner, pool: inner.publish_on(pool, prefetch=2),
    "a list": lambda inner, pool: inner.to_list().flatten(),
    "groups in it": lambda inner, pool: inner.group_by(lambda n: n % 2).flat_map(lambda pair: pair[1]),
    "windows in it": lambda inner, pool: inner.window(2).concat_map(lambda window: window),
}

Consumer = Callable[[Flow[Flow[Any]], Callable[[Any], Any]], Flow[Any]]


def merged_each(delay_error: bool) -> Consumer:
    return lambda flow, fn: flow.concat_map(
        lambda inner: Flow.merge(fn(inner), Flow.empty(), delay_error=delay_error), delay_error=delay_error
    )


def consumers() -> Iterator[tuple[str, Consumer]]:
    """The consumers of `declared`, and operators of several sources whose sources are the inner flows."""
    declared = parts(declared_kinds.Consumer)
    for late in (False, True):
        end = ", delay_error" * late
        for n in (1, 2, MANY):
            for name, consumer in declared.items():
                if consumer.concurrent:
                    operator, comma, variant = name.partition(",")
                    title = f"{operator}({n}){comma}{variant}{end}"
                    yield title, partial(consumer.apply, concurrency=n, delay_error=late)
        yield "merge of each" + end, merged_each(late)
    for name, consumer in declared.items():
        if not consumer.concurrent:
            yield name, consumer.apply
    yield "race of each", lambda flow, fn: flow.concat_map(lambda inner: Flow.race(fn(inner), Flow.never()))
    yield "zip of each", lambda flow, fn: flow.concat_map(lambda inner: fn(inner).zip_with(Flow.range(100)))
    yield "merge of all", lambda flow, fn: flow.map(fn).to_list().concat_map(lambda inners: Flow.merge(*inners))
    yield "zip of all", lambda flow, fn: flow.map(fn).to_list().concat_map(lambda inners: Flow.zip(*inners))
    yield "race of all", lambda flow, fn: flow.map(fn).to_list().concat_map(lambda inners: Flow.race(*inners))


CONSUMERS: dict[str, Consumer] = dict(consumers())


@dataclass(frozen=True)
class Cell:
    """One combination; `str` names it."""

    maker: str
    inner: str
    consumer: str
    reader: str
    source: str
    fails: str

    @property
    def names(self) -> tuple[str, ...]:
        return self.maker, self.inner, self.consumer, self.reader, self.source, self.fails

    def __str__(self) -> str:
        return " - ".join(self.names)

    def leaves(self) -> bool:
        """Whether some elements may be dropped: an inner flow, or the whole one, is left in the middle."""
        return (
            self.inner == "take(2)"
            or self.reader in LEAVING
            or self.consumer.startswith(("switch_map", "zip of all", "race of all"))
        )

    def may_be_full(self) -> bool:
        """Whether a group may be full that has no subscriber, which is an error."""
        return self.maker == "three small groups"

    def delays(self) -> bool:
        return self.consumer.endswith("delay_error")

    def inner_of(self, n: int) -> int:
        """Which inner flow the n-th element is in."""
        inners: dict[str, Callable[[int], int]] = {
            "one group": lambda n: 0,
            "three groups": lambda n: n % 3,
            "three small groups": lambda n: n % 3,
            "windows of 4": lambda n: n // 4,
            "one window": lambda n: 0,
            "window_time": lambda n: 0,
            "window_timeout": lambda n: n // 4,
            "window_until": lambda n: n // 4,
            "window_until, before": lambda n: n // 4,
            "window_when": lambda n: 0,
            COLD: lambda n: n // 3,
        }
        return inners.get(self.maker, int)(n)


def all_cells() -> list[Cell]:
    """All of them, in an order that does not change: each without a failure, and with one of the two in turn.

    So whichever four names one takes, both failures are there with the fifth.
    """
    cells = []
    tables = [list(names) for names in (MAKERS, INNERS, CONSUMERS, READERS | LEAVING, SOURCES)]
    for maker, inner, consumer, reader, source in itertools.product(*tables):
        names = maker, inner, consumer, reader, source
        turn = sum(table.index(name) for table, name in zip(tables, names, strict=True)) % 2
        cells += [Cell(*names, NOTHING), Cell(*names, (THE_SOURCE, AN_INNER)[turn])]
    return cells


def some_cells(number: int) -> list[Cell]:
    """So many of them, in which each pair of names stands together at least once. Fewer are the first of more."""
    cells = all_cells()
    random.Random(7).shuffle(cells)
    tables: list[Sized] = [MAKERS, INNERS, CONSUMERS, READERS | LEAVING, SOURCES, FAILURES]
    there_are = sum(len(one) * len(other) for one, other in itertools.combinations(tables, 2))
    seen: set[tuple[str, ...]] = set()
    chosen: list[Cell] = []
    others: list[Cell] = []
    for at, cell in enumerate(cells):
        if len(seen) == there_are:
            others += cells[at : at + number]
            break
        pairs = set(itertools.combinations(cell.names, 2))
        (chosen if pairs - seen else others).append(cell)
        seen |= pairs
    assert len(chosen) <= number, f"{len(chosen)} cells are needed for all pairs"
    return chosen + others[: number - len(chosen)]


# -- running one ---------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of a cell."""

    cell: Cell
    got: list[int]
    dropped: list[int]
    made: list[int]
    error: BaseException | None
    hooked: list[BaseException]
    source: Source


_bases = itertools.count(1_000, 1_000)


def flat(element: Any) -> Iterator[int]:
    """The numbers in what was delivered or dropped."""
    if isinstance(element, int):
        yield element
    elif isinstance(element, list | tuple):
        for one in element:
            yield from flat(one)


def run(cell: Cell, pool: Executor, *, shut_down_at: int | None = None) -> Outcome:
    """Run a cell on this thread, and judge it. AssertionError where something of it does not hold.

    `shut_down_at`: the pool is shut down when the source makes that element.
    """
    source = Source(next(_bases), cold=cell.maker == COLD, fails=cell.fails)
    if shut_down_at is not None:
        source.at, source.then = shut_down_at, partial(pool.shutdown, wait=False, cancel_futures=True)
    numbers = range(source.begin, source.begin + NUMBER)
    error: BaseException | None = None
    got: list[Any] = []
    with hooks.captured() as drops:
        inners = MAKERS[cell.maker](SOURCES[cell.source](source, pool), source)
        flow = CONSUMERS[cell.consumer](inners, lambda inner: INNERS[cell.inner](source.counted(inner), pool))
        try:
            (READERS | LEAVING)[cell.reader](flow, pool, got)
        except Exception as raised:
            error = raised
        delivered = [n for element in got for n in flat(element) if n in numbers]
        if source.pusher is not None:
            source.pusher.join()
        for _ in range(1_000):  # what is cancelled is dropped by the thread that has it
            gone = [n for drop in list(drops) for n in flat(drop.element) if n in numbers]
            if len(delivered) + len(gone) + len(source.eaten) >= len(source.made):
                break
            threading.Event().wait(0.001)
    hooked = [drop.error for drop in list(drops) if drop.error is not None]
    outcome = Outcome(cell, delivered, gone, list(source.made), error, hooked, source)
    judge(outcome, refused=shut_down_at is not None)
    return outcome


def is_expected(error: BaseException, cell: Cell, source: Source, *, refused: bool) -> bool:
    """Whether it was planted, or is what a full group without a subscriber fails with, or a pool that is shut down.

    Or is made of these.
    """
    if isinstance(error, ExceptionGroup):
        return all(is_expected(one, cell, source, refused=refused) for one in error.exceptions)
    if source.failed and (type(error), error.args) == (OSError, source.failure.args):
        return True
    if cell.may_be_full() and ("has no subscriber" in str(error) or "it was full, and had no subscriber" in str(error)):
        return True
    return refused and isinstance(error, RejectedError)


def is_of_an_earlier_cell(error: BaseException, source: Source) -> bool:
    """Whether the source of another cell has failed with it."""
    if isinstance(error, ExceptionGroup):
        return all(is_of_an_earlier_cell(one, source) for one in error.exceptions)
    return type(error) is OSError and error.args in _failures and error.args != source.failure.args


def judge(outcome: Outcome, *, refused: bool) -> None:
    """Say what does not hold. `refused`: tasks may have been, by a pool that was shut down."""
    cell, got, dropped, made, error = outcome.cell, outcome.got, outcome.dropped, outcome.made, outcome.error
    source = outcome.source
    if error is not None:
        assert is_expected(error, cell, source, refused=refused), f"it failed: {error!r}"
    elif not cell.leaves():
        assert not source.failed, f"it completed: of the source came {made}"
        assert cell.fails == NOTHING, "nothing failed"
        assert [n - source.begin for n in sorted(made)] == list(range(NUMBER)), f"of the source came {made}"
        assert not dropped, f"delivered {got}, dropped {dropped}"
    lost = Counter(made) - Counter(got + dropped + source.eaten)
    twice = Counter(got + dropped + source.eaten) - Counter(made)
    assert (lost, twice) == ({}, {}), f"delivered {got}, dropped {dropped}, the function raised on {source.eaten}"
    unexpected = [item for item in outcome.hooked if not is_expected(item, cell, source, refused=refused)]
    assert all(is_of_an_earlier_cell(item, source) for item in unexpected), f"hook: {outcome.hooked}"
    if source.failed and cell.delays() and not cell.leaves() and not cell.may_be_full() and not refused:
        judge_delay(outcome)
    for key in range(3):  # of one group, and in a window, the order is that of the source
        of_one = [n for n in got if n % 3 == key]
        if "groups" in cell.maker and "groups in it" not in cell.inner:
            assert of_one == sorted(of_one), f"out of order: {got}"
    if cell.consumer.startswith(("concat_map", "flat_map_sequential", "switch_map")) and "windows" in cell.maker:
        assert "groups in it" in cell.inner or got == sorted(got), f"out of order: {got}"


def judge_delay(outcome: Outcome) -> None:
    """With `delay_error`, what has not failed goes on to its end."""
    cell, source = outcome.cell, outcome.source
    got, dropped, made = (
        {n: cell.inner_of(n - source.begin) for n in numbers}
        for numbers in (outcome.got, outcome.dropped, outcome.made)
    )
    found = f"of the source came {outcome.made}, delivered {outcome.got}, dropped {outcome.dropped}"
    if cell.fails == AN_INNER:
        assert {cell.inner_of(n) for n in range(NUMBER)} - {*made.values()} <= {cell.inner_of(BAD)}, found
        assert {*dropped.values()} <= {cell.inner_of(BAD)}, found
    elif cell.inner in ("as it is", "a step", "a boundary"):
        # A group, or a window, that was not demanded when its source failed is dropped as a whole.
        assert not {*dropped.values()} & {*got.values()}, found
        assert len({*dropped.values()}) <= len({*made.values()}) - source.calls, found
