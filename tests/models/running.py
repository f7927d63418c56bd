"""Runs an operator by a script, and holds what comes to its model."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from declared.kinds import Part

from models.scripts import FailedError, Given, Item, Keeping, Script, numbers
from reactive_runtime import Flow, hooks
from reactive_runtime.executors import VirtualTimeExecutor

__all__ = ["POOL", "Entry", "Items", "Place", "hold", "same_end"]

STEP = 1000.0
"""Seconds that pass after each step of a run."""


@dataclass
class Place:
    """What an operator may need."""

    clock: VirtualTimeExecutor = field(default_factory=VirtualTimeExecutor)
    notes: list[Any] = field(default_factory=list)


Items = list[Item]


PATIENCE = 10.0
"""Seconds. Nothing is ever asserted about how long it took."""

POOL = ThreadPoolExecutor(2, "models")


def wait_until_idle() -> None:
    """Until all that was submitted to `POOL` is done, with its callbacks: each of its threads comes to the barrier."""
    barrier = threading.Barrier(2)
    for future in [POOL.submit(barrier.wait, PATIENCE) for _ in range(2)]:
        future.result()


def wait_until(condition: Callable[[], bool], clock: VirtualTimeExecutor) -> None:
    """Wait for what other threads do, and do what they leave to the clock. The caller looks at what became of it."""
    turn = threading.Event()
    for _ in range(int(PATIENCE * 1000)):
        if condition():
            return
        turn.wait(0.001)
        clock.advance()


def same_items(xs: Items) -> list[Any]:
    return list(xs)


def same_end(xs: Items, end: str) -> str:
    return end


def as_asked(asked: int, passed: int) -> int:
    return asked


@dataclass(frozen=True)
class Entry(Part):
    """An operator, and its model."""

    apply: Callable[[Flow[Any], Place], Flow[Any]]
    model: Callable[[Items], list[Any]] = same_items
    """The elements, of those of the source."""
    end: Callable[[Items, str], str] = same_end
    """The end, of the source's elements and end."""
    by_end: Callable[[Items, str], list[Any]] | None = None
    """The elements, where the source's end matters, too."""
    ordered: bool = True
    waits: bool = False
    """It works on threads that are not driven."""
    overtakes: bool = False
    """An error may come before elements that wait."""
    eats: Callable[[Item], bool] | None = lambda item: False
    """Which elements of the source are used up by it. None: what becomes of an element can't be followed."""
    fails: type[Exception] = FailedError
    """What its functions fail with."""
    shares: bool = False
    """The source is that of several: a listener to discards downstream hears nothing of it."""
    keeps: bool = False
    """Its source goes on when the subscriber has cancelled."""
    most: Callable[[int, int], int] | None = None
    """How many elements the source is asked for at most, when so many were asked for, and so many have passed."""
    bursts: bool = False
    """What is given may depend on demand: a prefix is promised, and no more until all is asked for."""

    def expected(self, script: Script) -> tuple[list[Any], str]:
        items = script.items()
        out = self.model(items) if self.by_end is None else self.by_end(items, script.end)
        return out, self.end(items, script.end)


def hold(entry: Entry, script: Script) -> None:
    """Run it, and compare."""
    place = Place()
    given = Given(script, place.clock)
    out, end = entry.expected(script)
    heard: list[Any] = []
    with hooks.captured() as drops:
        flow = entry.apply(given.flow(), place)
        if script.heard:
            flow = flow.do_on_discard(heard.append)
        sink = Keeping(script.demand[0], script.cancel_at)
        flow.subscribe(sink)
        _settle(entry, place, sink, out)
        _check(entry, sink, given, out)
        for n in script.demand[1:]:
            if not sink.end and not sink.cancelled:
                sink.request(n)
            _settle(entry, place, sink, out)
            _check(entry, sink, given, out)
        if entry.waits and end != "never" and sink.asked > len(out):
            wait_until(lambda: bool(sink.end) or sink.cancelled, place.clock)
        if sink.asked > len(out) and not sink.cancelled:
            assert sink.end == ("" if end == "never" else end), f"the end is {sink.end or 'none'}, not {end}"
            if not (entry.overtakes and end == "error"):
                _same(entry, sink.elements, out)
        if not sink.end and not sink.cancelled:
            sink.cancel()
        place.clock.advance(STEP)
        if entry.waits:
            wait_until(lambda: not given.under_way and _account(entry, sink, given, drops) == "", place.clock)
            wait_until_idle()  # a call that fails now is among what was dropped
    assert sink.wrong == "", sink.wrong
    assert entry.keeps or not given.under_way, "the source was not ended, nor cancelled"
    errors = [drop for drop in drops if drop.error is not None]
    over = sink.cancelled or sink.end == "error"
    assert all(isinstance(drop.error, FailedError | entry.fails) and over for drop in errors), errors
    wrong = _account(entry, sink, given, drops)
    assert not wrong, f"{wrong}; delivered {sink.elements}, dropped {[drop.element for drop in drops]}"
    if script.heard and not (entry.waits or entry.shares):
        dropped = [drop.element for drop in drops]
        assert Counter(numbers(heard)) == Counter(numbers(dropped)), f"do_on_discard: {heard}, the hook: {dropped}"


def _settle(entry: Entry, place: Place, sink: Keeping, out: list[Any]) -> None:
    place.clock.advance(STEP)
    if entry.waits:
        due = min(sink.asked, len(out))
        wait_until(lambda: sink.cancelled or bool(sink.end) or len(sink.elements) >= due, place.clock)


def _check(entry: Entry, sink: Keeping, given: Given, out: list[Any]) -> None:
    """What has come by now."""
    due = out[: min(sink.asked, len(out))]
    if sink.cancelled:
        due = out[: len(sink.elements)]
    came = list(sink.elements)
    if entry.ordered:
        assert came == due[: len(came)], f"{came}, not {due}"
        if not entry.bursts and not (entry.overtakes and sink.end == "error"):
            assert len(came) == len(due), f"{came}, not {due}"
    else:
        assert not Counter(map(repr, came)) - Counter(map(repr, out)), f"{came}, not of {out}"
        if not entry.bursts and not (entry.overtakes and sink.end == "error"):
            assert len(came) == len(due), f"{came}, not as many as {due}"
    if entry.most is not None:
        most = entry.most(sink.asked, len(numbers(came)))
        assert len(given.items) <= most, f"the source gave {len(given.items)}, at most {most} were to be asked for"


def _same(entry: Entry, came: list[Any], out: list[Any]) -> None:
    if entry.ordered:
        assert came == out, f"{came}, not {out}"
    else:
        assert Counter(map(repr, came)) == Counter(map(repr, out)), f"{came}, not {out}"


def _account(entry: Entry, sink: Keeping, given: Given, drops: list[hooks.Dropped]) -> str:
    """Each element of the source was delivered, used up, or went to the hook: once."""
    if entry.eats is None:
        return ""
    went = Counter(numbers(list(sink.elements))) + Counter(numbers([drop.element for drop in list(drops)]))
    gave = Counter(item.number for item in list(given.items) if not entry.eats(item))
    went = Counter({number: times for number, times in went.items() if not entry.eats(given.items[number])})
    lost, twice = gave - went, went - gave
    return f"{f'lost: {sorted(lost)} ' if lost else ''}{f'twice: {sorted(twice)}' if twice else ''}"
