"""The checks of a publisher that call `request` with many values.

A publisher may be right for 1, 2 and MAX_DEMAND, and wrong for the one value at which a batch ends, a counter of 32
bits turns negative, or a comparison has the wrong sign. So these checks take values at the edges: small numbers, the
powers of two, and the neighbours of both.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.tck._factories import QUICK, PublisherFactory
from reactive_runtime.tck._publisher.probes import ManualSubscriber
from reactive_runtime.tck._running.environment import LONG_ENOUGH, TestEnvironment
from reactive_runtime.tck._verification import check

__all__ = ["INVALID", "LARGE", "SIZES", "ValuePublisherChecks"]

T = TypeVar("T")

POWERS: Final = {2**k + near for k in range(64) for near in (-1, 0, 1)}

SIZES: Final = sorted({*range(1, 17), *(n for n in POWERS if 1 <= n <= 2**11 + 1)})
"""Requests that a publisher has to meet to the element: the stream is longer."""

LARGE: Final = sorted((n for n in POWERS if SIZES[-1] < n <= MAX_DEMAND), reverse=True)
"""Requests for more elements than the streams of the kit have."""

INVALID: Final = sorted({0, *(-n for n in range(1, 17)), *(-n for n in POWERS if n <= 2**63)})
"""Requests that a publisher answers with an error (3.9), down to the least number of 64 bits."""

PATIENT: Final = 3
"""A check of a quick publisher may take so many times `LONG_ENOUGH`: then a busy machine leaves no value out."""

EDGES: Final = (0, -1, -(2**63), -(2**31), -(2**32), MAX_DEMAND, MAX_DEMAND - 1, 2**31, 2**32, 2**31 - 1)
"""The values that come first: with a slow publisher a check stops after two seconds."""


class ValuePublisherChecks(PublisherFactory[T]):
    """The checks whose names say `each` or `every` of many requests."""

    @check("1.1", plain=3)
    def extra_spec101_requests_of_each_size_must_be_met_exactly(self, env: TestEnvironment) -> None:
        """A request of each small size, and near each power of two up to 2,048, is met to the element.

        Each has a publisher of its own, of two elements more; when all were silent, each requests one more.
        """
        met: list[tuple[int, ManualSubscriber[T]]] = []
        for n in self._in_time(SIZES):
            if met and (n + 2 > self.max_elements_from_publisher or n > self._as_many(n)):
                break
            subscriber = self._subscribe(env, self._publisher(env, n + 2))
            subscriber.request(n)
            subscriber.next_elements(n)
            met.append((n, subscriber))
        env.silence(lambda: sum(subscriber.count for _, subscriber in met))
        for n, subscriber in met:
            ended = f"request({n}) was met, and on_complete came after {n} of {n + 2} elements"
            env.check(not subscriber.completions, ended, "1.5")
            subscriber.expect_none_now(f"{n} elements were requested, and came")
            subscriber.request_next()

    @check("3.9", plain=3)
    def extra_spec309_every_invalid_request_must_be_answered(self, env: TestEnvironment) -> None:
        """A request of 0, and of each number near a negative power of two, is answered with `on_error(ValueError)`."""
        refused: list[ManualSubscriber[T]] = []
        for n in self._in_time(INVALID[::-1]):
            subscriber = self._subscribe(env, self._publisher(env, 3), may_fail=True)
            subscriber.request(n)
            subscriber.expect_error(ValueError, "3.9")
            refused.append(subscriber)
        env.silence(lambda: sum(subscriber.count for subscriber in refused))
        env.verify()  # the subscribers find signals after their ends

    @check("3.17", plain=3)
    def extra_spec317_every_large_request_must_be_met(self, env: TestEnvironment) -> None:
        """After a request near a power of two, up to MAX_DEMAND, the three elements of a stream come, and its end."""
        endless = self.max_elements_from_publisher == MAX_DEMAND

        def then(subscriber: ManualSubscriber[T], element: T) -> None:
            if endless and len(subscriber.elements) == 3:
                subscriber.quit()

        for n in self._in_time(LARGE):
            subscriber = self._subscribe(env, self._publisher(env, 3), then=then)
            subscriber.request(n)
            subscriber.next_elements(3)
            if not endless:
                subscriber.expect_completion()

    def _in_time(self, values: Sequence[int]) -> Iterator[int]:
        """The values, those at the edges first, as many as a slow publisher can take in `LONG_ENOUGH` seconds."""
        until = time.monotonic() + LONG_ENOUGH * (1 if self.pace() >= QUICK else PATIENT)
        for number, n in enumerate(sorted(values, key=lambda n: n not in EDGES)):
            if number and time.monotonic() > until:
                return
            yield n
