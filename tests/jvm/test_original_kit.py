"""The original kit, `org.reactivestreams:reactive-streams-tck:1.0.4`, on what is in the package."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from tck.built_in import HOT_PROCESSORS, HUGE, OPERATORS, PROCESSORS, PUBLISHERS, SUBSCRIBERS, BuiltIn
from tck.page import row_is

from examples.stream_publisher.conformance import broken
from examples.stream_publisher.step_1_naive import StreamPublisher
from reactive_runtime import Flow, hooks
from reactive_runtime.tck import (
    IdentityProcessorVerification,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
    Verification,
)

from .original import Original, Result, Run, results_of


def of_publisher(built_in: BuiltIn) -> Run:
    makers = {"publisher": built_in.create, "failed": built_in.create_failed}
    return Run(built_in.name, "PythonPublisherTest", makers, built_in.most, about=built_in)


def of_processor(name: str, create: Any) -> Run:
    def failed() -> Any:
        processor = create(16)
        Flow.error(OSError("broken")).subscribe(processor)
        return processor

    return Run(name, "PythonProcessorTest", {"processor": create, "failed": failed})


# Each a parameter of one test, by which the fixture `original` knows what to run.
OF_PUBLISHERS: list[Any] = [of_publisher(built_in) for built_in in PUBLISHERS]
OF_PROCESSORS: list[Any] = [of_processor(name, create) for name, create in PROCESSORS.items()]
OF_PUBLISHERS += [pytest.param(of_publisher(built_in), marks=pytest.mark.nightly) for built_in in OPERATORS]
OF_PROCESSORS += [
    pytest.param(of_processor(name, create), marks=pytest.mark.nightly) for name, create in HOT_PROCESSORS.items()
]
OF_SUBSCRIBERS = [Run(name, "PythonSubscriberTest", {"subscriber": create}) for name, create in SUBSCRIBERS.items()]


def name_of(run: Run) -> str:
    return run.name


def reason(item: Result, built_in: BuiltIn | None) -> str:
    """Why a test was skipped, in a word."""
    if built_in is None:
        assert item.name.startswith("optional_spec111") or "only supports 1 subscribers" in item.why, item
        return "unicast"
    if "no error state Publisher" in item.why:
        assert built_in.create_failed() is None, item
        return "fails"
    assert built_in.most != HUGE, item
    assert "higher than supported" in item.why or item.name.startswith("optional_"), item
    return "long"


# It does not wait for the on_error of a second subscriber, so where a processor takes one, and signals on another
# thread, it passes or is skipped as the threads run.
BY_CHANCE = "optional_spec111_maySupportMultiSubscribe"


def row(name: str, results: list[Result], built_in: BuiltIn | None) -> str:
    tested = [item for item in results if not item.name.startswith("untested_")]
    if built_in is None:
        tested = [item for item in tested if item.name != BY_CHANCE]
    skipped = [item for item in tested if item.status == "skipped"]
    reasons = sorted({reason(item, built_in) for item in skipped})
    return f"| {name} | {len(tested) - len(skipped)}, {len(skipped)} | {', '.join(reasons)} |"


@pytest.mark.parametrize("run", OF_PUBLISHERS, ids=name_of)
def test_a_publisher_of_the_package_passes_the_original_kit(original: Original, run: Run) -> None:
    row_is("built in, original", row(run.name, original.judged(run), run.about))


@pytest.mark.parametrize("run", OF_PROCESSORS, ids=name_of)
def test_a_processor_of_the_package_passes_the_original_kit(original: Original, run: Run) -> None:
    row_is("built in, original", row(run.name, original.judged(run), None))


@pytest.mark.parametrize("run", OF_SUBSCRIBERS, ids=name_of)
def test_a_subscriber_of_the_package_passes_the_original_kit(original: Original, run: Run) -> None:
    for item in original.judged(run):
        assert item.status == "passed" or item.name.startswith("untested_"), item


def test_the_naive_stream_publisher_does_as_its_author_reports(jvm: Any) -> None:
    """3 passed, 20 failed, 15 skipped: a stream of 2^31 - 1 elements, pushed unasked, is none that he waited for."""
    makers = {"publisher": lambda n: StreamPublisher(lambda: range(n)), "failed": lambda: StreamPublisher(broken)}
    run = Run("naive", "PythonPublisherTest", makers, most=2**31 - 2, timeout=100, no_signals=100)
    with hooks.captured():
        counts = Counter(item.status for item in results_of(jvm, run))
    assert counts == {"passed": 3, "failed": 20, "skipped": 15}


def snake_case(name: str) -> str:
    """`required_spec101_subscriptionRequest…` as this package writes it."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"(?<=[a-z])(?=\d)(?<!spec)", "_", words).lower()


@pytest.mark.parametrize(
    ("ours", "original"),
    [
        (PublisherVerification, "PublisherVerification"),
        (SubscriberWhiteboxVerification, "SubscriberWhiteboxVerification"),
        (SubscriberBlackboxVerification, "SubscriberBlackboxVerification"),
        (IdentityProcessorVerification, "IdentityProcessorVerification"),
    ],
)
def test_the_checks_have_the_names_of_the_original(jvm: Any, ours: type[Verification], original: str) -> None:
    import jpype

    test = jpype.JClass("org.testng.annotations.Test").class_
    methods = jpype.JClass(f"org.reactivestreams.tck.{original}").class_.getMethods()
    theirs = {snake_case(str(method.getName())) for method in methods if method.isAnnotationPresent(test)}
    assert theirs == {check.name for check in ours.checks() if check.original}
