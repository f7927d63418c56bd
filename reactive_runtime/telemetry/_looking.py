"""Looks at a running flow from outside, and says which operators hold it back at that moment.

An operator holds the flow back at a moment if a thread is inside of its function, or if it has elements to work on and
waits for something else: a timer, or the end of its calls. An operator does not hold the flow back if its upstream has
no element for it, or if its elements are not demanded. The subscriber holds the flow back if it demands no element, or
a thread is inside of it.

The thread that looks reads the stacks of the other threads (`thread_frames`), and the fields of their drains, without
stopping them. So a single look may be wrong by a moment; use the shares of many looks.

Without a GIL it is not safe to read the variables of another thread's frame. There a look reads no stack, and names no
operator.
"""

from __future__ import annotations

import linecache
import re
from types import FrameType
from typing import Any, Final

from reactive_runtime._core.drains.combinator import Combinator
from reactive_runtime._core.drains.drain import Drain
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.inner_subscription import InnerSubscription
from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.queues.multicaster import Reader
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime._core.queues.upstream import Relayed, Upstream
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.pollable import IterablePollable, Pollable
from reactive_runtime._core.sources.task_source import TaskSource
from reactive_runtime._operators.concurrent.by_key import _ByKey
from reactive_runtime._operators.concurrent.concurrency import Bounded
from reactive_runtime._operators.concurrent.tasks import Tasks
from reactive_runtime._operators.groups.group_buffer import GroupBuffer
from reactive_runtime._operators.groups.group_flow import Given
from reactive_runtime._support.thread_frames import thread_frames
from reactive_runtime.telemetry._operators_of import SUBSCRIBER, Key, Operator

__all__ = ["Look", "Stacks", "stacks"]

_PACKAGE: Final = __name__.partition(".")[0]
_STEP: Final = re.compile(r"\b[sv](\d+)_")
_RUN: Final = Drain.run.__code__
_SOURCE: Final = re.compile(r"^    for \w+ in upstream:")

Stacks = list[FrameType]
"""The innermost frame of each thread."""


def stacks() -> Stacks:
    """The frames of all threads but this one; without a GIL there are none."""
    if not primitives.has_gil():
        return []
    own = primitives.get_ident()
    return [frame for ident, frame in thread_frames().items() if ident != own]


