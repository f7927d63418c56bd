"""What errors say: which flow, which publisher, which element, and where it was put together."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, submit_until

from reactive_runtime import Flow, Valve
from reactive_runtime._core.failures.assembly import note_assembly
from reactive_runtime._core.fusion.step import Each, Step
from reactive_runtime.errors import ProtocolError
from reactive_runtime.hot import PublishProcessor, SubmissionPublisher


def raised_by(flow: Flow[Any], kind: type[BaseException] = TypeError) -> BaseException:
    with pytest.raises(kind) as raised:
        flow.to_list().block(timeout=PATIENCE)
    return raised.value


def place_of(error: BaseException) -> str:
    (note,) = [item for item in error.__notes__ if "assembled at" in item]
    return note


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2, "mine") as pool:
        yield pool


# -- None -----------------------------------------------------------------------------------------------------


async def third_is_none() -> AsyncIterator[Any]:
    for item in (1, 2, None, 4):
        yield item


def test_none_of_an_async_source_is_named_with_its_index() -> None:
    error = raised_by(Flow.from_async(third_is_none))
    assert "source from_async(third_is_none) at index 2" in str(error)
    assert __file__ in place_of(error)


class Signals:
    """A publisher that signals None, when it is subscribed to or asked."""

    def __init__(self, when: str) -> None:
        self.when = when

    def subscribe(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)
        if self.when == "subscribe":
            subscriber.on_next(None)

    def request(self, n: int) -> None:
        if self.when == "request":
            self.subscriber.on_next(None)

    def cancel(self) -> None:
        pass


@pytest.mark.parametrize("when", ["subscribe", "request"])
def test_a_publisher_that_signals_none_is_named_and_not_the_call_that_was_made_on_it(when: str) -> None:
    error = raised_by(Flow.from_publisher(Signals(when)), ProtocolError)
    assert str(error) == "the publisher, a Signals, called on_next(None), and None is not an element (2.13)"
    assert isinstance(error.__cause__, TypeError)


def test_so_it_is_behind_a_processor() -> None:
    multicaster = PublishProcessor[Any]()
    heard = multicaster.to_future()
    Signals("request").subscribe(multicaster)
    with pytest.raises(ProtocolError, match=r"^the publisher called on_next\(None\)"):
        heard.result(PATIENCE)


class Signalling(Signals):
    """Raises what another subscriber raised at None."""

    def __init__(self, other: Any) -> None:
        super().__init__("request")
        self.other = other

    def request(self, n: int) -> None:
        self.other.on_next(None)


def test_none_that_went_elsewhere_is_not_laid_at_its_door() -> None:
    error = raised_by(Flow.from_publisher(Signalling(PublishProcessor[Any]())), ProtocolError)
    assert "request(" in str(error)
    assert "raised (3.16)" in str(error)


def but_five(n: int) -> int | None:
    return None if n == 5 else n


async def but_five_later(n: int) -> int | None:
    return but_five(n)


@pytest.mark.parametrize("ordered", [True, False])
def test_none_of_a_parallel_call_names_the_element_and_its_index(ordered: bool, pool: ThreadPoolExecutor) -> None:
    numbers = Flow.range(3, 12)
    for chunk, what in (
        (1, "returned None for 5 at index 2 of the source, and"),
        (2, "returned None for 5 at index 2 of the source, element 1 of a chunk of 2, and"),
        (9, "returned None for 5 at index 2 of the source, element 3 of a chunk of 9, and"),
    ):
        error = raised_by(numbers.map_parallel(but_five, pool, ordered=ordered, chunk=chunk))
        assert what in str(error)
    later = raised_by(numbers.map_parallel(but_five_later, ordered=ordered))
    assert "returned None for 5 at index 2 of the source, and" in str(later)


def test_none_among_the_elements_of_an_element_names_it() -> None:
    lists: Flow[list[int | None]] = Flow.just([1], [2, 3, None, 4])
    for flow in (lists.flat_map_iterable(lambda item: item), lists.flatten()):
        assert "None came out at index 2 for [2, 3, None, 4]" in str(raised_by(flow))
    made = Flow.just("a", "bc").flat_map_iterable(lambda item: (None if c == "c" else c for c in item))
    assert "None came out for 'bc'" in str(raised_by(made))


# -- where ----------------------------------------------------------------------------------------------------


def broken() -> Iterator[int]:
    yield 1
    raise OSError("broken")


def test_a_source_that_is_given_an_executor_keeps_its_place(pool: ThreadPoolExecutor) -> None:
    for source in (Flow.from_supplier(broken), Flow.from_iterable(broken())):
        note = place_of(raised_by(source.subscribe_on(pool), OSError))
        assert __file__ in note


def test_where_no_place_is_known_none_is_given() -> None:
    error = OSError("broken")
    note_assembly(error, "map(len)", None)
    note_assembly(error, "filter(len)", ("file", 1))
    assert error.__notes__ == ["in the flow: map(len)"]


def test_the_error_of_a_future_says_where_it_was_put_into_the_flow() -> None:
    failed: Future[int] = Future()
    failed.set_exception(OSError("broken"))
    cancelled: Future[int] = Future()
    cancelled.cancel()
    for future, kind in ((failed, OSError), (cancelled, CancelledError)):
        note = place_of(raised_by(Flow.from_future(future), kind))
        assert "in from_future()" in note
        assert __file__ in note


# -- what block waited for ------------------------------------------------------------------------------------


class Silent:
    def subscribe(self, subscriber: Any) -> None:
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        pass

    def cancel(self) -> None:
        pass

    def __repr__(self) -> str:
        return "<a silent one>"


Share = Callable[[Flow[Any]], Flow[Any]]


@pytest.mark.parametrize(
    "share", [lambda item: item.share(), lambda item: item.cache().map(str), lambda item: item.publish().ref_count()]
)
def test_a_timeout_behind_a_multicaster_says_what_its_source_waited_for(share: Share, pool: ThreadPoolExecutor) -> None:
    gate, inside = threading.Event(), threading.Event()

    def slow(n: int) -> int:
        inside.set()
        gate.wait(PATIENCE)
        return n

    submit_until(pool, inside)
    try:
        with pytest.raises(TimeoutError) as raised:
            share(Flow.range(3).subscribe_on(pool).map(slow)).block(timeout=0.01)
    finally:
        gate.set()
    for part in (
        "waited for a multicaster, which waited for",
        "map(slow)",
        "under way on ThreadPoolExecutor(mine, 2 workers)",
    ):
        assert part in str(raised.value)


def test_a_timeout_says_what_is_not_there(pool: ThreadPoolExecutor) -> None:
    for flow, text in (
        (Flow.never(), "it waited for a source that has no element"),
        (Flow.never().share(), "a multicaster, which waited for a source that has no element"),
        (Flow.range(3).publish(), "a multicaster that no source is connected to"),
        (Flow.range(3).pausable(Valve(paused=True)), "`pausable()`, which waited for its valve, which is paused"),
        (Flow.from_publisher(Silent()), "a publisher that is not of this package: its subscription is <a silent one>"),
        (Flow.from_future(Future()), "`from_future()`, which waited for its future"),
        (Flow.create(lambda emitter: None), "what is pushed to it"),
        (SubmissionPublisher(pool), "what is pushed to it"),
    ):
        with pytest.raises(TimeoutError) as raised:
            flow.block(timeout=0.01)
        assert text in str(raised.value)


# -- steps ----------------------------------------------------------------------------------------------------


class Loose(Step[int, Any]):
    name = "loose"

    def on_next(self, element: int) -> Each[Any]:
        if element > 3:
            found = element
        yield found


class LooseInside(Step[int, Any]):
    name = "loose_inside"

    def on_next(self, element: int) -> Each[Any]:
        if element > 3:
            found = element
        yield [found + n for n in range(2)]


class Nameless(Step[int, Any]):
    name = "nameless"

    def on_next(self, element: int) -> Each[Any]:
        yield missing(element)  # type: ignore[name-defined]  # noqa: F821  # that is what is tried


@pytest.mark.parametrize(("step", "name"), [(Loose(), "found"), (LooseInside(), "found"), (Nameless(), "missing")])
@pytest.mark.parametrize("before", [0, 1])
def test_a_variable_without_a_value_is_named_as_it_is_written(step: Step[Any, Any], name: str, before: int) -> None:
    flow = Flow.range(3) if not before else Flow.range(3).map(int)
    error = raised_by(flow._then(step).map(str), NameError)
    assert f"'{name}'" in str(error)
    assert getattr(error, "name", name) in (name, None)
    assert f"in {step}, assembled at {__file__}" in place_of(error)


def test_a_method_of_an_instance_is_refused_where_the_class_is_defined() -> None:
    with pytest.raises(SyntaxError, match=r"__init__ assigns `self.on_next`"):

        class Assigned(Step[int, int]):
            name = "assigned"

            def __init__(self) -> None:
                self.on_next = lambda element: (n for n in [element])  # type: ignore[method-assign]


class Plain(Step[int, int]):
    name = "plain"

    def on_next(self, element: int) -> Each[int]:
        yield element


@pytest.mark.parametrize("method", ["on_next", "on_complete"])
def test_and_where_it_is_put_into_a_flow(method: str) -> None:
    step = Plain()
    setattr(step, method, lambda *_: iter([7]))
    with pytest.raises(TypeError, match=rf"Plain: `{method}` was assigned to an instance"):
        Flow.range(3)._then(step)


def test_a_flow_that_ends_at_a_boundary_is_drawn_without_a_blank_behind_it() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert str(Flow.just(0).publish_on(pool)) == "just(0) |"
