"""The reference publisher of the JVM has two faults that its own kit lets pass; this one finds them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from small_publisher import Publisher
from tck.broken import BatchOverrun, FailsThenCompletes, verification_of

from reactive_runtime.tck import Outcome, PublisherVerification

from .original import Original, Run

OVERRUN = "extra_spec101_a_large_request_must_be_met_to_the_element"
AFTER_ERROR = "extra_spec107_must_not_emit_further_signals_once_a_failed_publisher_has_signalled_on_error"


@pytest.fixture
def reference(jvm: Any) -> PublisherVerification[Any]:
    """This kit, on `AsyncIterablePublisher`."""
    import jpype

    # Never shut down: a cancel that comes late is a task too; where that is refused, the publisher signals an error.
    util = jpype.JPackage("java").util.concurrent
    executor = util.Executors.newFixedThreadPool(2)
    executor.setKeepAliveTime(1, util.TimeUnit.SECONDS)
    executor.allowCoreThreadTimeOut(True)
    unicast = jpype.JPackage("org").reactivestreams.example.unicast

    class Failing:
        """An iterable of Java, and its iterator, whose `hasNext` raises."""

        def iterator(self) -> Any:
            return jpype.JProxy("java.util.Iterator", inst=self)

        def hasNext(self) -> bool:  # noqa: N802
            raise RuntimeError("hasNext is broken")

    class Reference(PublisherVerification[Any]):
        default_timeout = 5.0
        default_no_signals_timeout = 0.2

        def create_publisher(self, elements: int) -> Any:
            return jvm.from_java(unicast.NumberIterablePublisher(0, min(elements, 2**31 - 1), executor))

        def create_failed_publisher(self) -> Any:
            iterable = jpype.JProxy("java.lang.Iterable", inst=Failing())
            return jvm.from_java(unicast.AsyncIterablePublisher(iterable, executor))

    return Reference()


def outcome(verification: Any, name: str) -> Outcome:
    result: Outcome = verification.outcome(next(check for check in verification.checks() if check.name == name))
    return result


def test_an_element_too_many_at_the_end_of_each_batch_is_found(reference: PublisherVerification[Any]) -> None:
    found = outcome(reference, OVERRUN)
    assert found.status == "failed"
    # As many as come in a second: 4,998, where nothing else keeps the machine busy.
    numbers = re.search(r"(\d+) elements came, and (\d+) were requested", found.why)
    assert numbers, found.why
    assert int(numbers[1]) == int(numbers[2]) + 1


def test_on_complete_after_on_error_is_found(reference: PublisherVerification[Any]) -> None:
    found = outcome(reference, AFTER_ERROR)
    assert found.status == "failed"
    assert "terminal signal number 2 came" in found.why


def of_broken(broken: Any) -> Run:
    """As the original kit is set up for its reference publisher: what fails there fails before there is an iterator."""
    publisher = type(broken.__name__, (Publisher,), {"subscription": broken})
    makers = {"publisher": publisher, "failed": lambda: Publisher(0, OSError("no iterator"))}
    return Run(broken.__name__, "PythonPublisherTest", makers, about=broken)


@pytest.mark.parametrize(
    ("run", "check"),
    [
        pytest.param(of_broken(BatchOverrun), OVERRUN, id=f"BatchOverrun-{OVERRUN}"),
        pytest.param(of_broken(FailsThenCompletes), AFTER_ERROR, id=f"FailsThenCompletes-{AFTER_ERROR}"),
    ],
)
def test_the_original_kit_lets_the_same_faults_pass(original: Original, run: Run, check: str) -> None:
    original.judged(run)
    assert outcome(verification_of(run.about), check).status == "failed"
