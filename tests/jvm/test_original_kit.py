"""The original kit, `org.reactivestreams:reactive-streams-tck:1.0.4`, on what is in the package."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import pytest
from tck.built_in import HUGE, PROCESSORS, PUBLISHERS, SUBSCRIBERS, BuiltIn, at_rest
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


class Result(NamedTuple):
    name: str
    status: str
    why: str


class Maker:
    """What the Java side asks for the things under test."""

    def __init__(self, jvm: Any, most: int = HUGE, **makers: Any) -> None:
        self._jvm = jvm
        self._makers = makers
        self.settings = {"timeout": 2_000, "no_signals": 30, "gc": 200, "max_elements": most, "max_subscribers": 1}

    def make(self, what: Any, argument: Any) -> Any:
        made = self._makers[str(what)](*([] if argument is None else [int(argument)]))
        return None if made is None else self._jvm.to_java(made)

    def setting(self, name: Any) -> int:
        return self.settings[str(name)]


def judged(verification: str, maker: Maker) -> list[Result]:
    """Run one verification of the original kit; nothing may fail."""
    results = results_of(verification, maker)
    failed = [result for result in results if result.status == "failed"]
    assert not failed, failed
    return results


def results_of(verification: str, maker: Maker) -> list[Result]:
    """Run one verification of the original kit."""
    import jpype

    verifying = jpype.JClass(f"reactive_runtime.{verification}")
    verifying.maker = jpype.JProxy("reactive_runtime.Maker", inst=maker)
    with hooks.captured():
        lines = jpype.JClass("reactive_runtime.Kit").run(verifying.class_)
        at_rest()
    results = [Result(*map(str, line)) for line in lines]
    assert results, "the original kit ran nothing"
    return results


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


def row(name: str, results: list[Result], built_in: BuiltIn | None) -> str:
    tested = [result for result in results if not result.name.startswith("untested_")]
    skipped = [item for item in tested if item.status == "skipped"]
    reasons = sorted({reason(item, built_in) for item in skipped})
    return f"| {name} | {len(tested) - len(skipped)}, {len(skipped)} | {', '.join(reasons)} |"


@pytest.mark.parametrize("built_in", PUBLISHERS, ids=lambda item: item.name)
def test_a_publisher_of_the_package_passes_the_original_kit(jvm: Any, built_in: BuiltIn) -> None:
    maker = Maker(jvm, built_in.most, publisher=built_in.create, failed=built_in.create_failed)
    row_is("built in, original", row(built_in.name, judged("PythonPublisherTest", maker), built_in))


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_of_the_package_passes_the_original_kit(jvm: Any, name: str) -> None:
    create = PROCESSORS[name]

    def failed() -> Any:
        processor = create(16)
        Flow.error(OSError("broken")).subscribe(processor)
        return processor

    results = judged("PythonProcessorTest", Maker(jvm, processor=create, failed=failed))
    row_is("built in, original", row(name, results, None))


@pytest.mark.parametrize("create", SUBSCRIBERS.values(), ids=SUBSCRIBERS)
def test_a_subscriber_of_the_package_passes_the_original_kit(jvm: Any, create: Any) -> None:
    for item in judged("PythonSubscriberTest", Maker(jvm, subscriber=create)):
        assert item.status == "passed" or item.name.startswith("untested_"), item


def test_the_naive_stream_publisher_does_as_its_author_reports(jvm: Any) -> None:
    """3 passed, 20 failed, 15 skipped: a stream of 2^31 - 1 elements, pushed unasked, is none that he waited for."""
    maker = Maker(
        jvm,
        2**31 - 2,
        publisher=lambda n: StreamPublisher(lambda: range(n)),
        failed=lambda: StreamPublisher(broken),
    )
    maker.settings.update(timeout=100, no_signals=100)
    counts = Counter(item.status for item in results_of("PythonPublisherTest", maker))
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
