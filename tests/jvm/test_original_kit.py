"""The original kit, `org.reactivestreams:reactive-streams-tck:1.0.4`, on the publishers and processors of the package."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from reactive_runtime import hooks
from reactive_runtime.tck import (
    IdentityProcessorVerification,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
    Verification,
)
from tck.built_in import HUGE, PROCESSORS, PUBLISHERS, SUBSCRIBERS, BuiltIn


class Result(NamedTuple):
    name: str
    status: str
    why: str


class Maker:
    """What the Java side asks for the things under test."""

    SETTINGS = {"timeout": 2_000, "no_signals": 30, "gc": 200, "max_elements": HUGE, "max_subscribers": 1}

    def __init__(self, jvm: Any, most: int = HUGE, **makers: Any) -> None:
        self._jvm = jvm
        self._makers = makers
        self._settings = {**self.SETTINGS, "max_elements": most}

    def make(self, what: Any, argument: Any) -> Any:
        made = self._makers[str(what)](*([] if argument is None else [int(argument)]))
        return None if made is None else self._jvm.to_java(made)

    def setting(self, name: Any) -> int:
        return self._settings[str(name)]


def judged(verification: str, maker: Maker) -> list[Result]:
    """Run one verification of the original kit."""
    import jpype

    verifying = jpype.JClass(f"reactive_runtime.{verification}")
    verifying.maker = jpype.JProxy("reactive_runtime.Maker", inst=maker)
    with hooks.captured():
        lines = jpype.JClass("reactive_runtime.Kit").run(verifying.class_)
    results = [Result(*map(str, line)) for line in lines]
    assert results, "the original kit ran nothing"
    failed = [it for it in results if it.status == "failed"]
    assert not failed, failed
    return results


@pytest.mark.parametrize("built_in", PUBLISHERS, ids=lambda it: it.name)
def test_a_publisher_of_the_package_passes_the_original_kit(jvm: Any, built_in: BuiltIn) -> None:
    maker = Maker(jvm, built_in.most, publisher=built_in.create, failed=built_in.create_failed)
    for it in judged("PythonPublisherTest", maker):
        too_long = built_in.most != HUGE and "higher than supported" in it.why
        endless = built_in.name in ("never", "error") and it.name.startswith("optional_")
        cannot_fail = built_in.create_failed() is None and "no error state Publisher" in it.why
        assert it.status == "passed" or it.name.startswith("untested_") or too_long or endless or cannot_fail, it


@pytest.mark.parametrize("create", PROCESSORS.values(), ids=PROCESSORS)
def test_a_processor_of_the_package_passes_the_original_kit(jvm: Any, create: Any) -> None:
    from reactive_runtime import Flow

    def failed() -> Any:
        processor = create(16)
        Flow.error(OSError("broken")).subscribe(processor)
        return processor

    for it in judged("PythonProcessorTest", Maker(jvm, processor=create, failed=failed)):
        unicast = it.name.startswith("optional_spec111") or "only supports 1 subscribers" in it.why
        assert it.status == "passed" or it.name.startswith("untested_") or unicast, it


@pytest.mark.parametrize("create", SUBSCRIBERS.values(), ids=SUBSCRIBERS)
def test_a_subscriber_of_the_package_passes_the_original_kit(jvm: Any, create: Any) -> None:
    for it in judged("PythonSubscriberTest", Maker(jvm, subscriber=create)):
        assert it.status == "passed" or it.name.startswith("untested_"), it


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
    theirs = {snake_case(str(it.getName())) for it in methods if it.isAnnotationPresent(test)}
    assert theirs == {it.name for it in ours.checks() if it.original}
