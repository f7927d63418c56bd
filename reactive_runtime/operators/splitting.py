"""One source to several flows: groups and windows, each a flow of its own, with a bounded buffer.

A group is pulled by its own demand: the source is asked for more while somebody wants the next group, or a group that
is listened to has room. A full buffer holds the source back, if its subscriber will come for what is in it. If there is
no subscriber, nobody would ever come, and the flow fails and says so, instead of hanging.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core import primitives
from reactive_runtime._core.arguments import a_function, at_least
from reactive_runtime._core.gather import END, PENDING, Elements, Gather, Lane
from reactive_runtime._core.origin import Foreign, flow_of, gathered
from reactive_runtime._core.outbox import Outbox
from reactive_runtime._core.step import describe
from reactive_runtime._core.subscription import PulledSubscription
from reactive_runtime.errors import RejectedError
from reactive_runtime.spec import Subscriber

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["group_by", "window"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def group_by(
    source: Flow[T], key: Callable[[T], K], /, groups: int = 64, prefetch: int = 256
) -> Flow[tuple[K, Flow[T]]]:
    """A pair `(key, flow)` for each new `key(element)`; the flow has the elements with that key.

    Each group's flow is for one subscriber, and buffers up to `prefetch` elements (1 or more) until it comes. At most
    `groups` (1 or more) are open at a time: one more is an OverflowError that says so, and so is a full buffer of a
    group that nobody listens to. A group whose subscriber cancels is closed, and opened anew by its next element.
    All groups complete, or fail, with the source. Cancelling the outer flow cancels the source, and fails the groups
    that are open with RejectedError. Origin: `groupBy` of Rx.

    >>> from reactive_runtime import Flow
    >>> flow = Flow.range(6).group_by(lambda n: n % 2)
    >>> list(flow.flat_map(lambda it: it[1].to_list().map(lambda elements: (it[0], elements))))
    [(0, [0, 2, 4]), (1, [1, 3, 5])]
    """
    a_function("group_by", "key", key)
    at_least("group_by", "groups", 1, groups)
    at_least("group_by", "prefetch", 1, prefetch)
    return gathered(f"group_by({describe(key)})", lambda: _GroupBy(source, key, groups, prefetch), source)


def window(source: Flow[T], n: int, /) -> Flow[Flow[T]]:
    """Flows of `n` elements each (1 or more), one after the other; the last one may be shorter.

    Each is for one subscriber, and buffers what it has until it is asked; a window that nobody subscribes to is
    dropped, to the hook, when the next one begins. Errors, the end and cancellation are those of `group_by`.
    Origin: `window` of Rx.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(5).window(2).concat_map(lambda window: window.to_list()))
    [[0, 1], [2, 3], [4]]
    """
    at_least("window", "n", 1, n)
    return gathered(f"window({n})", lambda: _Window(source, n), source)


class _Group:
    """One of the flows: an outbox, and whether somebody listens."""

    def __init__(self, split: _Split, key: Any, capacity: int) -> None:
        self.key = key
        self.outbox = Outbox(capacity, split.wake, split.wake)
        self.lock = primitives.Lock()
        self.taken = False  # lock; somebody has subscribed
        self.size = 0  # the split's owner's

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        with self.lock:
            refused, self.taken = self.taken, True
        if refused:
            outbox = Outbox(1)
            outbox.end(RejectedError("a group, or a window, is for one subscriber, and has it already"))
        else:
            outbox = self.outbox
        PulledSubscription(subscriber, outbox).start()
        if not refused:
            outbox.on_room()

    def listened_to(self) -> bool:
        with self.lock:
            return self.taken


class _Split(Gather):
    """Deals the elements of the source out to groups."""

    def __init__(self, source: Flow[Any]) -> None:
        super().__init__()
        self.source = source
        self.open_groups: dict[Any, _Group] = {}
        self.fresh: deque[_Group] = deque()  # opened, and not yet given downstream

    def wake(self) -> None:
        """A group has room, or a subscriber, or has lost it: any thread."""
        self.host._add(0)

    def group_of(self, element: Any) -> tuple[_Group, bool]:
        """Where it goes, and whether that is new."""
        raise NotImplementedError

    def full(self, group: _Group) -> None:
        """The group has no room, and nobody listens to it: raise, or drop it."""
        raise NotImplementedError

    def put(self, group: _Group, element: Any) -> Elements:
        """Deliver to the group, when there is room."""
        while not group.outbox.put(element):
            if group.outbox.gone:
                self.discard(element)
                return
            if self.fresh and self.host.demanded:
                yield self.given(self.fresh.popleft())
                continue
            if not group.listened_to():
                self.full(group)
            yield PENDING
        group.size += 1

    def wanted(self) -> bool:
        """Whether anybody has use for one more element."""
        return self.host.demanded or any(
            group.listened_to() and group.outbox.room() > 0 and group.outbox.demand() > 0
            for group in self.open_groups.values()
        )

    def elements(self) -> Elements:
        outer = self.lane(self.source, 256)
        try:
            while True:
                if self.fresh and self.host.demanded:
                    yield self.given(self.fresh.popleft())
                    continue
                news = self._next(outer)
                if news is END:
                    break
                if news is PENDING:
                    yield PENDING
                else:
                    yield from self._deal(news)
        except Exception as error:
            self._end(error)
            raise
        self._end(None)
        while self.fresh:
            yield from self.demand()
            yield self.given(self.fresh.popleft())

    def _next(self, outer: Lane) -> Any:
        for group in [it for it in self.open_groups.values() if it.outbox.gone]:
            del self.open_groups[group.key]
        return outer.signal() if self.wanted() else outer.look()

    def _deal(self, element: Any) -> Elements:
        """Give the element to its group; a new group waits in `fresh` until it is demanded."""
        group, new = self.group_of(element)
        if new:
            self.open_groups[group.key] = group
            self.fresh.append(group)
        try:
            yield from self.put(group, element)
        except GeneratorExit:
            self.discard(element)
            raise
        group.outbox.wake()

    def given(self, group: _Group) -> Any:
        """What goes downstream for a new group."""
        raise NotImplementedError

    def _end(self, error: Exception | None) -> None:
        groups, self.open_groups = self.open_groups, {}
        for group in groups.values():
            group.outbox.end(error)
            group.outbox.wake()

    def closed(self) -> None:
        groups = list(self.open_groups.values())
        self._end(RejectedError(f"{self.title}: the outer flow was cancelled"))
        for group in groups:
            while not group.listened_to() and (left := group.outbox.put_out()):
                self.discard(*left)


class _GroupBy(_Split):
    def __init__(self, source: Flow[Any], key: Callable[[Any], Any], groups: int, prefetch: int) -> None:
        super().__init__(source)
        self.key = key
        self.groups = groups
        self.prefetch = prefetch

    def group_of(self, element: Any) -> tuple[_Group, bool]:
        key = self.call(self.key, element)
        group = self.open_groups.get(key)
        if group is not None and not group.outbox.gone:
            return group, False
        if len(self.open_groups) >= self.groups:
            raise self.fault(
                OverflowError(f"{self.title}: {self.groups} groups are open, and {key!r} would be one more (groups=)")
            )
        return _Group(self, key, self.prefetch), True

    def full(self, group: _Group) -> None:
        raise self.fault(
            OverflowError(
                f"{self.title}: {self.prefetch} elements wait in group {group.key!r}, and nobody has subscribed to it:"
                " consume every group, or take fewer at a time (flat_map's concurrency at least the number of groups)"
            )
        )

    def given(self, group: _Group) -> Any:
        return group.key, flow_of(Foreign(f"group({group.key!r})", group))


class _Window(_Split):
    def __init__(self, source: Flow[Any], n: int) -> None:
        super().__init__(source)
        self.n = n
        self.current: _Group | None = None
        self.number = 0

    def group_of(self, element: Any) -> tuple[_Group, bool]:
        current = self.current
        if current is not None and current.size < self.n:
            return current, False
        if current is not None:
            self.open_groups.pop(current.key, None)
        self.number += 1
        self.current = _Group(self, self.number, self.n)
        return self.current, True

    def put(self, group: _Group, element: Any) -> Elements:
        if group.outbox.gone or not group.outbox.put(element):
            self.discard(element)
        group.size += 1
        if group.size == self.n:
            group.outbox.end()
        yield from ()

    def wanted(self) -> bool:
        current = self.current
        return self.host.demanded or (current is not None and current.size < self.n and current.listened_to())

    def given(self, group: _Group) -> Any:
        if self.n == 1:
            group.outbox.end()
        return flow_of(Foreign(f"window({group.key})", group))
