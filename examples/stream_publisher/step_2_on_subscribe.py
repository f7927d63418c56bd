"""Step 2: on_subscribe comes first (1.9). With nothing in it: there is no way to ask, and none to leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class StreamPublisher:
    """The elements of `supplier()`, to each subscriber from the first one on."""

    def __init__(self, supplier: Callable[[], Iterable[Any]]) -> None:
        self._supplier = supplier

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(None)  # a subscriber may refuse that with a TypeError (2.13)
        try:
            for element in self._supplier():
                subscriber.on_next(element)
            subscriber.on_complete()
        except Exception as error:
            subscriber.on_error(error)
