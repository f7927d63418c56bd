"""One cause has one headline: a check that sees another rule broken than its own names that one, and what was done."""

from __future__ import annotations

from typing import Any

import pytest
from small_publisher import Publisher, Subscription

from reactive_runtime.tck import SubscriberBlackboxVerification
from tck import sound
from tck.broken import Publishers
from tck.test_bad_input import outcome


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
SURPLUS = "an element more than expected: ["


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
        (GivesTheSecondTwice, "extra_spec106_the_subscribers_of_ended", "1.5", SURPLUS),
        (GivesTheSecondTwice, "required_spec317_must_support_a_cumulative", "1.5", SURPLUS),
    ],
)
def test_a_check_names_the_rule_that_was_broken(
    subscription: type[Subscription], check: str, rule: str, seen: str
) -> None:
    verification = Publishers(type("Made", (Publisher,), {"subscription": subscription}))
    [name] = [item.name for item in verification.checks() if item.name.startswith(check)]
    result = outcome(verification, name)
    assert (result.status, result.rule) == ("failed", rule)
    assert f"seen: {seen}" in result.why


class Silent(sound.BlackboxSubscriber):
    """Requests nothing."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None)")
        if self.subscription is not None:
            subscription.cancel()
        else:
            self.subscription = subscription


class OfSilent(SubscriberBlackboxVerification[int]):
    default_timeout = 0.05
    default_no_signals_timeout = 0.01

    def create_subscriber(self) -> Any:
        return Silent()

    def create_element(self, number: int) -> int:
        return number


def test_a_subscriber_that_never_requests_is_reported_once() -> None:
    failed = [item for item in OfSilent().outcomes() if item.status == "failed"]
    assert len(failed) > 3
    assert {item.rule for item in failed} == {"2.1"}
    assert all("define trigger_request" in item.why for item in failed)
