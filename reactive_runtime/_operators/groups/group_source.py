"""The source's side of groups and windows: its drain deals the elements out; see `_operators.groups.grouping`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements, InnerSubscription
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.failure import Failure, Spread
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.runtime import primitives
from reactive_runtime._operators.groups.group_buffer import GroupBuffer, way_of
from reactive_runtime._operators.groups.group_flow import Group
from reactive_runtime._spec import MAX_DEMAND

if TYPE_CHECKING:
    from reactive_runtime._operators.flow_base import FlowBase

__all__ = ["AHEAD", "BATCH", "Split"]

AHEAD: Final = 256
"""How many elements are requested ahead from a source that pushes, or has a thread of its own."""

BATCH: Final = 256
"""How many elements the source's drain deals out before it looks for notes, and yields its pool's thread."""


class Split(Combinator):
    """Deals the elements of the source out to groups. Its drain signals to no subscriber: each buffer has one."""

    def __init__(self, source: FlowBase[Any]) -> None:
        super().__init__()
        self.source = source
        self.outer = GroupBuffer(self, MAX_DEMAND)
        self.outer.taken()
        self._lock = primitives.Lock()
        self._wanted = 0  # _lock; how many groups are demanded and not given
        self._departed: list[
            GroupBuffer
        ] = []  # _lock; buffers of subscribers that have cancelled, which the owner has not looked at
        self._shut = False  # _lock; the drain is closed
        # The owner of the source's drain owns the rest.
        self.open_groups: dict[Any, Group] = {}
        self.buffers: dict[GroupBuffer, Group] = {}  # the buffers of groups that have not gone
        self.new_groups: deque[Group] = deque()  # groups that are open, and not yet given downstream
        # The key and the element that found no room: the drain deals them out before it asks the source for more.
        self.in_hand: tuple[Any, Any] | None = None
        # For each subscriber that has left: the drains that have still to see that, the next one first.
        self.leaving: deque[list[DrainContext]] = deque()
        self.outer_cancelled = False  # the outer flow is cancelled
        self.cut_short = False  # it ends before its source

    # -- the buffers: any thread ------------------------------------------------------------------------------

    def note(self) -> bool:
        """Leave a note for the source's drain, if it is at work. False: it is not."""
        return self.drain.leave_note()

    def wake(self) -> None:
        """Let the source's drain look at the buffers. This thread may run the drain."""
        self.drain.wake()

    def departed(self, buffer: GroupBuffer) -> bool:
        """Note that the subscriber of a buffer has gone. False: there is no need to wake the source's drain."""
        if buffer is not self.outer:
            dropping.elements_dropped("its group, or window, was cancelled", buffer.left(), buffer.heard or self.heard)
        with self._lock:
            shut = self._shut
            if not shut:
                self._departed.append(buffer)
        if shut:
            self._forget(buffer)
        return not shut

    def want_groups(self, n: int) -> None:
        """Note the demand for groups. The owner of the outer flow's drain calls it."""
        with self._lock:
            n -= self.outer.lag()
            more = n > self._wanted
            self._wanted = n
        if more:
            self.outer.rouse()

    # -- the group of an element -------------------------------------------------------------------------------

    def key_of(self, element: Any) -> Any:
        """The key of an element, which tells its group."""
        return None

    def group_of(self, key: Any) -> tuple[Group, bool]:
        """The group of an element, and whether that is new."""
        raise NotImplementedError

    def full(self, group: Group) -> Exception:
        """The error for a group that has no room, and will have no subscriber to make some."""
        raise NotImplementedError

    def given(self, group: Group) -> Any:
        """The element that goes downstream for a new group."""
        raise NotImplementedError

    def wants_more(self, group: Group) -> bool:
        """Whether the group has use for one more element."""
        return group.taken() and group.buffer.wants()

    # -- the source's drain ------------------------------------------------------------------------------------

    def elements(self) -> Elements:
        inner: InnerSubscription | None = None
        dealt = 0
        while True:
            self._settle()
            if self.outer_cancelled and not self.buffers:
                self._cancel()
                yield PENDING
                continue
            if inner is None:
                inner = self.inner(self.source, AHEAD)
            if self.cut_short:
                break
            if self.in_hand is not None:
                moved = self._deal(*self.in_hand)
            else:
                try:
                    news = inner.next_signal() if self._wanting() else inner.peek_end()
                except Exception:
                    self._give_what_is_wanted()
                    raise
                if news is END:
                    break
                moved = news is not PENDING and self._deal(self.key_of(news), news)
            if moved:
                dealt += 1
                if dealt % BATCH:
                    continue
                self.wake()  # and give the thread back
            yield PENDING
        self.leave(inner)
        yield from self._finish()

    def _wanting(self) -> bool:
        with self._lock:
            wanted = self._wanted > 0 and not self.outer_cancelled
        return wanted or any(map(self.wants_more, self.buffers.values()))

    def _settle(self) -> None:
        """Close the buffers whose subscribers have gone, and give the groups that are demanded."""
        with self._lock:
            departed, self._departed = self._departed, []
        for buffer in departed:
            if buffer is self.outer:
                self._cancel_outer()
            else:
                self.leaving.append(buffer.way())
                self._close(buffer)
        if departed:
            self._all_left(None)
        while self.new_groups and not self.outer_cancelled:
            with self._lock:
                if self._wanted <= 0:
                    return
                self._wanted -= 1
            if not self._give():
                return

    def _give_what_is_wanted(self) -> None:
        """Give the groups that are demanded: they come before the error of the source."""
        while self.new_groups and not self.outer_cancelled and self.outer.wants() and self._give():
            pass

    def _give(self) -> bool:
        """Give the next new group. False: the outer flow is cancelled, and the drain will hear of it."""
        if not self.outer.put(self.new_groups[0]):
            return False
        self.new_groups.popleft()
        self.outer.wake()
        return True

    def _cancel_outer(self) -> None:
        """Abandon the groups without a subscriber: the outer flow is cancelled, so none will come."""
        self.outer_cancelled = True
        new_groups, self.new_groups = self.new_groups, deque()
        self._abandon(new_groups)  # a full window among them is no longer among the buffers
        self._abandon(self.outer.left())
        self._abandon(list(self.buffers.values()))

    def _abandon(self, groups: Iterable[Group]) -> None:
        """Abandon those of the groups that have no subscriber."""
        for group in groups:
            if group.abandon(f"{self.title}: the outer flow was cancelled"):
                self._close(group.buffer)

    def _close(self, buffer: GroupBuffer) -> None:
        """Forget the group of a buffer."""
        group = self.buffers.pop(buffer, None)
        if group is not None and self.open_groups.get(group.key) is group:
            del self.open_groups[group.key]
        if not buffer.gone():
            self.discard(*buffer.take_out())

    def _deal(self, key: Any, element: Any) -> bool:
        """Give the element to its group; a new group waits for demand. False: there is no room."""
        self.in_hand = None
        try:
            group, new = self.group_of(key)
        except Exception:
            self.discard(element)  # no group takes it
            raise
        if new and self.outer_cancelled:
            self.discard(element)
            return True
        if new:
            self.open_groups[group.key] = self.buffers[group.buffer] = group
            self.new_groups.append(group)
        if self.put(group, element):
            return True
        self.in_hand = key, element
        if group.buffer.gone():
            self._close(group.buffer)
            return True
        self._doubt(group)
        return False

    def put(self, group: Group, element: Any) -> bool:
        """Put the element into the buffer of its group, if there is room."""
        if not group.buffer.put(element):
            return False
        group.buffer.wake()
        return True

    def _doubt(self, group: Group) -> None:
        """Raise if a full group will have no subscriber: all drains that could bring one rest, and none is demanded.

        The leave of a subscriber, and a new group, go down through the drains; demand for another group then comes up.
        The checks follow this order, so that they miss nothing. A drain that does not rest wakes the source's drain
        later.
        """
        if not (self._all_left(self.wake) and self._all_seen(self.wake) and self._all_asked(self.wake)):
            return
        with self._lock:
            wanted = bool(self.new_groups) and self._wanted > 0
        if wanted:
            self.wake()  # the next turn gives it
        elif group.abandon(
            f"{self.title}: it was full, and had no subscriber"
        ):  # last: a subscriber may have come just now
            self.discard(*group.buffer.take_out())
            raise self.full(group)

    def _all_left(self, news: Callable[[], object] | None) -> bool:
        """Whether all drains behind the subscribers that have left have seen that."""
        for way in self.leaving:
            while way and way[0].rests(news):
                del way[0]
        self.leaving = deque(way for way in self.leaving if way)
        return not self.leaving

    def _all_seen(self, news: Callable[[], object]) -> bool:
        """Whether all drains behind the outer flow have seen the groups there are, and have subscribed to them."""
        return all(drain.rests(news) for drain in way_of(self.outer.drain()))

    def _all_asked(self, news: Callable[[], object]) -> bool:
        """Whether the demand of all drains behind the outer flow has come up to it."""
        for drain in reversed(way_of(self.outer.drain())):
            queue = drain.behind()
            if not drain.rests(news, None if queue is None else queue.room()) and (
                queue is None or not drain.rests(news, queue.room())  # it looked before it noted `news`
            ):
                return False
        return True

    def _finish(self) -> Elements:
        """End the groups with the source; the outer flow ends when it has given the last of them."""
        self._end_groups(None)
        while self.new_groups and not self.outer_cancelled:
            yield PENDING
            self._settle()

    def _end_groups(self, error: BaseException | None, spread: Spread | None = None, *, kept: bool = False) -> None:
        groups, self.open_groups = self.open_groups, {}
        for group in groups.values():
            group.buffer.end(error, spread, kept=kept)
            group.buffer.wake()
            group.ended()

    def _cancel(self) -> None:
        drain = self.drain
        assert isinstance(drain, PulledSubscription)
        drain.cancel()

    def finish(self, error: BaseException | None) -> None:
        """End all flows with the source's drain."""
        reader = self.outer.drain()
        kept = error is not None and reader is not None and reader.is_too_late(error)
        spread = None if error is None or kept else Spread()
        here = None if error is None else Failure(error, spread, kept=kept)  # holds the failure until all flows have it
        self._end_groups(error, spread, kept=kept)
        self.outer.end(error, spread, kept=kept)
        self.outer.wake()
        if here is not None:
            here.left(None)

    def closed(self) -> None:
        with self._lock:
            self._shut = True
            departed, self._departed = self._departed, []
        if self.in_hand is not None:
            self.discard(self.in_hand[1])
        self._abandon(self.new_groups)
        for buffer in departed:
            self._forget(buffer)

    def _forget(self, buffer: GroupBuffer) -> None:
        """Drop the elements of a buffer that is cancelled after the last element was dealt out."""
        if buffer is not self.outer:
            return
        for group in buffer.left():
            if group.abandon(f"{self.title}: the outer flow was cancelled"):
                self.discard(*group.buffer.take_out())
