"""A path that is scheduled while the observer starts is never watched."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Scheduled:
    """One thread starts the observer, another schedules a path."""

    def __init__(self) -> None:
        api: Any = import_module("watchdog.observers.api")

        class Emitter(api.EventEmitter):  # type: ignore[misc]
            def queue_events(self, timeout: float) -> None:
                self.stopped_event.wait()

        self.observer: Any = api.BaseObserver(Emitter)

    def actor_starts(self) -> None:
        self.observer.start()

    def actor_schedules(self) -> None:
        self.observer.schedule(object(), ".")

    def at_end(self) -> None:
        (emitter,) = self.observer.emitters
        assert emitter.ident is not None, "the observer runs, and nothing watches the path"


FIND = Find(
    package="watchdog==7.1.0",
    promise="`schedule` watches a path, before the observer starts and afterwards.",
    what=(
        "`start` starts the emitters that there are, and then the thread of the observer. `schedule` starts its emitter"
        " if that thread lives. In between, the emitter comes too late for the one, and too early for the other: no"
        " thread starts it."
    ),
    mended="start the emitters and the thread under the lock that `schedule` takes.",
    program=Scheduled,
    message="the observer runs, and nothing watches the path",
    counted=True,
    gil=True,
)
