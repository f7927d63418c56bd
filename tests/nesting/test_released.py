"""Groups and windows that no subscriber comes to: the hook gets what they hold, once, when they are released."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from sinks import Sink, wait_until

from reactive_runtime import Flow, hooks
from reactive_runtime.hot import PublishProcessor, ReplayProcessor

DEALERS: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "group_by": lambda flow: flow.group_by(lambda n: n % 2),
    "window": lambda flow: flow.window(3),
}

IGNORING: dict[str, Callable[[Flow[Any]], object]] = {
    "for_each": lambda flow: flow.for_each(lambda _: None),
    "count": lambda flow: flow.count().block(),
    "filter": lambda flow: flow.filter(lambda _: False).run(),
    "list": lambda flow: flow.to_list().block(),
    "loop": lambda flow: [None for _ in flow],
    "mapped": lambda flow: flow.map(id).run(),
}


def flow_in(given: Any) -> Flow[int]:
    """A window; of a pair, the group."""
    flow: Flow[int] = given[1] if isinstance(given, tuple) else given
    return flow


@pytest.mark.parametrize("ignore", IGNORING.values(), ids=IGNORING)
@pytest.mark.parametrize("deal", DEALERS.values(), ids=DEALERS)
def test_what_an_ignored_group_holds_is_dropped_once(
    deal: Callable[[Flow[int]], Flow[Any]], ignore: Callable[[Flow[Any]], object]
) -> None:
    discarded: list[int] = []
    with hooks.captured() as drops:
        ignore(deal(Flow.range(7)).do_on_discard(discarded.append))
    assert sorted(discarded) == list(range(7))
    assert sorted(drop.element for drop in drops) == list(range(7))


@pytest.mark.parametrize("deal", DEALERS.values(), ids=DEALERS)
def test_a_group_that_is_kept_may_have_its_subscriber_late(deal: Callable[[Flow[int]], Flow[Any]]) -> None:
    discarded: list[int] = []
    given = deal(Flow.range(7)).do_on_discard(discarded.append).to_list().block()
    assert given is not None
    first = flow_in(given[0]).to_list().block()
    assert discarded == []
    del given
    assert sorted([*(first or []), *discarded]) == list(range(7))


@pytest.mark.parametrize("deal", DEALERS.values(), ids=DEALERS)
def test_a_consumed_group_drops_nothing(deal: Callable[[Flow[int]], Flow[Any]]) -> None:
    discarded: list[int] = []
    flow = deal(Flow.range(7)).do_on_discard(discarded.append)
    assert sorted(flow.flat_map(lambda given: flow_in(given).take(9)).to_list().block() or []) == list(range(7))
    assert discarded == []


@pytest.mark.parametrize("deal", DEALERS.values(), ids=DEALERS)
def test_an_ignored_group_of_a_failed_source_is_dropped(deal: Callable[[Flow[int]], Flow[Any]]) -> None:
    discarded: list[int] = []
    failing = Flow.range(7).concat_with(Flow.error(OSError("gone")))
    with pytest.raises(OSError, match="gone"):
        deal(failing).do_on_discard(discarded.append).for_each(lambda _: None)
    assert sorted(discarded) == list(range(7))


def test_a_full_window_that_was_taken_is_dropped_when_released() -> None:
    discarded: list[int] = []
    source: PublishProcessor[int] = PublishProcessor()
    sink = Sink(demand=1)
    Flow.from_publisher(source).window(1).do_on_discard(discarded.append).subscribe(sink)
    source.emit(5)
    sink.subscription.cancel()
    assert discarded == []
    sink.signals.clear()
    assert discarded == [5]


def test_a_released_group_goes_on_while_its_source_does() -> None:
    discarded: list[int] = []
    source: PublishProcessor[int] = PublishProcessor()
    keys: list[int] = []
    flow = Flow.from_publisher(source).group_by(lambda n: n % 2).do_on_discard(discarded.append)
    flow.subscribe(lambda pair: keys.append(pair[0]))
    for n in range(4):
        source.emit(n)
    assert (keys, discarded) == ([0, 1], [])
    source.on_complete()
    assert sorted(discarded) == [0, 1, 2, 3]


def test_groups_in_a_cycle_are_dropped_when_it_is_collected() -> None:
    discarded: list[int] = []
    cycle: list[Any] = [Flow.range(2000).window(1).do_on_discard(discarded.append).to_list().block()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    wait_until(lambda: len(discarded) == 2000)
    assert sorted(discarded) == list(range(2000))


def test_a_group_that_a_hot_source_forgets_is_dropped_unlocked() -> None:
    discarded: list[int] = []
    replayed: ReplayProcessor[Any] = ReplayProcessor(1)
    hot = weakref.proxy(replayed)

    def listen(element: int) -> None:
        if element < 2:  # the last is freed with the source itself
            hot.subscribers()  # takes the lock of the hot source
        discarded.append(element)

    Flow.range(3).window(1).do_on_discard(listen).subscribe(replayed)
    wait_until(lambda: len(discarded) == 2)
    assert sorted(discarded) == [0, 1]
    replayed.on_complete()
