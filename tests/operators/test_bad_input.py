"""Wrong arguments raise where the flow is assembled, and name operator and argument."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from queue import Queue
from typing import Any

import pytest

from reactive_runtime import Flow, KillSwitch, Listener, Metrics, Valve
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor, ReplayProcessor, SubmissionPublisher
from reactive_runtime.subscribers import AsyncSubscriber, BaseSubscriber, BufferedSubscriber
from reactive_runtime.testing import StepVerifier, TestPublisher

F: Any = Flow.range(3)
POOL = ThreadPoolExecutor(1)
T = VirtualTimeExecutor()
NO: Any = 3
SOURCES: Any = Flow  # without its types


class Elsewhere:
    def __aiter__(self) -> Any:
        raise NotImplementedError


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: F.take(-1), ValueError, "take: n must be at least 0, not -1"),
    (lambda: F.skip("1"), TypeError, "skip: n must be an int, not str"),
    (lambda: F.batch(0), ValueError, "batch: n must be at least 1, not 0"),
    (lambda: F.window(0), ValueError, "window: n must be at least 1"),
    (lambda: F.map(NO), TypeError, "map: fn must be callable, not int"),
    (lambda: F.starmap(NO), TypeError, "starmap: fn must be callable"),
    (lambda: F.handle(NO), TypeError, "handle: fn must be callable"),
    (lambda: F.filter(None), TypeError, "filter: predicate must be callable, not None"),
    (lambda: F.scan(NO, 0), TypeError, "scan: fn must be callable"),
    (lambda: F.reduce(NO), TypeError, "reduce: fn must be callable"),
    (lambda: F.element_at(-1), ValueError, "element_at: index must be at least 0"),
    (lambda: F.flat_map(NO), TypeError, "flat_map: fn must be callable"),
    (lambda: F.flat_map(Flow.just, concurrency=0), ValueError, "flat_map: concurrency must be at least 1, not 0"),
    (lambda: F.flat_map(Flow.just, prefetch=0), ValueError, "flat_map: prefetch must be at least 1"),
    (lambda: F.switch_map(Flow.just, prefetch=0), ValueError, "switch_map: prefetch must be at least 1"),
    (lambda: F.map_parallel(str), TypeError, "map_parallel: a concurrent.futures.Executor is needed, not None"),
    (lambda: F.map_parallel(str, POOL, concurrency=True), TypeError, "map_parallel: concurrency must be an int, not"),
    (
        lambda: F.map_parallel(str, POOL, concurrency="fast"),
        ValueError,
        "map_parallel: concurrency must be an int from 1, or \"auto\", not 'fast'",
    ),
    (lambda: F.map_parallel(str, POOL, chunk=0), ValueError, "map_parallel: chunk must be at least 1"),
    (lambda: F.publish_on(POOL, prefetch=0), ValueError, "publish_on: prefetch must be at least 1"),
    (lambda: F.publish_on("pool"), TypeError, "publish_on: a concurrent.futures.Executor is needed, not str"),
    (lambda: F.balance(0), ValueError, "balance: n must be at least 1"),
    (lambda: F.balance(2, prefetch=0), ValueError, "balance: prefetch must be at least 1"),
    (lambda: F.partition(NO), TypeError, "partition: predicate must be callable, not int"),
    (lambda: F.partition(str, prefetch=True), TypeError, "partition: prefetch must be an int"),
    (lambda: F.parallel(0), ValueError, "parallel: n must be at least 1"),
    (lambda: F.parallel(2).sequential(), ValueError, "run_on"),
    (lambda: F.limit_rate(0), ValueError, "limit_rate: n must be at least 1"),
    (
        lambda: F.on_overflow_buffer(1, drop="any"),
        ValueError,
        "on_overflow_buffer: drop must be one of oldest, newest, error",
    ),
    (lambda: F.group_by(str, groups=0), ValueError, "group_by: groups must be at least 1"),
    (lambda: F.delay(-1, clock=T), ValueError, "delay: seconds must be a number of seconds from 0, not -1"),
    (lambda: F.delay("1", clock=T), TypeError, "delay: seconds must be a number of seconds, not str"),
    (lambda: F.timeout(0, clock=T), ValueError, "timeout: seconds must be a number of seconds above 0"),
    (lambda: F.timeout(1, clock=POOL), TypeError, "timeout: an executor with a clock is needed"),
    (lambda: F.rate_limit(0, clock=T), ValueError, "rate_limit: n must be at least 1"),
    (lambda: F.retry(-1), ValueError, "retry: n must be at least 0"),
    (lambda: F.retry_backoff(1, clock=T, jitter=2), ValueError, "retry_backoff: jitter must be a fraction from 0 to 1"),
    (lambda: F.on_error_resume(str, when=int), TypeError, "on_error_resume: when must be a class of exceptions"),
    (lambda: F.log(level="x"), TypeError, "log: level must be an int"),
    (lambda: F.log(level=-1), ValueError, "log: level must be at least 0"),
    (lambda: F.merge_with(NO), TypeError, "merge_with: other 1 must be a publisher, not int"),
    (lambda: F.take_until(NO), TypeError, "take_until: other must be a publisher, not int"),
    (lambda: F.pausable(NO), TypeError, "pausable: a Valve is needed, not int"),
    (lambda: F.kill_switch(NO), TypeError, "kill_switch: a KillSwitch is needed"),
    (lambda: F.tap(NO), TypeError, "tap: a Listener is needed"),
    (lambda: F.do_on_next(NO), TypeError, "do_on_next: fn must be callable"),
    (lambda: F.do_on_error(NO), TypeError, "do_on_error: fn must be callable"),
    (lambda: F.transform(str), TypeError, "transform: str must return a Flow, not str"),
    (lambda: F.end_with(None), TypeError, "end_with: None is not an element"),
    (lambda: F.default_if_empty(None), TypeError, "default_if_empty: None is not an element"),
    (lambda: F.to_queue(NO), TypeError, "to_queue: a queue is needed"),
    (lambda: SOURCES.from_queue([3]), TypeError, "from_queue: a queue is needed, not list"),
    (lambda: SOURCES.from_queue(asyncio.Queue()), TypeError, "from_queue: get of Queue is a coroutine function"),
    (
        lambda: F.merge_with([3]),
        TypeError,
        "other 1 must be a publisher, not list (Flow.from_iterable makes one of it)",
    ),
    (lambda: SOURCES.zip(F, "ab"), TypeError, "source 2 must be a publisher, not str (Flow.just makes one of it)"),
    (lambda: F.merge_with(Elsewhere()), TypeError, "other 1 must be a publisher, not Elsewhere (Flow.from_async makes"),
    (
        lambda: SOURCES.from_publisher([3]),
        TypeError,
        "`subscribe` is needed, not list (Flow.from_iterable makes one of it)",
    ),
    (lambda: SOURCES.error("no"), TypeError, "error: an exception, or a function that makes one, is needed, not str"),
    (lambda: SOURCES.from_iterable(NO), TypeError, "from_iterable: an iterable is needed, not int"),
    (lambda: SOURCES.from_iterable(None), TypeError, "from_iterable: an iterable is needed, not None"),
    (lambda: SOURCES.from_iterable(Elsewhere()), TypeError, "not Elsewhere (Flow.from_async takes it)"),
    (lambda: Flow.interval(0, clock=T), ValueError, "interval: seconds must be a number of seconds above 0"),
    (
        lambda: Flow.interval(1, clock=T, overflow="any"),  # type: ignore[arg-type]
        ValueError,
        "interval: overflow must be one of drop, buffer, latest",
    ),
    (lambda: Flow.from_async(NO), TypeError, "from_async: an async iterable, or a function, is needed, not int"),
    (lambda: Flow.from_future(NO), TypeError, "from_future: a future is needed, not int"),
    (lambda: Flow.create(NO), TypeError, "create: fn must be callable"),
    (lambda: Flow.using(NO, Flow.just), TypeError, "using: resource must be callable"),
    (lambda: SubmissionPublisher(NO), TypeError, "SubmissionPublisher: a concurrent.futures.Executor is needed"),
    (lambda: PublishProcessor(capacity=0), ValueError, "PublishProcessor: capacity must be at least 1"),
    (lambda: ReplayProcessor(-1), ValueError, "ReplayProcessor: n must be at least 0"),
    (
        lambda: BufferedSubscriber(capacity=4, threshold=4),
        ValueError,
        "BufferedSubscriber: threshold must be below capacity",
    ),
    (lambda: AsyncSubscriber(NO), TypeError, "AsyncSubscriber: a concurrent.futures.Executor is needed"),
    (lambda: TestPublisher(breaks="9.9"), ValueError, "'9.9' is not a rule"),
    (lambda: StepVerifier(F).then_wait(1), ValueError, "then_wait: there is no virtual clock"),
]


@pytest.mark.parametrize(("make", "kind", "text"), WRONG, ids=[text[:50] for _, _, text in WRONG])
def test_a_wrong_argument_is_named_where_the_flow_is_assembled(
    make: Callable[[], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as raised:
        make()
    assert text in str(raised.value)


class Doer(BaseSubscriber[int]):
    """Given as it is, without a call."""


CLASSES: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.subscribe(Doer), "subscribe: a Subscriber or a function is needed, not the class Doer"),
    (lambda: F.merge_with(PublishProcessor), "merge_with: other 1 must be a publisher, not the class PublishProcessor"),
    (lambda: SOURCES.from_publisher(Flow), "from_publisher: an object with `subscribe` is needed, not the class Flow"),
    (lambda: SOURCES.from_iterable(list), "from_iterable: an iterable is needed, not the class list"),
    (lambda: SOURCES.from_future(Future), "from_future: a future is needed, not the class Future"),
    (lambda: F.publish_on(ThreadPoolExecutor), "a concurrent.futures.Executor is needed, not the class Thread"),
    (lambda: F.timeout(1, clock=VirtualTimeExecutor), "VirtualTimeExecutor), not the class VirtualTimeExecutor"),
    (lambda: F.kill_switch(KillSwitch), "kill_switch: a KillSwitch is needed, not the class KillSwitch"),
    (lambda: F.pausable(Valve), "pausable: a Valve is needed, not the class Valve"),
    (lambda: F.tap(Listener), "tap: a Listener is needed, not the class Listener"),
    (lambda: F.metrics(Metrics), "metrics: a Metrics is needed, not the class Metrics"),
    (lambda: SOURCES.from_queue(Queue), "from_queue: a queue is needed, not the class Queue"),
    (lambda: F.to_queue(Queue), "to_queue: a queue is needed, not the class Queue"),
]


@pytest.mark.parametrize(("make", "text"), CLASSES, ids=[text.partition(":")[0] for _, text in CLASSES])
def test_a_class_in_place_of_an_object_has_to_be_called(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError) as raised:
        make()
    assert text in str(raised.value)
    assert ": call it" in str(raised.value)


@pytest.mark.parametrize(
    "run",
    [F.publish_on, F.subscribe_on, F.parallel(2).run_on, SubmissionPublisher, AsyncSubscriber],
    ids=["publish_on", "subscribe_on", "run_on", "SubmissionPublisher", "AsyncSubscriber"],
)
def test_processes_are_refused_where_threads_are_needed(run: Callable[[Any], Any]) -> None:
    with (
        ProcessPoolExecutor(1) as processes,
        pytest.raises(
            TypeError, match="threads share memory is needed, not ProcessPoolExecutor: map_parallel takes it"
        ),
    ):
        run(processes)


def test_a_function_that_returns_no_publisher_hears_how_to_make_one() -> None:
    with pytest.raises(
        TypeError, match=r"must return a publisher, not list \(Flow.from_iterable makes one of it\), for 0"
    ):
        F.flat_map(lambda n: [n]).block()
    begun = coroutine(3)
    with pytest.raises(
        TypeError, match=r"not coroutine .flat_map awaits where it is given the coroutine function itself"
    ):
        F.flat_map(lambda n: begun).block()
    begun.close()


def test_a_subscriber_whose_init_forgets_that_of_the_class_it_extends_hears_of_it() -> None:
    class Forgetful(BaseSubscriber[int]):
        def __init__(self) -> None:
            self.seen: list[int] = []

    with pytest.raises(
        AttributeError, match="'Forgetful' object has no attribute '_lock': its __init__ has to call super"
    ):
        Forgetful().request(1)
    with pytest.raises(AttributeError, match=r"'Doer' object has no attribute 'wrong'$"):
        _ = Doer().wrong  # type: ignore[attr-defined]


async def coroutine(n: int) -> int:
    return n


class CalledAsOne:
    async def __call__(self, n: int) -> int:
        return n


def callables() -> Iterator[tuple[str, str]]:
    """Each public method of a flow that takes a function, and the argument."""
    for name, method in inspect.getmembers(Flow, callable):
        for parameter in inspect.signature(method).parameters.values() if name[0] != "_" else ():
            if re.search("Callable|When", str(parameter.annotation)):
                yield name, parameter.name


def called(name: str, argument: str, given: object) -> None:
    """Call the method with what is given, and with something that will do for whatever else it needs."""
    arguments: dict[str, Any] = {argument: given}
    for parameter in inspect.signature(getattr(Flow, name)).parameters.values():
        needed = parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        if needed and parameter.name not in ("self", argument):
            arguments[parameter.name] = str if "Callable" in str(parameter.annotation) else 1
    getattr(F if "self" in inspect.signature(getattr(Flow, name)).parameters else Flow, name)(**arguments)


CALLABLES = list(callables())


def test_the_methods_that_take_a_function_are_found() -> None:
    assert {("for_each", "fn"), ("using", "resource"), ("retry", "when"), ("subscribe", "on_error")} <= set(CALLABLES)


@pytest.mark.parametrize(("name", "argument"), CALLABLES)
def test_what_is_no_function_is_named_by_the_operator_that_got_it(name: str, argument: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}: .*not (int|3)"):
        called(name, argument, NO)


AWAITED = {("flat_map", "fn"), ("from_coroutine", "fn"), ("map_parallel", "fn")}


@pytest.mark.parametrize(
    "given", [coroutine, partial(coroutine, 1), CalledAsOne()], ids=["function", "partial", "call"]
)
@pytest.mark.parametrize(("name", "argument"), [item for item in CALLABLES if item not in AWAITED])
def test_a_coroutine_function_is_refused_where_it_is_not_awaited(name: str, argument: str, given: object) -> None:
    with pytest.raises(TypeError, match=f"^{name}: {argument} is a coroutine function, which {name} does not await"):
        called(name, argument, given)


@pytest.mark.parametrize("given", [coroutine, CalledAsOne()], ids=["function", "call"])
def test_a_coroutine_function_is_awaited_elsewhere(given: Any) -> None:
    assert sorted(F.flat_map(given)) == [0, 1, 2]
    assert list(F.map_parallel(given)) == [0, 1, 2]


@pytest.mark.parametrize("name", sorted({name for name, argument in CALLABLES if argument == "when"}))
def test_a_failure_of_no_class_is_none(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: when is an empty tuple, .* or leave out {name}$"):
        called(name, "when", ())


def test_a_coroutine_function_takes_no_executor() -> None:
    with pytest.raises(TypeError, match="takes no executor"):
        F.map_parallel(coroutine, POOL)
