"""What a crossing leaves behind: no thread of Java, and no object."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink, until

from reactive_runtime import Flow
from reactive_runtime.interop import _java_values


class Kept(threading.local):
    """A value that a thread keeps to its end. A thread drops its values in the order in which they came."""

    view: Any = None


class Leaving:
    """Looks, where a thread drops it, whether Java knows that thread."""

    def __init__(self, attached: list[bool]) -> None:
        self._attached = attached

    def __del__(self) -> None:
        self._attached.append(_java_values.java_thread().isAttached())  # a look-up of the class attaches


def java_thread() -> Any:
    """The class, with what JPype adds to it."""
    import jpype

    return jpype.JClass("java.lang.Thread")


def subscribers_of_java(count: int) -> list[Any]:
    import jpype

    create = jpype.JClass("io.reactivex.rxjava3.subscribers.TestSubscriber").create
    return [create() for _ in range(count)]


def kept_by_java(calls: Iterable[Callable[[], object]]) -> int:
    """Make each call on a thread of its own, which ends then; eight at a time. How many of the threads Java keeps.

    Each thread looks for itself: threads of earlier tests, of RxJava, Reactor and Pekko attach whenever they like.
    """
    todo, attached, last = list(calls), list[bool](), Kept()

    def short(call: Callable[[], object]) -> None:
        call()
        last.view = Leaving(attached)

    for first in range(0, len(todo), 8):
        threads = [threading.Thread(target=short, args=[call]) for call in todo[first : first + 8]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(attached) == len(todo)
    return sum(attached)


def signalling(view: Any) -> Callable[[], object]:
    return lambda: Flow.just(1, 2).subscribe(view)


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_short_threads_that_signal_a_subscriber_of_java_leave_no_thread_of_java(jvm: Any, count: int) -> None:
    subscribers = subscribers_of_java(count)
    calls = [signalling(jvm.from_java(subscriber)) for subscriber in subscribers]
    assert kept_by_java(calls) == 0
    assert all(int(subscriber.values().size()) == 2 for subscriber in subscribers)


def flowable() -> Any:
    import jpype

    return jpype.JClass("io.reactivex.rxjava3.core.Flowable").range(0, 10)


def subscribed(jvm: Any) -> Callable[[], object]:
    view = jvm.from_java(flowable())
    return lambda: view.subscribe(Sink())


def requested(jvm: Any) -> Callable[[], object]:
    sink = Sink(demand=0)
    jvm.from_java(flowable()).subscribe(sink)
    return lambda: sink.subscription.request(1)


def cancelled(jvm: Any) -> Callable[[], object]:
    sink = Sink(demand=0)
    jvm.from_java(flowable()).subscribe(sink)
    return sink.subscription.cancel


def failed(jvm: Any) -> Callable[[], object]:
    (subscriber,) = subscribers_of_java(1)
    view = jvm.from_java(subscriber)
    return lambda: Flow.error(OSError("no disk")).subscribe(view)


def handed_over(jvm: Any) -> Callable[[], object]:
    (subscriber,) = subscribers_of_java(1)
    return lambda: jvm.to_java(Flow.range(3)).subscribe(subscriber)


def pooled(jvm: Any) -> Callable[[], object]:
    (subscriber,) = subscribers_of_java(1)
    view = jvm.from_java(subscriber)

    def call() -> None:
        with ThreadPoolExecutor(2) as pool:
            Flow.range(3).publish_on(pool).subscribe(view)

    return call


def described(jvm: Any) -> Callable[[], object]:
    view = jvm.from_java(flowable())
    return lambda: repr(view)


CROSSINGS = [subscribed, requested, cancelled, failed, handed_over, pooled, described]


@pytest.mark.parametrize("crossing", CROSSINGS, ids=lambda crossing: crossing.__name__)
def test_no_crossing_keeps_its_thread(jvm: Any, crossing: Callable[[Any], Callable[[], object]]) -> None:
    calls = [crossing(jvm) for _ in range(8)]
    assert kept_by_java(calls) == 0


def test_a_thread_that_was_attached_before_is_left_attached(jvm: Any) -> None:
    """Java knows it when it has ended: the bridge detaches what the bridge attached."""
    left = {}
    for before in (True, False):
        view = jvm.from_java(*subscribers_of_java(1))

        def call(view: Any = view, before: bool = before) -> None:
            if before:
                java_thread()  # a look-up attaches
            Flow.just(1).subscribe(view)

        left[before] = kept_by_java([call])
    assert left == {True: 1, False: 0}


def test_a_thread_that_drops_an_object_of_java_at_its_very_end_is_left_detached(jvm: Any) -> None:
    """Values of a thread are dropped one after the other, and what detaches it is one of them."""
    views = [jvm.from_java(subscriber) for subscriber in subscribers_of_java(4)]
    before_it, after_it = Kept(), Kept()

    def call() -> None:
        before_it.view = views.pop()
        Flow.just(1).subscribe(before_it.view)
        after_it.view = views.pop()

    assert kept_by_java([call, call]) == 0


def test_a_thread_detaches_itself_and_no_other(jvm: Any) -> None:
    """What detaches a thread is dropped by another one, as happens in the child of a fork."""
    held: list[Any] = []
    thread = threading.Thread(target=lambda: held.append(_java_values._Detaching()))
    thread.start()
    thread.join()
    assert java_thread().isAttached()
    held.clear()
    assert java_thread().isAttached()


def test_a_thread_that_is_detached_by_hand_is_attached_and_detached_again(jvm: Any) -> None:
    (subscriber,) = subscribers_of_java(1)
    view, detach = jvm.from_java(subscriber), java_thread().detach

    def call() -> None:
        for _ in range(3):
            repr(view)
            detach()
        repr(view)

    assert kept_by_java([call]) == 0


def test_a_view_that_is_dropped_by_a_thread_that_java_does_not_know_keeps_nothing_in_java(jvm: Any) -> None:
    """As the garbage collector does, on whichever thread it runs."""
    import jpype

    (subscriber,) = subscribers_of_java(1)
    weak = jpype.JClass("java.lang.ref.WeakReference")(subscriber)
    held = [jvm.from_java(subscriber)]
    del subscriber
    assert kept_by_java([held.clear]) == 0

    def collected() -> bool:
        jpype.JClass("java.lang.System").gc()
        return weak.get() is None

    until(collected)


def test_a_collection_of_garbage_leaves_a_thread_unknown_to_java(jvm: Any) -> None:
    """JPype attaches the thread on which a collection releases an object of Java."""
    import jpype

    make = jpype.JClass("java.util.ArrayList")
    assert kept_by_java([released_by_a_collection(make) for _ in range(4)]) == 0


def test_a_collection_leaves_a_thread_attached_that_was(jvm: Any) -> None:
    def collect() -> None:
        java_thread()  # a look-up attaches
        gc.collect()

    assert kept_by_java([collect]) == 1


def released_by_a_collection(make: Callable[[], Any]) -> Callable[[], object]:
    """A call that has a collection release an object of Java, which another thread has made."""
    knot: list[Any] = [make()]
    knot.append(knot)
    knots = [knot]

    def collect() -> None:
        knots.clear()
        gc.collect()

    return collect


@pytest.mark.parametrize(
    ("kind", "arguments", "attached"),
    [
        ("java.util.ArrayList", (), True),
        ("java.io.IOException", ("no net",), True),
        ("java.lang.Integer", (7,), False),
        ("java.lang.String", ("text",), False),
    ],
)
def test_a_thread_that_drops_an_element_or_an_error_of_java_stays_attached(
    jvm: Any, kind: str, arguments: tuple[Any, ...], attached: bool
) -> None:
    """As docs/jvm.md says: JPype attaches it to release an object; of a number and of a text there is a copy here."""
    import jpype

    item = jpype.JClass(kind)(*arguments)
    numbers = jpype.JClass("io.reactivex.rxjava3.core.Flowable")
    error = kind.endswith("Exception")
    sink = Sink()
    jvm.from_java(numbers.error(item) if error else numbers.just(item)).subscribe(sink)
    held = [sink.error] if error else list(sink.elements)
    del item, sink
    gc.collect()
    assert kept_by_java([held.clear]) == attached


def test_threads_of_java_are_not_detached_inside_of_a_call(jvm: Any) -> None:
    """Elements come on a thread of RxJava's, into Python, which signals Java again."""
    import jpype

    schedulers = jpype.JClass("io.reactivex.rxjava3.schedulers.Schedulers")
    (subscriber,) = subscribers_of_java(1)
    numbers = jpype.JClass("io.reactivex.rxjava3.core.Flowable").range(0, 1_000).observeOn(schedulers.single())
    Flow.from_publisher(jvm.from_java(numbers)).map(lambda n: n + 1).subscribe(jvm.from_java(subscriber))
    assert subscriber.await_(int(PATIENCE), jpype.JClass("java.util.concurrent.TimeUnit").SECONDS)
    assert [int(n) for n in subscriber.values()] == list(range(1, 1_001))


