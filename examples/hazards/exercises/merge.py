"""A publisher that two feeders push into. Signals are serial, by a lock; the end comes when both have ended."""

from __future__ import annotations

import threading
from typing import Any

from reactive_runtime.atomics import AtomicInteger
from reactive_runtime.explore import call, publisher_scenario
from reactive_runtime.spec import MAX_DEMAND


class Merge:
    """What two feeders have, in whichever order it comes; the subscriber asks for everything."""

    def __init__(self) -> None:
        self.signals = threading.Lock()
        self.open = AtomicInteger(2)
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass

    def feed(self, element: int) -> None:
        with self.signals:
            self.subscriber.on_next(element)

    def end(self) -> None:
        self.open.add_and_get(-1)
        if self.open.get() == 0:
            with self.signals:
                self.subscriber.on_complete()


def feeder(element: int) -> list[Any]:
    """The calls of a thread that feeds one element."""
    return [
        call(f"feed({element})", lambda driven: driven.publisher.feed(element)),
        call("end()", lambda driven: driven.publisher.end()),
    ]


SCENARIO = publisher_scenario(Merge, [feeder(1), feeder(2)], demand=MAX_DEMAND, ascending=False)
