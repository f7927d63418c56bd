"""Loops that go round without a point: they may wait for another thread."""

from __future__ import annotations

import sys
from typing import Final

from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import CUT, Stop
from reactive_runtime.explore._shared_state.points import SHOWN, Points

__all__ = ["LoopTurns"]

TURNS: Final = 1_000
"""How often a loop may go round without a point."""
_FEW: Final = 4
"""Turns after which the scheduler is asked whether the thread should give way: most loops end soon."""


class LoopTurns:
    """The hook for the end of a loop's turn. The holder of the turn owns it."""

    __slots__ = ("_last", "_points", "_scheduler", "_turns")

    def __init__(self, scheduler: Scheduler, points: Points) -> None:
        self._scheduler = scheduler
        self._points = points
        self._last = -1  # the step since which,
        self._turns = 0  # so often, loops have gone round

    def begin(self) -> None:
        """Before each run."""
        self._last = -1

    def turn(self, site: int) -> None:
        """A loop goes round once more: perhaps it waits for another thread, and does nothing that is a point."""
        scheduler = self._scheduler
        if not scheduler.watching:
            return
        me = scheduler.current
        if real_ident() != me.ident:
            return
        racing = self._points.racing[site]
        if racing and racing != SHOWN:
            me.location, me.writes, me.what = None, False, site
            scheduler.pause(me, site, sys._getframe(1))
            if scheduler.tracking:
                me.chain = hash((me.chain, 4))
            return
        if self._last != scheduler.steps:
            self._last, self._turns = scheduler.steps, 0
            if me.turned != me.acts:
                me.turned, me.rounds = me.acts, 0
            elif me.rounds < _FEW:
                me.rounds += 1
            else:
                scheduler.came_round(me, site, sys._getframe(1))
        self._turns += 1
        if self._turns > TURNS:
            if not self._points.frozen:
                self._points.pending.add(site)
            scheduler.abort(Stop(CUT, "a loop without a point: it has one from now on"))
