"""None is not an element (2.13): whatever a user hands to an operator, and whatever his functions return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, get_overloads

import pytest
from sinks import Sink, wait_until

from operators.catalogue import CASES, Place
from reactive_runtime import MAX_DEMAND, Flow, Notification
from reactive_runtime._core.fusion import fuse
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hooks import Dropped
from reactive_runtime.hot import BehaviorProcessor

PUBLIC = {name: item for name, item in inspect.getmembers(Flow, callable) if not name.startswith("_")}


def parameters(of: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return {
        name: parameter
        for name, parameter in inspect.signature(of).parameters.items()
        if name not in ("self", "source")
    }


# -- what may become an element is looked at where the flow is put together --------------------------------------------

STATE = {("scan", "initial"), ("generate", "initial")}  # handed to a function, and never on
ASKED_FOR = {("contains", "element")}  # compared with the elements, none of which it equals
PUT = {("to_queue", "end")}  # for the reader of the queue

VALUES = sorted(
    {
        (operator, name)
        for operator, item in PUBLIC.items()
        for form in get_overloads(item) or [item]
        for name, parameter in parameters(form).items()
        if parameter.annotation in ("T", "S", "R")
    }
    - STATE
    - ASKED_FOR
    - PUT
)
IF_NEEDED = {
    ("first", "default"),
    ("last", "default"),
    ("element_at", "default"),
    ("single", "default"),
    ("reduce", "initial"),
}
"""What an empty flow gives in place of an element. It may never be needed: it is looked at when it is."""


def test_the_values_are_found() -> None:
    assert {("first", "default"), ("just", "elements"), ("reduce", "initial"), ("start_with", "elements")} <= set(
        VALUES
    )


@pytest.mark.parametrize(("operator", "argument"), [item for item in VALUES if item not in IF_NEEDED])
def test_a_value_that_may_become_an_element_is_not_none(operator: str, argument: str) -> None:
    given: list[Any] = [] if operator == "just" else [Flow.empty()]
    named: dict[str, Any] = {}
    for name, parameter in parameters(PUBLIC[operator]).items():
        value = None if name == argument else {"fn": max, "index": 1}[name]
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            named[name] = value
        else:
            given.append(value)
    with pytest.raises(TypeError, match=f"^{operator}: None is not an element"):
        PUBLIC[operator](*given, **named)


def test_the_argument_is_named() -> None:
    with pytest.raises(TypeError, match=r"^default_if_empty: .* default may become one"):
        Flow.empty().default_if_empty(None)


@pytest.mark.parametrize(
    "flow",
    [
        Flow.empty().first(None),
        Flow.empty().last(None),
        Flow.just(7).element_at(1, None),
        Flow.empty().single(None),
        Flow.range(0).reduce(lambda so_far, _: so_far, None),
    ],
    ids=str,
)
def test_a_default_of_none_ends_the_flow_that_needs_it(flow: Flow[Any]) -> None:
    sink = Sink()
    flow.subscribe(sink)
    assert sink.wait().elements == []
    assert isinstance(sink.error, TypeError)
    assert "None is not an element" in str(sink.error)


def test_a_behavior_begins_with_an_element() -> None:
    with pytest.raises(TypeError):
        BehaviorProcessor(None)


# -- functions that return None ----------------------------------------------------------------------------------------

FUNCTIONS = sorted(
    (operator, name)
    for operator, item in PUBLIC.items()
    for name, parameter in parameters(item).items()
    if "Callable" in str(parameter.annotation)
    # called with the flow, or with what has gone through
    and operator not in ("transform", "with_context", "subscribe", "for_each")
)


async def nothing_async(*_: Any) -> None:
    """Returns None."""


def nothing(*_: Any) -> None:
    """Returns None."""


def heard(flow: Flow[Any], demand: int) -> Sink:
    """Its signals; errors are of the kind that says so, or none."""
    sink = Sink(demand, lambda sink, _: sink.subscription.request(1) if demand != MAX_DEMAND else None)
    flow.subscribe(sink)
    assert None not in sink.wait().elements
    return sink


@pytest.mark.parametrize("demand", [1, MAX_DEMAND])
@pytest.mark.parametrize("function", [nothing, nothing_async])
@pytest.mark.parametrize(("operator", "argument"), FUNCTIONS)
def test_no_element_is_made_of_a_function_that_returns_none(
    operator: str, argument: str, function: Any, demand: int, dropped: list[Dropped]
) -> None:
    if function is nothing_async and "Publisher" not in str(parameters(PUBLIC[operator])[argument]) + operator:
        function = nothing
    method: Any = PUBLIC[operator]
    clock = VirtualTimeExecutor()
    with ThreadPoolExecutor(2) as pool:
        source: Flow[Any] = Flow.range(4)
        if "Exception" in str(parameters(method)[argument].annotation):
            source = source.concat_with(Flow.error(OSError("gone")))
        known: dict[str, Any] = {
            argument: function, "self": source, "source": source, "clock": clock, "executor": pool, "n": 2,
            "initial": 1,
            "resource": lambda: nullcontext(1), "supplier": list, "accumulate": list.append, "fn": nothing,
            "sources": Flow.range(2), "key": nothing, "seed": nothing, "first": 0.1,
            "part": lambda flow: flow.map(str), "to": nothing,
        }  # fmt: skip
        given: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in inspect.signature(method).parameters.items():
            value = known[name] if parameter.default is inspect.Parameter.empty else known.get(name, parameter.default)
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[name] = value
            else:
                given.append(value)
        flow = method(*given, **named)
        if isinstance(flow, tuple):
            flow = Flow.merge(*flow)
        if operator == "create":
            return  # nothing is emitted, not even an end
        sink = Sink(demand, lambda sink, _: sink.subscription.request(1) if demand != MAX_DEMAND else None)
        flow.subscribe(sink)
        wait_until(lambda: _advanced(clock) and sink.ended.is_set())
        assert None not in sink.elements


def _advanced(clock: VirtualTimeExecutor) -> bool:
    clock.advance(1)
    return True


class Odd:
    """Adds up to nothing."""

    def __radd__(self, other: object) -> None:
        """None."""


ENDS: dict[str, Callable[[], Flow[Any]]] = {
    "sum": lambda: Flow.just(Odd()).sum(),
    "reduce": lambda: Flow.range(3).reduce(nothing),  # type: ignore[arg-type]
    "collect": lambda: Flow.range(3).collect(nothing, nothing),
    "dematerialize": lambda: Flow.just(Notification("on_next")).dematerialize(),
    "generate": lambda: Flow.generate(0, lambda n: (None, n)),
    "handle": lambda: Flow.range(3).handle(lambda n, emit: emit(None)),
    "flatten": lambda: Flow.just([1, None]).flatten(),
    "flat_map_iterable": lambda: Flow.just(1).flat_map_iterable(lambda n: [None]),
    "from_async": lambda: Flow.from_async(_none_async),
    "from_coroutine": lambda: Flow.from_coroutine(_none_awaited),
    "create": lambda: Flow.create(lambda emitter: emitter.emit(None)),
    "a publisher": lambda: Flow.from_publisher(_GivesNone()),
}


async def _none_async() -> Any:
    yield None


async def _none_awaited() -> None:
    """Returns None."""


class _GivesNone:
    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        try:
            self.subscriber.on_next(None)
        except TypeError as error:
            self.subscriber.on_error(error)

    def cancel(self) -> None:
        """Nothing more comes."""


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("demand", [1, MAX_DEMAND])
@pytest.mark.parametrize("name", ENDS)
def test_where_none_comes_out_the_flow_fails(name: str, demand: int, fused: bool, dropped: list[Dropped]) -> None:
    with fuse.fusing(fused):
        assert isinstance(heard(ENDS[name](), demand).error, TypeError)


# -- None out of a source, under every operator ------------------------------------------------------------------------


def rows() -> Iterator[Any]:
    yield from range(3)
    yield None


@pytest.mark.parametrize("demand", [1, MAX_DEMAND])
@pytest.mark.parametrize("on_a_pool", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_operator_lets_none_through(case: Any, on_a_pool: bool, demand: int, dropped: list[Dropped]) -> None:
    clock = VirtualTimeExecutor()
    with ThreadPoolExecutor(2) as pool:
        source = Flow.from_supplier(rows)
        flow = case.apply(source.subscribe_on(pool) if on_a_pool else source, Place(pool, clock))
        sink = Sink(demand, lambda sink, _: sink.subscription.request(1) if demand != MAX_DEMAND else None)
        flow.subscribe(sink)
        wait_until(lambda: _advanced(clock) and sink.ended.is_set())
    assert None not in sink.elements
    if case.survives is None and case.name != "zip_with":  # which ends with the shorter of the two
        error = sink.error
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        assert "None came out of the source from_supplier(rows) at index 3" in str(error)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("demand", [1, MAX_DEMAND])
@pytest.mark.parametrize("through", [lambda f: f, lambda f: f.map(str), lambda f: f.do_on_complete(nothing)])
@pytest.mark.parametrize(
    ("source", "title"),
    [
        (Flow.from_supplier(rows), "from_supplier(rows) at index 3"),
        (Flow.from_iterable([0, 1, 2, None]), "from_iterable(list) at index 3"),
        (Flow.from_iterable((None, 1)), "from_iterable(tuple) at index 0"),
        (Flow.from_iterable({"a": 1, "b": None}.values()), "from_iterable(dict_values) at index 1"),
        (Flow.from_iterable({None}), "from_iterable(set) at index 0"),
        (Flow.generate(0, lambda n: (None if n == 2 else n, n + 1)), "at index 2"),
    ],
)
def test_the_source_and_the_index_are_named(
    source: Flow[Any], title: str, through: Callable[[Flow[Any]], Flow[Any]], demand: int, fused: bool
) -> None:
    with fuse.fusing(fused):
        error = heard(through(source), demand).error
        with pytest.raises(TypeError) as caught:
            list(through(source))
    for item in (error, caught.value):
        assert str(item).startswith("None came out of the source ")
        assert title in str(item)


def test_a_source_behind_a_boundary_is_named() -> None:
    with ThreadPoolExecutor(2) as pool:
        flow = Flow.from_supplier(rows).subscribe_on(pool).publish_on(pool).map(str)
        with pytest.raises(TypeError, match=r"from_supplier\(rows\) at index 3"):
            flow.run()


def test_an_iterator_that_was_begun_is_counted_from_where_it_is() -> None:
    begun = iter([0, 1, None])
    next(begun)
    with pytest.raises(TypeError, match="at index 1"):
        list(Flow.from_iterable(begun))
