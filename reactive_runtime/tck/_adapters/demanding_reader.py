"""The subscriber of the kit: it takes elements by demand, and keeps them until the check settles them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["Reader", "until"]

LOOK = 0.005
"""Seconds from one look at the server to the next, at first."""


def until(what: Callable[[], object], seconds: float) -> bool:
    """Look again and again until it is so; False if it is not within so many seconds."""
    over, pause = time.monotonic() + seconds, LOOK
    while not what():
        if time.monotonic() > over:
            return bool(what())
        time.sleep(pause)
        pause = min(2 * pause, 10 * LOOK)
    return True


class Reader:
    """One subscriber. `_changed` owns all fields but those that say otherwise.

    Args:
        number: The number of a value.
        keeps: Whether it keeps the elements.
        then: Called with each element, on the thread of the signal, under no lock.
    """

    def __init__(
        self, number: Callable[[Any], int], *, keeps: bool = True, then: Callable[[Any], object] | None = None
    ) -> None:
        self._number = number
        self._keeps = keeps
        self._then = then  # set once
        self._changed = threading.Condition()
        self._subscription: Any = None
        self._asked = 0
        self._count = 0
        self._elements: list[Any] = []
        self._ended = False
        self._error: BaseException | None = None

    def on_subscribe(self, subscription: Any, /) -> None:
        with self._changed:
            self._subscription = subscription
            asked = self._asked
        if asked:
            subscription.request(asked)

    def on_next(self, element: Any, /) -> None:
        with self._changed:
            self._count += 1
            if self._keeps:
                self._elements.append(element)
            self._changed.notify_all()
        if self._then is not None:
            self._then(element)

    def on_error(self, error: BaseException, /) -> None:
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()

    def on_complete(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def request(self, n: int) -> None:
        """Demand so many more."""
        with self._changed:
            self._asked += n
            subscription = self._subscription
        if subscription is not None:
            subscription.request(n)

    def cancel(self) -> None:
        with self._changed:
            subscription = self._subscription
        if subscription is not None:
            subscription.cancel()

    def wait(self, n: int, seconds: float) -> bool:
        """Wait for `n` elements, since the beginning, or for the end; whether they came."""
        with self._changed:
            self._changed.wait_for(lambda: self._count >= n or self._ended, seconds)
            return self._count >= n

    def wait_for_end(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._ended, seconds)

    @property
    def count(self) -> int:
        """How many elements have come."""
        with self._changed:
            return self._count

    @property
    def asked(self) -> int:
        with self._changed:
            return self._asked

    @property
    def elements(self) -> list[Any]:
        """The elements that it has kept."""
        with self._changed:
            return list(self._elements)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the elements that it has kept."""
        return [self._number(element.value) for element in self.elements]

    @property
    def error(self) -> BaseException | None:
        with self._changed:
            return self._error

    @property
    def ended(self) -> bool:
        with self._changed:
            return self._ended

    def refuse_rest(self) -> None:
        """Refuse the elements that are not settled."""
        for element in self.elements:
            with suppress(Exception):
                element.refuse()
