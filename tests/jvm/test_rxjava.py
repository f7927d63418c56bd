"""RxJava 3 on the other side: demand, errors and cancellation cross over, both ways."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import Flow

from .asked import Asked
from .quiet import rxjava_quiet


@pytest.fixture
def rx(jvm: Any) -> Any:
    import jpype

    return jpype.JPackage("io").reactivex.rxjava3


def through_java(jvm: Any, rx: Any, publisher: Any) -> Any:
    """A source of Python, as a Flowable."""
    return rx.core.Flowable.fromPublisher(jvm.to_java(publisher))


def test_a_source_goes_to_java_and_back(jvm: Any, rx: Any) -> None:
    flowable = through_java(jvm, rx, Flow.range(1_000)).skip(10).take(5)
    assert Flow.from_publisher(jvm.from_java(flowable)).to_list().block(timeout=PATIENCE) == [10, 11, 12, 13, 14]


def test_a_source_crosses_threads_on_both_sides(jvm: Any, rx: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        source = Flow.range(5_000).subscribe_on(pool)
        flowable = through_java(jvm, rx, source).observeOn(rx.schedulers.Schedulers.computation())
        flow = Flow.from_publisher(jvm.from_java(flowable)).publish_on(pool, prefetch=16)
        assert flow.to_list().block(timeout=PATIENCE) == list(range(5_000))


@pytest.mark.parametrize("element", [7, -(2**63), 2**70, 0.5, True, "text", b"bytes", ("a", 1), {"key": [1]}])
def test_an_element_comes_back_as_it_went(jvm: Any, rx: Any, element: Any) -> None:
    flow = Flow.from_publisher(jvm.from_java(through_java(jvm, rx, Flow.just(element))))
    found = flow.to_list().block(timeout=PATIENCE)
    assert found is not None
    (back,) = found
    assert back == element
    assert type(back) is type(element)


def test_an_element_of_java_comes_as_what_it_is(jvm: Any, rx: Any) -> None:
    flow = Flow.from_publisher(jvm.from_java(rx.core.Flowable.just(1, "two", 3.5)))
    assert flow.to_list().block(timeout=PATIENCE) == [1, "two", 3.5]


def test_demand_is_kept_across(jvm: Any, rx: Any) -> None:
    source, sink = Asked(1_000_000), Sink(demand=3)
    jvm.from_java(through_java(jvm, rx, source)).subscribe(sink)
    assert sink.elements == [0, 1, 2]
    sink.subscription.request(2)
    assert sink.elements == [0, 1, 2, 3, 4]
    assert source.requests == [3, 2]
    sink.subscription.cancel()


def test_demand_of_a_java_operator_reaches_python(jvm: Any, rx: Any) -> None:
    source, sink = Asked(1_000_000), Sink(demand=1)
    jvm.from_java(through_java(jvm, rx, source).rebatchRequests(8)).subscribe(sink)
    wait_until(lambda: sink.elements == [0])
    assert source.requests[0] == 8
    sink.subscription.cancel()


def test_an_error_of_python_goes_through_java_and_is_itself_again(jvm: Any, rx: Any) -> None:
    failure = OSError("no disk")
    sink = Sink()
    jvm.from_java(through_java(jvm, rx, Asked(2, failure))).subscribe(sink)
    assert sink.wait().error is failure
    assert sink.elements == [0, 1]


def test_java_sees_what_python_failed_with(jvm: Any, rx: Any) -> None:
    signal = through_java(jvm, rx, Asked(0, ValueError("too small"))).materialize().blockingFirst()
    assert str(signal.getError()) == "java.lang.IllegalArgumentException: too small"


def test_an_error_of_java_arrives_in_python(jvm: Any, rx: Any) -> None:
    import jpype

    sink = Sink()
    jvm.from_java(rx.core.Flowable.error(jpype.JPackage("java").io.IOException("no net"))).subscribe(sink)
    assert "no net" in str(sink.wait().error)
    assert isinstance(sink.error, jpype.JException)


def test_a_cancel_in_python_reaches_java_and_the_source_behind_it(jvm: Any, rx: Any) -> None:
    numbers = Numbers()
    flowable = through_java(jvm, rx, Flow.from_supplier(lambda: numbers))
    sink = Sink(demand=3)
    jvm.from_java(flowable).subscribe(sink)
    sink.subscription.cancel()
    assert numbers.closed == 1
    assert sink.elements == [0, 1, 2]


def test_a_cancel_in_java_reaches_python(jvm: Any, rx: Any) -> None:
    source = Asked(1_000_000)
    assert int(through_java(jvm, rx, source).take(4).count().blockingGet()) == 4
    assert source.cancelled.wait(PATIENCE)


def test_the_flow_api_of_the_jdk_is_spoken_too(jvm: Any) -> None:
    import jpype

    publisher = jpype.JPackage("java").util.concurrent.SubmissionPublisher()
    sink = Sink()
    jvm.from_java(publisher).subscribe(sink)
    for n in range(3):
        publisher.submit(n)
    publisher.close()
    assert sink.wait().elements == [0, 1, 2]

    sink = Sink()
    jvm.to_java(Flow.range(3), api="flow").subscribe(jvm.to_java(sink, api="flow"))
    assert sink.wait().elements == [0, 1, 2]


def test_a_processor_of_java_works_between_two_of_python(jvm: Any, rx: Any) -> None:
    java = rx.processors.UnicastProcessor.create()
    processor = jvm.from_java(java)
    sink = Sink()
    processor.subscribe(sink)
    Flow.range(4).subscribe(processor)
    assert sink.wait().elements == [0, 1, 2, 3]


def test_what_java_can_not_take_is_named(jvm: Any) -> None:
    with pytest.raises(TypeError, match="to_java: a Publisher, Subscriber or Processor is needed, not int"):
        jvm.to_java(5)
    with pytest.raises(TypeError, match="from_java: a Publisher, Subscriber or Processor of Java is needed, not str"):
        jvm.from_java("text")
    with pytest.raises(ValueError, match="api: one of 'reactive-streams', 'flow' is needed, not 'rx'"):
        jvm.to_java(Flow.range(1), api="rx")


def test_an_invalid_request_is_answered_by_java(jvm: Any, rx: Any) -> None:
    invalid: Any
    for invalid in (0, -1, True, "many"):
        sink = Sink(demand=0)
        jvm.from_java(rx.core.Flowable.range(0, 3)).subscribe(sink)
        with rxjava_quiet():
            sink.subscription.request(invalid)  # RxJava reports it to its plugins, and emits nothing
        assert sink.elements == []
        sink.subscription.cancel()