def test_a_second_subscription_that_is_cancelled_does_not_release_the_subscriber_of_the_first(jvm: Any) -> None:
    """The Java side alone refers to the subscriber, and its publisher calls onSubscribe twice (2.5, 2.12)."""
    import jpype

    subscribed: list[Any] = []
    elements: list[Any] = []

    class Twice:
        def subscribe(self, subscriber: Any) -> None:
            subscribed.append(subscriber)
            for _ in range(2):
                subscriber.onSubscribe(jpype.JProxy("java.util.concurrent.Flow$Subscription", inst=Idle()))

    class Idle:
        def request(self, n: Any) -> None: ...
        def cancel(self) -> None: ...

    twice = jpype.JProxy("java.util.concurrent.Flow$Publisher", inst=Twice())
    publisher = jvm.from_java(jpype.JClass("org.reactivestreams.FlowAdapters").toPublisher(twice))
    publisher.subscribe(CancelsTheSecond(elements))
    gc.collect()
    subscribed[0].onNext(1)
    assert elements == [1]


class CancelsTheSecond:
    """Keeps its first subscription."""

    def __init__(self, elements: list[Any]) -> None:
        self.elements = elements
        self.subscription: Any = None

    def on_subscribe(self, subscription: Any, /) -> None:
        if self.subscription is None:
            self.subscription = subscription
        else:
            subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)

    def on_error(self, error: BaseException, /) -> None: ...
    def on_complete(self) -> None: ...
