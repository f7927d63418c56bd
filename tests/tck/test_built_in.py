"""Every publisher, subscriber and processor of the package passes the kit, and what is skipped is explained."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from reactive_runtime import hooks
from reactive_runtime._cli.commands import app
from reactive_runtime.tck import (
    IdentityProcessorVerification,
    Outcome,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
    Verification,
)
from tck.built_in import (
    HOT_PROCESSORS,
    HUGE,
    OPERATORS,
    PROCESSORS,
    PUBLISHERS,
    SUBSCRIBERS,
    BuiltIn,
    Told,
    at_rest,
)
from tck.page import row_is


class Patient(Verification):
    """What has to come may take its time on a busy machine; what must not come is waited for shortly."""

    default_timeout = 5.0
    default_no_signals_timeout = 0.03
    publisher_reference_gc_timeout = 5.0
    call_timeout = 10.0


class Publishers(Patient, PublisherVerification[Any]):
    def __init__(self, built_in: BuiltIn) -> None:
        self.built_in = built_in
        self.max_elements_from_publisher = built_in.most

    def create_publisher(self, elements: int) -> Any:
        return self.built_in.create(elements)

    def create_failed_publisher(self) -> Any:
        return self.built_in.create_failed()

    def create_publisher_failing_after(self, elements: int) -> Any:
        return None if self.built_in.fails is None else self.built_in.fails(elements)


class Processors(Patient, IdentityProcessorVerification[Any]):
    max_supported_subscribers = 1

    def __init__(self, create: Any) -> None:
        self.create_identity_processor = create  # type: ignore[method-assign]


class Blackbox(Patient, SubscriberBlackboxVerification[Any]):
    def __init__(self, create: Any) -> None:
        self.create_subscriber = create  # type: ignore[method-assign]


class Whitebox(Patient, SubscriberWhiteboxVerification[Any]):
    def create_subscriber(self, probe: Any) -> Any:
        return Told(probe)


def judged(verification: Verification) -> list[Outcome]:
    """All outcomes; errors that the streams were made to drop are expected."""
    with hooks.captured():
        outcomes = list(verification.outcomes())
        at_rest()
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    assert not failed, "\n".join(f"{item.check.name}\n{item.why}" for item in failed)
    return outcomes


def reason(item: Outcome, built_in: BuiltIn | None) -> str:
    """Why a check was skipped, in a word; empty if it was not, or if it can't be tested."""
    if item.status == "passed" or item.check.kind == "untested":
        return ""
    if built_in is None:
        assert item.check.rule == "1.11" or any(
            words in item.why for words in ("max_supported_subscribers is 1", "one subscriber at a time")
        ), item
        return "unicast"
    if "returned None" in item.why:
        assert built_in.fails is None, item
        return "fails"
    assert built_in.most != HUGE, item
    assert "max_elements_from_publisher" in item.why or item.check.kind == "optional", item
    return "long"


def row(name: str, outcomes: list[Outcome], built_in: BuiltIn | None) -> str:
    tested = [outcome for outcome in outcomes if outcome.check.kind != "untested"]
    skipped = [item for item in tested if item.status == "skipped"]
    reasons = sorted({reason(item, built_in) for item in skipped})
    return f"| {name} | {len(tested) - len(skipped)}, {len(skipped)} | {', '.join(reasons)} |"


BY_DAY = {
    *("range", "empty", "error", "never", "from_iterable", "from_publisher", "map", "take", "create", "zip"),
    *("subscribe_on", "publish_on", "publish_on a TrampolineExecutor", "map_parallel", "SubmissionPublisher"),
    *("FlowProcessor of map", "FlowProcessor of publish_on", "PublishProcessor"),
    *("BaseSubscriber", "BufferedSubscriber", "subscribe(functions)"),
}
"""One of each kind; all of them at night, since the kit waits for what must not come."""


def day_and_night(items: dict[str, Any]) -> list[Any]:
    """Parameters, those of the night marked."""
    assert BY_DAY & items.keys()
    return [
        pytest.param(item, marks=() if name in BY_DAY else pytest.mark.nightly, id=name) for name, item in items.items()
    ]


@pytest.mark.parametrize("built_in", day_and_night({item.name: item for item in PUBLISHERS + OPERATORS}))
def test_a_publisher_of_the_package_passes(built_in: BuiltIn) -> None:
    row_is("built in", row(built_in.name, judged(Publishers(built_in)), built_in))


@pytest.mark.parametrize("name", day_and_night({name: name for name in PROCESSORS | HOT_PROCESSORS}))
def test_a_processor_of_the_package_passes(name: str) -> None:
    create = (PROCESSORS | HOT_PROCESSORS)[name]
    row_is("built in", row(name, judged(Processors(create)), None))


@pytest.mark.parametrize("create", day_and_night(SUBSCRIBERS))
def test_a_subscriber_of_the_package_passes(create: Any) -> None:
    assert all(item.status == "passed" or item.check.kind == "untested" for item in judged(Blackbox(create)))


def test_a_subscriber_of_functions_passes_with_a_look_inside() -> None:
    assert all(item.status == "passed" or item.check.kind == "untested" for item in judged(Whitebox()))


class Ranges(Publishers):
    """What the command is pointed at."""

    def __init__(self) -> None:
        super().__init__(named("range"))


class Boundaries(Publishers):
    """And once more, on a pool."""

    def __init__(self) -> None:
        super().__init__(named("publish_on"))


def named(name: str) -> BuiltIn:
    return next(item for item in PUBLISHERS if item.name == name)


@pytest.mark.parametrize("made", ["Ranges", "Boundaries"])
def test_the_command_finds_no_failure(made: str) -> None:
    done = CliRunner().invoke(app, ["tck", f"{__name__}:{made}", "--timeout", "5", "--no-signals-timeout", "0.01"])
    assert done.exit_code == 0, done.output
    assert " 0 failed" in done.output
