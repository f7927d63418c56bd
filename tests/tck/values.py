"""Publishers that misbehave for one value of `request` only, made by machine: each value, and each kind of fault.

The values are drawn here, and not from the kit's own tables: those at the edges, of which the kit is to find nearly
all, and random ones, which it may miss.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from small_publisher import Subscription

from reactive_runtime import MAX_DEMAND
from reactive_runtime.tck import Verification
from tck.broken import verification_of

__all__ = ["MUTANTS", "RANDOM", "ValueMutant"]

Fault = Callable[[Any, int], None]
"""What a subscription does in place of what `request` of the one value asks for."""


def wrapped(n: int) -> int:
    """The number as an int of 32 bits."""
    return (n + 2**31) % 2**32 - 2**31


def completes_early(subscription: Any, n: int) -> None:
    with subscription.lock:
        most = subscription.elements - subscription.sent
        subscription.elements = subscription.sent + min(n, most - 1)
    subscription.add(n)


def completes(subscription: Any, n: int) -> None:
    with subscription.lock:
        subscription.elements = subscription.sent


def fails_otherwise(subscription: Any, n: int) -> None:
    with subscription.lock:
        subscription.fault = RuntimeError(f"request({n})")


def stops(subscription: Any, n: int) -> None:
    with subscription.lock:
        subscription.cancelled = True


def raises(subscription: Any, n: int) -> None:
    raise ValueError(f"request({n})")


def nothing(subscription: Any, n: int) -> None:
    """The request is lost."""


DEMAND: dict[str, tuple[Fault, set[str]]] = {
    "never met": (nothing, {"3.8"}),
    "refused": (lambda subscription, n: subscription.invalid(n), {"1.5", "3.17"}),
    "completes early": (completes_early, {"1.5"}),
    "raises": (raises, {"3.16"}),
}
"""Faults of any demand, and the rules that each breaks; a refusal of a large one breaks 3.17."""

COUNTED: dict[str, tuple[Fault, set[str]]] = {
    "one too many": (lambda subscription, n: subscription.add(n + 1), {"1.1"}),
    "one too few": (lambda subscription, n: subscription.add(n - 1), {"3.8"}),
    "all of them": (lambda subscription, n: subscription.add(MAX_DEMAND), {"1.1"}),
}
"""Faults that can be seen where a stream is longer than the demand."""

WRAPPED: dict[str, tuple[Fault, set[str]]] = {
    "32 bits": (lambda subscription, n: subscription.add(wrapped(n)), {"3.8"}),
}

WRONG: dict[str, tuple[Fault, set[str]]] = {
    "ignored": (nothing, {"3.9"}),
    "fails otherwise": (fails_otherwise, {"3.9"}),
    "completes": (completes, {"3.9"}),
    "stops": (stops, {"3.9"}),
    "raises": (raises, {"3.16"}),
}
"""Faults of an invalid request."""

TAKEN: dict[str, tuple[Fault, set[str]]] = {
    "taken for demand": (lambda subscription, n: subscription.add(-n), {"1.1"}),
}


@dataclass(frozen=True)
class ValueMutant:
    """A small sound publisher, but for `request(n)`."""

    n: int
    kind: str
    fault: Fault
    rules: set[str]

    @property
    def name(self) -> str:
        """The value and the fault."""
        return f"request({self.n}) {self.kind}"

    def make(self) -> Verification:
        """A verification of it."""
        fault, value = self.fault, self.n

        class Faulty(Subscription):
            def request(self, n: int, /) -> None:
                if n != value:
                    super().request(n)
                else:
                    fault(self, n)
                    self.wake()

        return verification_of(Faulty)


def _of(values: list[int], *kinds: dict[str, tuple[Fault, set[str]]]) -> list[ValueMutant]:
    return [
        ValueMutant(n, name, fault, rules) for n in values for kind in kinds for name, (fault, rules) in kind.items()
    ]


STREAM = 2_049
"""Up to here a stream is longer than the demand."""

EDGES = {
    sign * n
    for sign in (1, -1)
    for n in (*range(17), *(2**k + near for k in range(5, 64) for near in (-1, 0, 1)))
    if -(2**63) <= sign * n < 2**63
}
"""0 to 16, the powers of two and their neighbours, and the negatives of all these, in 64 bits."""


def _random(number: int) -> set[int]:
    """So many values of any length, of either sign, that are at no edge."""
    chance = random.Random(64)
    drawn: set[int] = set()
    while len(drawn) < number:
        n = chance.getrandbits(chance.randrange(5, 64)) * chance.choice((1, -1))
        drawn |= {n} - EDGES
    return drawn


def _mutants(values: set[int]) -> list[ValueMutant]:
    valid, invalid = sorted(n for n in values if n > 0), sorted(n for n in values if n <= 0)
    return [
        *_of([n for n in valid if n <= STREAM], DEMAND, COUNTED),
        *_of([n for n in valid if n > STREAM], DEMAND),
        *_of([n for n in valid if n > STREAM and wrapped(n) < 3], WRAPPED),
        *_of(invalid, WRONG),
        *_of([n for n in invalid if n], TAKEN),
    ]


MUTANTS = _mutants(EDGES)
RANDOM = _mutants(_random(200))
