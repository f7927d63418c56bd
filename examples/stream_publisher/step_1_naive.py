"""Step 1: push everything at the subscriber. It prints the right numbers, and keeps hardly a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactive_runtime import Subscriber


class StreamPublisher:
    """The elements of `supplier()`, to each subscriber from the first one on."""

    def __init__(self, supplier: Callable[[], Iterable[Any]]) -> None:
        self._supplier = supplier

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        try:
            for element in self._supplier():
                subscriber.on_next(element)  # it was not asked for (1.1), and there is no subscription (1.9)
            subscriber.on_complete()
        except Exception as error:
            subscriber.on_error(error)
