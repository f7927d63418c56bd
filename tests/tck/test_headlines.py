"""One cause has one headline: a check that sees another rule broken than its own names that one, and what was done."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from small_publisher import Publisher, Subscription

from reactive_runtime.tck import SubscriberBlackboxVerification
from tck import sound
from tck.broken import verification_of
from tck.test_bad_input import outcome
from tck.test_mutants import AT_ONCE, quick


class AnswersWithWords(Subscription):
    def invalid(self, n: int) -> None:
        self.fault = "a bad request"  # type: ignore[assignment]


class FailsWhenCancelled(Subscription):
    def cancel(self) -> None:
        with self.lock:
            again, self.ended = self.ended, True
        if not again:
            self.subscriber.on_error(RuntimeError("cancelled"))


class IsACoroutine(Subscription):
    async def request(self, n: int, /) -> None:  # type: ignore[override]
        super().request(n)


class Raises(Subscription):
    def request(self, n: int, /) -> None:
        raise OSError("no network")


class GivesTheSecondTwice(Subscription):
    def emit(self, element: Any) -> None:
        super().emit(element)
        if element == 1:
            super().emit(element)


TEXT = "on_error('a bad request'), where a "
CANCELLED = "an unexpected on_error(RuntimeError('cancelled'))"
SURPLUS = "3 elements came, and 2 were requested"


@pytest.mark.parametrize(
    ("subscription", "check", "rule", "seen"),
    [
        (AnswersWithWords, "extra_spec106_a_subscriber_whose_invalid_request_was_answered", "3.9", TEXT),
        (AnswersWithWords, "extra_spec107_must_not_emit_further_signals_once_an_invalid", "3.9", TEXT),
        (FailsWhenCancelled, "extra_spec103_two_requests_at_once", "1.8", CANCELLED),
        (FailsWhenCancelled, "extra_spec308_no_demand_may_be_lost_between", "1.8", CANCELLED),
        (FailsWhenCancelled, "extra_spec313_a_subscriber_that_cancels_inside_on_next", "1.8", CANCELLED),
        (FailsWhenCancelled, "required_spec317_must_not_signal_on_error", "1.8", CANCELLED),
        (IsACoroutine, "extra_spec308_no_demand_may_be_lost_between", "3.16", "request(2) returned a coroutine"),
        (IsACoroutine, "extra_spec103_two_requests_at_once", "3.16", "request(1) returned a coroutine"),
        (Raises, "extra_spec308_no_demand_may_be_lost_between", "3.16", "request(2) raised OSError: no network"),
        (GivesTheSecondTwice, "extra_spec106_the_subscribers_of_ended", "1.1", SURPLUS),
        (GivesTheSecondTwice, "required_spec317_must_support_a_cumulative", "1.1", SURPLUS),
    ],
)
def test_a_check_names_the_rule_that_was_broken(
    subscription: type[Subscription], check: str, rule: str, seen: str
) -> None:
    verification = verification_of(subscription)
    [name] = [item.name for item in verification.checks() if item.name.startswith(check)]
    result = outcome(verification, name)
    assert (result.status, result.rule) == ("failed", rule)
    assert f"seen: {seen}" in result.why


class LosesDemandInsideASignal(Subscription):
    """Forgets what is requested inside the `on_next` of its second element."""

    emitting: Any = None

    def emit(self, element: Any) -> None:
        self.emitting = element
        super().emit(element)
        self.emitting = None

    def add(self, n: int) -> None:
        if self.emitting != 1:
            super().add(n)


class CompletesOnlyWithoutDemand(Subscription):
    """Gives no end where more was requested than there is."""

    def completed(self) -> Any:
        return self.over() if self.demand else super().completed()


class FailsWithAClass(Subscription):
    """Signals the class of an error, and not an error."""

    def failed(self, error: BaseException) -> Any:
        return super().failed(error if isinstance(error, ValueError) else type(error))  # type: ignore[arg-type]


class CompletesWhenItFails(Subscription):
    """Takes a failure for the end."""

    def finished(self) -> Any:
        return self.completed()


class GivesText(Publisher):
    """Gives its subscriber a text for a subscription."""

    def subscribe(self, subscriber: Any, /) -> None:
        sound.refuse_none("subscribe", subscriber)
        subscriber.on_subscribe("subscription")


class RaisesTheSecondTime(Publisher):
    """Has one subscriber, and raises for the next one."""

    taken = False

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is not None and self.taken:
            raise RuntimeError("one subscriber only")
        self.taken = subscriber is not None
        super().subscribe(subscriber)


class HearsNoLateCancel(Subscription):
    """Forgets a cancel that comes after its second element."""

    def cancel(self) -> None:
        if self.sent < 2:
            super().cancel()


NAMED: dict[type, tuple[set[str], str]] = {
    LosesDemandInsideASignal: ({"3.2", "3.8"}, "spec10[37]|spec30[23]|spec308_demand"),
    CompletesOnlyWithoutDemand: ({"1.5"}, "spec10[23567]|spec317_must_support"),
    FailsWithAClass: ({"1.4"}, "spec10[4679]"),
    CompletesWhenItFails: ({"1.4"}, "spec10[4679]"),
    GivesTheSecondTwice: ({"1.1"}, "spec10[1245]|spec306"),
    GivesText: ({"1.9"}, "spec10[1-7]|spec306|spec313"),
    RaisesTheSecondTime: ({"1.9"}, "spec110|spec111_may"),
    HearsNoLateCancel: ({"1.8", "3.6", "3.12"}, "spec108|spec306|spec312"),
}
"""Of each broken publisher: the rules that all checks name, and the checks that are asked in `make test`.

A demand that is lost inside a signal breaks 3.8, and 3.2 too, which allows it there. A cancel that is not heard breaks
1.8 for the publisher, 3.12 for its subscription, and 3.6 where a request follows it.
"""


def rules_named(broken: type, checks: str) -> set[str]:
    verification = quick(verification_of(broken)).configure(default_timeout=0.2)
    asked = [item for item in verification.checks() if re.search(checks, item.name)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {item.rule for item in pool.map(verification.outcome, asked) if item.status == "failed"}


@pytest.mark.parametrize("broken", NAMED, ids=lambda item: item.__name__)
def test_checks_name_only_the_rules_that_are_broken(broken: type) -> None:
    rules, checks = NAMED[broken]
    assert rules_named(broken, checks) == rules


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("broken", NAMED, ids=lambda item: item.__name__)
def test_whole_kit_names_only_the_rules_that_are_broken(broken: type) -> None:
    assert rules_named(broken, "") == NAMED[broken][0]


class OfSilent(SubscriberBlackboxVerification[int]):
    default_timeout = 0.05
    default_no_signals_timeout = 0.01

    def create_subscriber(self) -> Any:
        return sound.BlackboxSubscriber()  # which requests nothing without `trigger_request`

    def create_element(self, number: int) -> int:
        return number


def test_a_subscriber_that_never_requests_is_reported_once() -> None:
    failed = [item for item in OfSilent().outcomes() if item.status == "failed"]
    assert len(failed) > 3
    assert {item.rule for item in failed} == {"2.1"}
    assert all("define trigger_request" in item.why for item in failed)
