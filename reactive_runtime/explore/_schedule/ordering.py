"""The order of events: chains for partial-order reduction, and vector clocks for races."""

from __future__ import annotations

from typing import Any, Protocol

from reactive_runtime.explore._schedule.task import Task
from reactive_runtime.explore._schedule.task_states import TaskStates

__all__ = ["Observer", "Ordering"]


class Observer(Protocol):
    """Tells a search of the events that order steps, besides the choices. On the thread with the turn."""

    def began(self, thread: Task) -> None:
        """The step that runs has made a thread."""

    def noted(self, me: Task, location: Any, writes: bool) -> None:
        """The step that runs, of `me`, has accessed `location`."""

    def concerns_all(self) -> None:
        """The step that runs depends on the steps of all threads, and theirs on it."""

    def idle(self) -> None:
        """No thread can go on: each later step comes after all earlier ones."""

    def named(self) -> int:
        """A number for an object that the step that runs makes: the same in each equivalent run."""
        raise NotImplementedError


class Ordering(TaskStates):
    """Keeps the order of the steps of threads. The holder of the turn owns it."""

    __slots__ = ("observer",)

    def __init__(self) -> None:
        super().__init__()
        self.observer: Observer | None = None
        """The search that needs to know on which steps each step depends; None: no search does."""

    def note(self, me: Task, location: Any, writes: bool) -> None:
        """`me` has done something to `location`: it happens after what was done there before."""
        if writes:
            location.w = me.chain = hash((me.chain, location.w, location.r))
            location.r = 0
        else:
            me.chain = hash((me.chain, location.w))
            location.r = (location.r + me.chain) & 0xFFFF_FFFF_FFFF_FFFF
        if self.observer is not None:
            self.observer.noted(me, location, writes)

    def ahead(self, thread: Task) -> int:
        """The chain of `thread` after what it is about to do."""
        location = thread.location
        if location is None:
            return hash((thread.chain, 1))
        if thread.writes:
            return hash((thread.chain, location.w, location.r))
        return hash((thread.chain, location.w))

    def leave(self, me: Task) -> list[int]:
        """The vector clock that `me` leaves behind for the thread that comes after; its own moves on."""
        vc = me.vc
        me.vc = mine = vc.copy()
        mine[me.index] += 1
        return vc

    def join(self, me: Task, vc: list[int]) -> None:
        """`me` comes after what was left behind with `vc`."""
        mine = me.vc
        if len(vc) != len(mine):
            size = max(len(vc), len(mine))
            vc, mine = vc + [0] * (size - len(vc)), mine + [0] * (size - len(mine))
        me.vc = list(map(max, mine, vc))
