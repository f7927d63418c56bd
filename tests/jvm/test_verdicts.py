"""What this kit says of publishers of the JVM; docs/jvm.md has the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tck.page import row_is

from reactive_runtime.tck import Outcome, PublisherVerification

from .quiet import rxjava_quiet

PAGE = Path(__file__).parents[2] / "docs" / "jvm.md"


class World(NamedTuple):
    """What a publisher is made with."""

    jvm: Any
    actors: Any


@dataclass(frozen=True)
class Theirs:
    """A publisher of the JVM, of a number of elements; and failing after them."""

    name: str
    create: Callable[[World, int], Any]
    failing_after: Callable[[World, int, Any], Any]
    most: int = 2**31 - 1
    why: str = ""
    """Why checks failed, or were skipped."""


ANSWERS = "it answers an invalid request after a cancel with `on_error`"


def rxjava(operator: str, then: Callable[[Any], Any], why: str = ANSWERS) -> Theirs:
    def java() -> Any:
        import jpype

        return jpype.JClass("io.reactivex.rxjava3.core.Flowable")

    return Theirs(
        f"RxJava 3.1, `Flowable.range{operator}`",
        lambda world, n: world.jvm.from_java(then(java().range(0, n))),
        lambda world, n, failure: world.jvm.from_java(then(java().range(0, n).concatWith(java().error(failure)))),
        why=why,
    )


def reactor(operator: str, then: Callable[[Any], Any]) -> Theirs:
    def java() -> Any:
        import jpype

        return jpype.JClass("reactor.core.publisher.Flux")

    return Theirs(
        f"Reactor 3.7, `Flux.range{operator}`",
        lambda world, n: world.jvm.from_java(then(java().range(0, n))),
        lambda world, n, failure: world.jvm.from_java(then(java().range(0, n).concatWith(java().error(failure)))),
        why=ANSWERS,
    )


def on_rxjava_thread(flowable: Any) -> Any:
    import jpype

    return flowable.observeOn(jpype.JClass("io.reactivex.rxjava3.schedulers.Schedulers").computation())


def on_reactor_thread(flux: Any) -> Any:
    import jpype

    return flux.publishOn(jpype.JClass("reactor.core.scheduler.Schedulers").parallel())


class Fed:
    """A SubmissionPublisher for each subscriber, which is fed, and closed, when that has subscribed."""

    def __init__(self, world: World, elements: int, failure: Any = None) -> None:
        self._jvm = world.jvm
        self._elements = elements
        self._failure = failure

    def subscribe(self, subscriber: Any) -> None:
        import jpype

        pool = jpype.JClass("java.util.concurrent.ForkJoinPool").commonPool()
        flow = jpype.JClass("java.util.concurrent.SubmissionPublisher")(pool, self._elements + 1)
        self._jvm.from_java(jpype.JClass("org.reactivestreams.FlowAdapters").toPublisher(flow)).subscribe(subscriber)
        for n in range(self._elements):
            flow.submit(n)
        if self._failure is None:
            flow.close()
        else:
            flow.closeExceptionally(self._failure)


def pekko(world: World, elements: int, failure: Any = None) -> Any:
    """For any number of subscribers, each of which holds up the others."""
    import jpype

    streams = "org.apache.pekko.stream.javadsl."
    source, sink, keep = (jpype.JClass(streams + name) for name in ("Source", "Sink", "AsPublisher"))
    numbers = source.range(0, elements - 1) if elements else source.empty()
    if failure is not None:
        numbers = numbers.concat(source.failed(failure))
    return world.jvm.from_java(numbers.runWith(sink.asPublisher(keep.WITH_FANOUT), world.actors))


THEIRS = [
    rxjava("", lambda flowable: flowable),
    rxjava(".observeOn(computation)", on_rxjava_thread),
    rxjava(
        ".publish().refCount()",
        lambda flowable: flowable.publish().refCount(),
        f"{ANSWERS}; optional: a subscriber that does not request holds up the others",
    ),
    reactor("", lambda flux: flux),
    reactor(".publishOn(parallel)", on_reactor_thread),
    Theirs(
        "Pekko 1.1, `Source.range`",
        pekko,
        pekko,
        why="optional; the end follows a cancel from inside of the last `on_next`: it was under way",
    ),
    Theirs(
        "JDK 17, `SubmissionPublisher`",
        Fed,
        Fed,
        most=10_000,
        why="it holds all elements that were not requested, and 3.17 needs 2³¹ - 1 of them",
    ),
]


def outcomes(world: World, theirs: Theirs) -> list[Outcome]:
    """Of each check that can be made."""
    import jpype

    failure = jpype.JClass("java.io.IOException")("no net")

    class Judged(PublisherVerification[Any]):
        default_timeout = 2.0
        default_no_signals_timeout = 0.05
        publisher_reference_gc_timeout = 5.0
        max_elements_from_publisher = theirs.most

        def create_publisher(self, elements: int) -> Any:
            return theirs.create(world, elements)

        def create_failed_publisher(self) -> Any:
            return theirs.failing_after(world, 0, failure)

        def create_publisher_failing_after(self, elements: int) -> Any:
            return theirs.failing_after(world, elements, failure)

    with rxjava_quiet():
        return [outcome for outcome in Judged().outcomes() if outcome.check.kind != "untested"]


def rules(found: list[Outcome], status: str) -> str:
    return ", ".join(dict.fromkeys(outcome.check.rule for outcome in found if outcome.status == status))


BY_DAY = ("RxJava 3.1, `Flowable.range`", "JDK 17, `SubmissionPublisher`")
"""The others at night."""


@pytest.mark.parametrize(
    "theirs",
    [pytest.param(item, marks=() if item.name in BY_DAY else pytest.mark.nightly, id=item.name) for item in THEIRS],
)
def test_the_verdict_on_a_publisher_of_the_jvm_is_that_of_the_page(jvm: Any, actors: Any, theirs: Theirs) -> None:
    found = outcomes(World(jvm, actors), theirs)
    failed, skipped = rules(found, "failed"), rules(found, "skipped")
    verdict = f"breaks {failed}" if failed else "conforms"
    row_is("publishers of the JVM", f"| {theirs.name} | {verdict} | {skipped} | {theirs.why} |", PAGE)