class Look:
    """One look at one subscription of an observed flow."""

    def __init__(
        self,
        known: dict[Key, Operator],
        drain: DrainContext | None,
        pollable: Pollable,
        steps: tuple[Step[Any, Any], ...],
    ) -> None:
        self._known = known
        self._root = drain
        self._at: dict[int, Operator] = {}  # the operator of a step, a combinator, a source, or a drain; by `id`
        self._pulled: dict[int, Operator] = {}  # the operator before the first of some steps
        self._drains: list[tuple[DrainContext, Pollable]] = []
        self._own: set[int] = set()  # the drains of the flow itself, by `id`
        self._made: dict[int, Operator] = {}  # the operator that made the flow of a drain, by `id`
        self._seen: list[object] = []  # keeps the identities above
        self.busy: set[Operator] = set()
        self.calls: dict[Operator, int] = {}
        """The calls in flight."""
        self.depths: list[int] = []
        """How many elements wait at each boundary (`publish_on`), from the subscriber up."""
        self._visit(pollable, steps, drain, None)

    # -- the parts of the running flow -----------------------------------------------------------------------------

    def _visit(self, pollable: Pollable, steps: Any, drain: DrainContext | None, maker: Operator | None) -> None:
        """Note the operators that run. `maker`: the operator that made this flow of an element."""
        operator = self._operator(self._key(pollable), maker)
        self._seen += [pollable, steps, drain]
        if drain is not None:
            self._own.add(id(drain))
        if drain is not None and isinstance(pollable, IterablePollable):
            self._at.setdefault(id(drain), operator)
        if not isinstance(pollable, PrefetchQueue):  # its methods run on the threads of others
            self._at[id(pollable)] = operator
        for step in steps:
            self._at[id(step)] = self._operator((str(step), step.location), maker or operator)
        if steps:
            self._pulled[id(steps[0])] = operator
        if isinstance(pollable, PrefetchQueue):
            if drain is not None and not pollable.own:
                self.depths.append(pollable.waiting())
            self._above(_drain_of(pollable.upstream()), maker)
        elif isinstance(pollable, Reader):
            self._above(_drain_of(pollable.upstream()), maker)
        elif isinstance(pollable, Combinator) and drain is not None:
            self._inners(pollable, operator, drain, maker)
            if isinstance(pollable, Given) and pollable.split is not None:
                self._above(pollable.split.drain, maker)

    def _above(self, above: DrainContext | None, maker: Operator | None) -> None:
        if isinstance(above, PulledSubscription) and above not in self._seen:
            pollable, steps = above.reads()
            if pollable is not None and maker is None:
                self._drains.append((above, pollable))
                self._visit(pollable, steps, above, None)

    def _inners(self, combinator: Combinator, operator: Operator, drain: DrainContext, maker: Operator | None) -> None:
        if isinstance(combinator, Tasks):
            self.calls[operator] = self.calls.get(operator, 0) + len(combinator.flying)
        for inner in list(combinator.inners):
            pollable, steps = inner.reads(), inner.reads_through()
            made = maker or (operator if self._is_made(combinator, inner) else None)
            if made is not None and isinstance(pollable, PrefetchQueue):
                above = _drain_of(pollable.upstream())  # it is at work elsewhere, beside others, or on our thread
                self._made[id(above)] = made
                self._seen.append(above)
                continue
            self._at[id(inner)] = self._operator(self._key(pollable), made)
            self._seen.append(inner)
            self._visit(pollable, steps, None if not isinstance(pollable, Combinator) else drain, made)

    def _is_made(self, combinator: Combinator, inner: InnerSubscription) -> bool:
        """Whether the operator made the upstream of an element."""
        return isinstance(combinator, Bounded) and not isinstance(combinator, Tasks) and not self._is_known(inner)

    def _is_known(self, inner: InnerSubscription) -> bool:
        steps, pollable = inner.reads_through(), inner.reads()
        if isinstance(pollable, PrefetchQueue):
            above = _drain_of(pollable.upstream())
            if above is None:
                return False
            further, steps = above.reads()
            if further is None:
                return False
            pollable = further
        return self._key(pollable) in self._known or any((str(step), step.location) in self._known for step in steps)

    def _key(self, pollable: Pollable) -> Key:
        if isinstance(pollable, GroupBuffer) and pollable is pollable.source().outer:
            pollable = pollable.source()
        if isinstance(pollable, Combinator):
            return pollable.title, pollable.location
        if isinstance(pollable, IterablePollable):
            return pollable.put_in()
        foreign = (key for key, known in self._known.items() if known.kind == "from_publisher")
        return next(foreign, ("", None)) if isinstance(pollable, PrefetchQueue) else ("", None)

    def _operator(self, key: Key, otherwise: Operator | None) -> Operator:
        found = self._known.get(key)
        if found is None and otherwise is None:
            title = key[0] or "the source"
            return Operator(title, title.partition("(")[0], None, key[1])
        return found or otherwise  # type: ignore[return-value]

    # -- who holds it back -----------------------------------------------------------------------------------------

    def look(self, frames: Stacks) -> str:
        """Fill `busy`; return "upstream" or "downstream": where the flow as a whole spends its time."""
        where = self._where(frames)
        if not primitives.has_gil():
            self.busy.clear()
        return where

    def _where(self, frames: Stacks) -> str:
        at_work = [self._inside(frame) for frame in frames]
        self.busy.update(operator for operator in at_work if operator is not None)
        root = self._root
        for drain, pollable in self._drains:
            if not drain.is_owned() and drain.demand():
                self._waits(pollable)
        if SUBSCRIBER in self.busy:
            return "downstream"
        if isinstance(self._seen[0], TaskSource):
            return "upstream"
        if root is None or not hasattr(root, "request"):  # a `for` loop
            asleep = root is not None and not root.is_owned()
            if asleep and root is not None:
                self._waits_at_root()
            elif not self.busy:
                self.busy.add(SUBSCRIBER)  # it is inside of the loop
                return "downstream"
            return "upstream"
        if not root.is_owned():
            if not root.demand():
                self.busy.add(SUBSCRIBER)
                return "downstream"
            self._waits_at_root()
        return "upstream"

    def _waits_at_root(self) -> None:
        root_pollable = self._seen[0]
        assert isinstance(root_pollable, Pollable)
        self._waits(root_pollable)

    def _waits(self, pollable: Pollable) -> None:
        """Mark the operator that this idle source waits for, although an element is demanded."""
        operator = self._at.get(id(pollable))
        if isinstance(pollable, PrefetchQueue):
            upstream = pollable.upstream()
            subscription = None if upstream is None else upstream.subscription()
            ours = subscription is not None and isinstance(Relayed.unwrapped(subscription), DrainContext)
            if not pollable.waiting() and not ours:
                self.busy.add(self._operator(self._key(pollable), None))  # a publisher of another library
        elif operator is None:
            return
        elif isinstance(pollable, GroupBuffer):  # if its source has an element, that waits for a group with room
            for inner in list(pollable.source().inners):
                if not self._has_element(inner.reads()):
                    self._waits(inner.reads())
        elif isinstance(pollable, Bounded):
            self._bounded_waits(pollable, operator)
        elif isinstance(pollable, Combinator):
            inners = list(pollable.inners)
            waiting = [inner for inner in inners if not self._has_element(inner.reads())]
            if not waiting:
                self.busy.add(operator)  # its elements are there, and it waits for something else
            for inner in waiting:
                self._waits(inner.reads())
        elif not isinstance(pollable, Reader | IterablePollable):  # a thread is on its way to one that is pulled
            self.busy.add(operator)

    def _bounded_waits(self, pollable: Bounded, operator: Operator) -> None:
        inners = list(pollable.inners)
        most = getattr(pollable, "concurrency", 1)
        if isinstance(pollable, Tasks):
            under_way, outer = len(pollable.flying), inners[0] if inners else None
        elif isinstance(pollable, _ByKey):
            under_way, outer = len(pollable.tasks), inners[0] if inners else None
            most = under_way if pollable.full or not pollable.free else most
        else:
            made = [inner for inner in inners if self._is_made(pollable, inner)]
            under_way = len(made)
            outer = next((inner for inner in inners if inner not in made), None)
        if outer is None or outer.over or under_way >= most:
            if under_way:
                self.busy.add(operator)
        else:
            self._waits(outer.reads())

    def _has_element(self, pollable: Pollable) -> bool:
        """Whether the source has an element for an operator, or no element was requested of it."""
        if not isinstance(pollable, PrefetchQueue):
            return isinstance(pollable, IterablePollable)
        upstream = pollable.upstream()
        subscription = None if upstream is None else upstream.subscription()
        above = None if subscription is None else Relayed.unwrapped(subscription)
        unasked = isinstance(above, PulledSubscription) and not above.is_owned() and not above.demand()
        return unasked or pollable.waiting() > 0

    # -- the stacks ------------------------------------------------------------------------------------------------

    def _inside(self, frame: FrameType | None) -> Operator | None:
        """The operator of this flow that a thread is inside of.

        A drain may run inside of a signal to it: the frames around it are only the way the thread came. If it drains
        an inner flow, and one of the flow itself is around it, the operator that made the inner flow keeps the thread.
        """
        made = None
        while frame is not None:
            code = frame.f_code
            if code is _RUN:
                drain = id(frame.f_locals.get("self"))
                if drain in self._own:
                    return made
                made = self._made.get(drain, made)
            elif made is None:
                found = None
                if code.co_filename.startswith("<fused "):
                    found = self._in_loop(frame)
                elif frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
                    if code.co_name == "_work":
                        return None  # one of several calls
                    found = self._in_package(frame)
                if found is not None:
                    return found
            frame = frame.f_back
        return None

    def _in_loop(self, frame: FrameType) -> Operator | None:
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        variables = frame.f_locals
        steps = variables.get("steps") or ()
        if _SOURCE.search(line):
            return self._pulled.get(id(steps[0])) if steps else None
        if "on_next(" in line:
            return SUBSCRIBER if variables.get("subscription") is self._root else None
        numbers = _STEP.findall(line)
        return self._at.get(id(steps[int(numbers[0])])) if numbers and int(numbers[0]) < len(steps) else None

    def _in_package(self, frame: FrameType) -> Operator | None:
        variables = frame.f_locals
        own = variables.get("self")
        if isinstance(own, DrainContext) or "subscription" in variables:
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if "on_next(" in line:
                drain = own if isinstance(own, DrainContext) else variables["subscription"]
                return SUBSCRIBER if drain is self._root else None
            if isinstance(own, DrainContext) and frame.f_code.co_name not in ("_emit", "_drive"):
                return None  # only there it pulls its source; elsewhere it may spin
        if frame.f_code.co_name in ("_given", "_one"):  # a step that is called as it is written
            own = variables.get("step")
        elif frame.f_code.co_name in ("_pull_here", "_checked"):
            own = variables.get("pollable")
        return None if own is None else self._at.get(id(own))


def _drain_of(upstream: Upstream | None) -> PulledSubscription | None:
    """The drain upstream of a queue, if it is one of this package."""
    subscription = None if upstream is None else upstream.subscription()
    above = None if subscription is None else Relayed.unwrapped(subscription)
    return above if isinstance(above, PulledSubscription) else None
