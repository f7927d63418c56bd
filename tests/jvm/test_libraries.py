"""Reactor and Pekko on the other side, as RxJava is in `test_rxjava.py`: both ways, with demand, cancel and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow

from .asked import Asked


@dataclass(frozen=True)
class Library:
    """A library of the JVM."""

    name: str
    numbers: Callable[[int, Callable[[], object]], Any]
    """A publisher of so many numbers, which notes its cancellation by a call."""
    failed: Callable[[Any], Any]
    """A publisher that fails with a Throwable."""
    through: Callable[[Any], Any]
    """A publisher that hands on what another one signals."""
    first: Callable[[Any, int], list[Any]]
    """The first elements of a publisher, as that library takes them; the rest is cancelled."""
    prefetch: int
    """What `through` asks for at first, where a single element is asked of it."""


def running(call: Callable[..., object]) -> Any:
    """A Runnable of Java."""
    import jpype

    return jpype.JProxy("java.lang.Runnable", dict={"run": call})


def reactor() -> Library:
    import jpype

    flux = jpype.JClass("reactor.core.publisher.Flux")
    schedulers = jpype.JClass("reactor.core.scheduler.Schedulers")
    return Library(
        "Reactor",
        lambda n, cancelled: flux.range(0, n).doOnCancel(running(cancelled)),
        flux.error,
        lambda publisher: flux.from_(publisher).publishOn(schedulers.parallel(), 8),
        lambda publisher, n: list(flux.from_(publisher).take(n).collectList().block()),
        prefetch=8,
    )


def pekko(system: Any) -> Library:
    import jpype

    scaladsl = "org.apache.pekko.stream.javadsl."
    source, sink, keep = (jpype.JClass(scaladsl + name) for name in ("Source", "Sink", "AsPublisher"))

    def published(flow: Any) -> Any:
        return flow.runWith(sink.asPublisher(keep.WITHOUT_FANOUT), system)

    def numbers(n: int, cancelled: Callable[[], object]) -> Any:
        ended = jpype.JProxy("java.util.function.BiFunction", dict={"apply": lambda done, failure: cancelled()})

        def watched(_: Any, done: Any) -> Any:
            return done.handle(ended)

        both = jpype.JProxy("org.apache.pekko.japi.function.Function2", dict={"apply": watched})
        return published(source.range(0, n - 1).watchTermination(both))

    return Library(
        "Pekko",
        numbers,
        lambda throwable: published(source.failed(throwable)),
        lambda publisher: published(source.fromPublisher(publisher).take(2**63 - 1)),
        lambda publisher, n: list(
            source.fromPublisher(publisher).take(n).runWith(sink.seq(), system).toCompletableFuture().get()
        ),
        prefetch=16,
    )


@pytest.fixture(params=["Reactor", "Pekko"])
def library(request: pytest.FixtureRequest, jvm: Any) -> Library:
    return reactor() if request.param == "Reactor" else pekko(request.getfixturevalue("actors"))


def test_a_publisher_of_theirs_is_a_flow_here(jvm: Any, library: Library) -> None:
    flow = Flow.from_publisher(jvm.from_java(library.numbers(1_000, bool))).filter(lambda n: n % 2)
    assert flow.to_list().block(timeout=PATIENCE) == list(range(1, 1_000, 2))


def test_a_flow_of_ours_is_a_publisher_there(jvm: Any, library: Library) -> None:
    assert [int(n) for n in library.first(jvm.to_java(Flow.range(1_000)), 5)] == [0, 1, 2, 3, 4]


def test_their_publisher_gives_what_is_requested_here_and_no_more(jvm: Any, library: Library) -> None:
    sink = Sink(demand=3)
    jvm.from_java(library.numbers(1_000, bool)).subscribe(sink)
    sink.wait_for(3).subscription.request(2)
    sink.wait_for(2).subscription.cancel()
    assert sink.elements == [0, 1, 2, 3, 4]
    assert sink.end is None


def test_our_publisher_is_asked_for_what_they_request(jvm: Any, library: Library) -> None:
    source, sink = Asked(1_000_000), Sink(demand=1)
    jvm.from_java(library.through(jvm.to_java(source))).subscribe(sink)
    sink.wait_for(1)
    assert source.requests[0] == library.prefetch
    assert sum(source.requests) < 100
    sink.subscription.cancel()
    assert source.cancelled.wait(PATIENCE)


def test_a_cancel_here_reaches_their_publisher(jvm: Any, library: Library) -> None:
    cancelled, sink = threading.Event(), Sink(demand=1)
    jvm.from_java(library.numbers(1_000_000, cancelled.set)).subscribe(sink)
    sink.wait_for(1).subscription.cancel()
    assert cancelled.wait(PATIENCE)


def test_a_cancel_there_reaches_our_publisher(jvm: Any, library: Library) -> None:
    source = Asked(1_000_000)
    assert [int(n) for n in library.first(jvm.to_java(source), 4)] == [0, 1, 2, 3]
    assert source.cancelled.wait(PATIENCE)


def test_an_error_of_ours_goes_through_them_and_is_itself_again(jvm: Any, library: Library) -> None:
    failure, sink = OSError("no disk"), Sink()
    jvm.from_java(library.through(jvm.to_java(Asked(2, failure)))).subscribe(sink)
    assert sink.wait().error is failure


def test_an_error_of_theirs_arrives_here(jvm: Any, library: Library) -> None:
    import jpype

    failure, sink = jpype.JClass("java.io.IOException")("no net"), Sink()
    jvm.from_java(library.failed(failure)).subscribe(sink)
    assert sink.wait().error == failure
    assert "no net" in str(sink.error)


def test_what_they_can_not_read_is_there_and_back(jvm: Any, library: Library) -> None:
    """Opaque elements, across a thread of theirs."""
    elements = [("a", 1), {"key": [1]}, 2**70, b"bytes"]
    flow = Flow.from_publisher(jvm.from_java(library.through(jvm.to_java(Flow.just(*elements)))))
    found = flow.to_list().block(timeout=PATIENCE)
    assert found == elements
    assert all(back is element for back, element in zip(found, elements, strict=True))
