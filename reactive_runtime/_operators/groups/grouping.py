"""Several elements in one: lists, pairs, and flows of their own, which are groups and windows.

A group or a window has a bounded buffer. The flow asks its source for more while the next group is demanded, or a group
that has a subscriber demands more. A full buffer holds the source back if its group has a subscriber, which will take
the elements. Without a subscriber a full buffer would stay full for ever: the flow then fails with an error that says
so. The flow knows that a group has no subscriber only when the drains that the groups go through rest
(`DrainContext.rests`), since another thread may be about to subscribe.

A group may outlive the flow that it came from. So the source has a drain of its own (`Split` hangs on it), which ends
when the outer flow and all groups that have a subscriber are over. It deals the elements out to *buffers*, one for
each group and one for the outer flow. A buffer hangs on the drain of its subscriber, and leaves a note for the drain of
the source when it can take more. That drain works when its thread owns no other: each element is delivered, and a group
that has had enough is gone, before the drain asks the source for the next element.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least, check_callable
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._operators.groups.group_flow import Given, Group
from reactive_runtime._operators.groups.group_source import Split
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["GroupingOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K", bound=Hashable)


class GroupingOperators(FlowBase[T_co]):
    """Several elements in one: lists, pairs, and flows of their own, which are groups and windows."""

    __slots__ = ()

    @stateful
    def group_by(
        self, key: Callable[[T_co], K], *, groups: int = 64, prefetch: int = PREFETCH
    ) -> Flow[tuple[K, Flow[T_co]]]:
        """A pair `(key, flow)` for each new `key(element)`; the flow has the elements with that key.

        Each group's flow is for one subscriber: a second one gets a RejectedError. It buffers up to `prefetch` elements
        until its subscriber comes. All groups complete, or fail, with the source. A group whose subscriber cancels is
        closed: the hook gets what it holds, once. A later element of its key opens a new group.

        Args:
            key: Makes the key of an element, which is hashable.
            groups: How many groups may be open at a time, 1 or more.
            prefetch: How many elements may wait in each group, 1 or more.

        Returns:
            A flow of pairs. It completes when the source has, and the last pair is delivered. It fails with
            OverflowError where one group more than `groups` would be open, or the buffer of a group without a
            subscriber is full. It fails with the error that `key`, or the hash of a key, raises. If the source fails, a
            group that is not demanded yet is dropped, to the hook.

        Raises:
            TypeError: `key` cannot be called, or `groups` or `prefetch` is not an int.
            ValueError: `groups` or `prefetch` is below 1.

        Demand:
            The source is asked for more while the next group is demanded, or a group that has a subscriber demands
            more. A full buffer of a group that has a subscriber holds the source back: an operator that takes groups in
            an order of its own (`flat_map_sequential`, `zip`, `merge_comparing`) has to have room (`prefetch`) for all
            that comes of one while it waits for another. If the source is not pulled on the same thread (an executor,
            another publisher, an asynchronous operator), up to 256 elements are requested ahead of that.

        Cancellation:
            Where the outer flow is cancelled, the groups that have a subscriber go on. What belongs to no such group is
            dropped, to the hook. A subscriber that comes to a group later than that gets a RejectedError. When those
            groups are over as well, the source is cancelled. A group that an operator drops before it has a subscriber
            drops what it holds. One that a program keeps, and never subscribes to, keeps it until the outer flow is
            cancelled. One that is complete, and that the program has released, drops it too.

        Thread:
            The source runs, and `key` is called, on the thread that demands a group or an element; with `subscribe_on`,
            on its executor. Pairs and the elements of groups are signalled there, or on the thread that requests what
            waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> flow = Flow.range(6).group_by(lambda n: n % 2)
            >>> list(flow.flat_map(lambda group: group[1].to_list().map(lambda elements: (group[0], elements))))
            [(0, [0, 2, 4]), (1, [1, 3, 5])]

        Origin:
            `groupBy` of Rx.
        """
        check_callable("group_by", "key", key)
        at_least("group_by", "groups", 1, groups)
        at_least("group_by", "prefetch", 1, prefetch)
        return combinator_flow(
            f"group_by({describe(key)})", lambda: Given(lambda: _GroupBy(self, key, groups, prefetch)), self
        )

    @stateful
    def window(self, n: int) -> Flow[Flow[T_co]]:
        """Flows of `n` elements each, one after the other.

        Each window is for one subscriber, and buffers its elements until they are demanded. All of them complete, or
        fail, with the source at the latest. Elements that a window has not delivered when its subscriber cancels are
        dropped, to the hook.

        Args:
            n: How many elements are in a window, 1 or more. The last window may have fewer.

        Returns:
            A flow of flows. It completes when the source has, and the last window is delivered. If the source fails, a
            window that is not demanded yet is dropped, to the hook.

        Raises:
            TypeError: `n` is not an int.
            ValueError: `n` is below 1.

        Demand:
            The source is asked for more while the next window is demanded, or the present one has a subscriber and is
            not full. If the source is not pulled on the same thread (an executor, another publisher, an asynchronous
            operator), up to 256 elements are requested ahead of that.

        Cancellation:
            Where the outer flow is cancelled, the windows that have a subscriber go on. What belongs to no such window
            is dropped, to the hook. A subscriber that comes to a window later than that gets a RejectedError. When
            those windows are over as well, the source is cancelled. A window that an operator drops before it has a
            subscriber drops what it holds. One that a program keeps, and never subscribes to, keeps it until the outer
            flow is cancelled; a full one needs the source no more, and keeps it until the program has released it: then
            it drops it. So does any other that is complete.

        Thread:
            The source runs on the thread that demands a window or an element; with `subscribe_on`, on its executor.
            Windows and their elements are signalled there, or on the thread that requests what waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).window(2).concat_map(lambda window: window.to_list()))
            [[0, 1], [2, 3], [4]]

        Origin:
            `window` of Rx.
        """
        at_least("window", "n", 1, n)
        return combinator_flow(f"window({n})", lambda: Given(lambda: _Window(self, n)), self)

    @stateful
    def pairwise(self) -> Flow[tuple[T_co, T_co]]:
        """Each element with the one before it.

        Returns:
            A flow of pairs `(before, element)`. It is empty where the source has fewer than two elements.

        Demand:
            One more element than is demanded is requested upstream, once.

        Cancellation:
            Passes through. A first element that has no pair is dropped, to the hook; so is one that is alone.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 4, 9).pairwise())
            [(1, 4), (4, 9)]

        Origin:
            `itertools.pairwise`.
        """
        return self._then(_Pairwise())

    @stateful
    def batch(self, n: int) -> Flow[list[T_co]]:
        """Lists of `n` elements.

        `buffer_timeout` also gives a list when a time has passed.

        Args:
            n: Elements in a list, 1 or more.

        Returns:
            A flow of lists. The last one may be shorter. If the source fails, a list that is not full is dropped, to
            the hook.

        Raises:
            TypeError: `n` is not an int.
            ValueError: `n` is below 1.

        Demand:
            For each list that is demanded, `n` elements are requested upstream.

        Cancellation:
            Passes through. A list that is not full is dropped, to the hook.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).batch(2))
            [[0, 1], [2, 3], [4]]

        Origin:
            `itertools.batched`, `buffer` of Rx.
        """
        return self._then(_Batch(at_least("batch", "n", 1, n), "batch"))

    @stateful
    def buffer(self, n: int) -> Flow[list[T_co]]:  # the docstring is that of `batch`
        return self._then(_Batch(at_least("buffer", "n", 1, n), "buffer"))

    buffer.__doc__ = batch.__doc__


class _GroupBy(Split):
    def __init__(self, source: FlowBase[Any], key: Callable[[Any], Any], groups: int, prefetch: int) -> None:
        super().__init__(source)
        self.key = key
        self.groups = groups
        self.prefetch = prefetch

    def key_of(self, element: Any) -> Any:
        return self.call(self.key, element)

    def group_of(self, key: Any) -> tuple[Group, bool]:
        try:
            group = self.open_groups.get(key)
        except Exception as error:  # the key has no hash
            raise self.fault(error)  # noqa: B904  # the same
        if group is not None:
            return group, False
        if len(self.open_groups) >= self.groups and not self.outer_cancelled:
            raise self.fault(
                OverflowError(
                    f"{self.title}: the new key {shown(key)} needs a group, and as many are open as may be"
                    f" (groups={self.groups}): raise groups, or let a group end (take, timeout) before"
                )
            )
        return Group(self, key, self.prefetch), True

    def full(self, group: Group) -> Exception:
        return self.fault(
            OverflowError(
                f"{self.title}: {self.prefetch} elements wait in group {shown(group.key)}, and it has no subscriber:"
                " consume every group, or take fewer at a time (flat_map's concurrency at least the number of groups)"
            )
        )

    def given(self, group: Group) -> Any:
        return group.key, group.flow(f"group({shown(group.key)})")


class _Window(Split):
    def __init__(self, source: FlowBase[Any], n: int) -> None:
        super().__init__(source)
        self.n = n
        self.current: Group | None = None
        self.number = 0

    def group_of(self, key: Any) -> tuple[Group, bool]:
        current = self.current
        if current is not None and current.size < self.n:
            return current, False
        self.number += 1
        self.current = Group(self, self.number, self.n)
        return self.current, True

    def put(self, group: Group, element: Any) -> bool:
        if not group.buffer.put(element):
            self.discard(element)  # it was cancelled
        group.size += 1
        if group.size == self.n:  # it needs the source no more
            self.open_groups.pop(group.key, None)
            self.buffers.pop(group.buffer, None)
            group.buffer.end()
        group.buffer.wake()
        if group.size == self.n:
            group.ended()
        return True

    def wants_more(self, group: Group) -> bool:
        return group is self.current and group.size < self.n and group.taken() and not group.buffer.gone()

    def given(self, group: Group) -> Any:
        return group.flow(f"window({group.key})")


NO_ELEMENT: Any = sentinel("NO_ELEMENT", __name__)


class _Pairwise(Step[T, tuple[T, T]]):
    name = "pairwise"

    def __init__(self) -> None:
        self.before: Any = NO_ELEMENT
        self.paired = False

    def on_next(self, element: T) -> Each[tuple[T, T]]:
        before = self.before
        self.before = element
        if before is not NO_ELEMENT:
            self.paired = True
            yield before, element

    def dispose(self) -> Iterable[object]:
        return () if self.paired or self.before is NO_ELEMENT else (self.before,)

    def upstream_demand(self, n: int) -> int:
        return n + 1 if self.before is NO_ELEMENT else n

    def __str__(self) -> str:
        return "pairwise()"


class _Batch(Step[T, list[T]]):
    name = "batch"

    def __init__(self, n: int, operator: str) -> None:
        self.n = n
        self.operator = operator  # the name of the operator that was called

    def reset(self) -> None:
        self.elements: list[T] = []

    def on_next(self, element: T) -> Each[list[T]]:
        elements = self.elements
        elements.append(element)
        if len(elements) == self.n:
            self.elements = []
            yield elements

    def on_complete(self) -> Iterator[list[T]]:
        elements = self.elements
        self.elements = []
        if elements:
            yield elements

    def upstream_demand(self, n: int) -> int:
        return n * self.n - len(self.elements)

    def dispose(self) -> Iterable[object]:
        elements, self.elements = self.elements, []
        return elements

    def __str__(self) -> str:
        return f"{self.operator}({self.n})"
