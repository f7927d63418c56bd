"""The 43 rules of Reactive Streams 1.0.4, each in one sentence, as they read in Python.

The kit, the rule checker and the verdict of a run take the sentence from here when they name a rule to a person.
"""

from __future__ import annotations

from typing import Final

__all__ = ["RULES"]

RULES: Final[dict[str, str]] = {
    # Publisher
    "1.1": "a publisher never signals more on_next than were requested so far",
    "1.2": "a publisher may signal fewer elements than were requested, and then ends the stream",
    "1.3": "signals to one subscriber are serial: one returns before the next begins",
    "1.4": "a publisher that fails signals on_error",
    "1.5": "a finite stream that succeeded ends with on_complete",
    "1.6": "after on_error or on_complete the subscription counts as cancelled",
    "1.7": "nothing is signalled after on_error or on_complete",
    "1.8": "after cancel has returned the signals stop",
    "1.9": "on_subscribe is the first signal, comes exactly once, and subscribe returns normally",
    "1.10": "subscribe may be called any number of times, each time with another subscriber",
    "1.11": "a publisher may serve many subscribers, and says whether each gets the same elements",
    # Subscriber
    "2.1": "a subscriber signals its demand by request, or receives nothing",
    "2.2": "a subscriber that would slow the publisher down hands the signals to another thread",
    "2.3": "on_complete and on_error call nothing on the subscription or the publisher",
    "2.4": "after on_complete or on_error the subscriber takes its subscription as cancelled",
    "2.5": "a second on_subscribe, while a subscription is active, is answered by cancelling the new one",
    "2.6": "a subscription that is needed no longer is cancelled",
    "2.7": "a subscriber's calls of request and cancel are serial",
    "2.8": "a subscriber is ready for on_next after it has cancelled, up to what was pending",
    "2.9": "a subscriber is ready for on_complete, with or without an earlier request",
    "2.10": "a subscriber is ready for on_error, with or without an earlier request",
    "2.11": "a subscriber's signal methods happen before the signal is processed",
    "2.12": "on_subscribe is called at most once on a subscriber",
    "2.13": "a subscriber's methods return normally, but for a TypeError where an argument is None",
    # Subscription
    "3.1": "request and cancel are called in the context of the subscriber only",
    "3.2": "request may be called from inside on_next and on_subscribe",
    "3.3": "the recursion request, on_next, request is bounded",
    "3.4": "request returns soon, however slow the subscriber is",
    "3.5": "cancel returns soon, is idempotent and thread-safe",
    "3.6": "after cancel, request does nothing",
    "3.7": "after cancel, a further cancel does nothing",
    "3.8": "request(n) adds n to the demand: no demand is lost",
    "3.9": "a request below 1, or of something that is no int, is answered with on_error, and nothing follows",
    "3.10": "request may signal on_next before it returns",
    "3.11": "request may signal on_complete or on_error before it returns",
    "3.12": "cancel makes the publisher stop signalling, eventually",
    "3.13": "cancel makes the publisher drop every reference to the subscriber, eventually",
    "3.14": "cancel may shut a publisher down that has no other subscriber",
    "3.15": "cancel returns normally",
    "3.16": "request and cancel return normally",
    "3.17": "the sum of all demand is capped at 2^63-1, and never wraps",
    # Processor
    "4.1": "a processor keeps the rules of both sides",
    "4.2": "a processor that gets on_error passes it on at once, or recovers and drops its upstream",
}
