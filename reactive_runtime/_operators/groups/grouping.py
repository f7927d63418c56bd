"""Operators that put several elements into one: a pair, or a flow (a group).

A group or a window (`windows`) has a bounded buffer. The operator requests from its source while the next group is
demanded, or a group that has a subscriber demands more. A full buffer holds the source back if its group has a
subscriber. Without one it would stay full for ever, so the operator fails. It first waits until the drains downstream
rest (`DrainContext.rests`), since another thread may be about to subscribe to the group.

A group may outlive the outer flow, which gives the groups. So the source has a drain of its own, whose combinator is
`Split`. That drain ends when the outer flow, and all groups that have a subscriber, are over. It deals the elements out
to *buffers*, one for each group and one for the outer flow. The drain of a buffer's subscriber takes the elements out
of it, and wakes the source's drain when the buffer has room, after it has lost its own owner. So an element is
delivered, and a group that has cancelled is gone, before the next element is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
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
    """Operators that put several elements into one: a pair, or a flow (a group, a window)."""

    __slots__ = ()

    @stateful
    def group_by(
        self, key: Callable[[T_co], K], *, groups: int = 64, prefetch: int = PREFETCH
    ) -> Flow[tuple[K, Flow[T_co]]]:
        """A pair `(key, flow)` for each new `key(element)`; the flow, a *group*, has the elements with that key.

        A group is for one subscriber: a second one gets a RejectedError. It buffers up to `prefetch` elements until its
        subscriber comes. All groups complete, or fail, with the source. If the subscriber of a group cancels, the group
        is closed, and the hook gets the elements in its buffer. A later element with its key opens a new group.

        Args:
            key: Returns the key of an element, which must be hashable.
            groups: How many groups may be open at a time, 1 or more.
            prefetch: How many elements may wait in each group, 1 or more.

        Returns:
            A flow of pairs, the outer flow. It completes when the source has, and the last pair is delivered. It fails
            with OverflowError if an element would open more than `groups` groups, or finds the buffer of a group
            without a subscriber full; and with the error that `key`, or the hash of a key, raises. If the source fails,
            the hook gets the elements of groups that were not demanded.

        Raises:
            TypeError: `key` cannot be called, or `groups` or `prefetch` is not an int.
            ValueError: `groups` or `prefetch` is below 1.

        Demand:
            Elements are requested while the next group is demanded, or a group that has a subscriber demands more. The
            full buffer of such a group holds the source back. So if an operator waits for one group and not for another
            (`flat_map_sequential`, `zip`, `merge_comparing`), `prefetch` must cover the other's elements meanwhile. If
            the source is not pulled on the same thread (an executor, another publisher, an asynchronous operator), up
            to 256 elements are requested ahead.

        Cancellation:
            If the outer flow is cancelled, the groups that have a subscriber go on, and the source is cancelled when
            they are over. The hook gets all other elements; a subscriber that comes to another group later gets a
            RejectedError. A group without a subscriber keeps its elements until the outer flow is cancelled, an
            operator drops the group, or the group is complete and the program has no reference to it.

        Thread:
            The source and `key` run on the thread that demands a group or an element; with `subscribe_on`, on its
            executor. Pairs and elements are signalled there, or on the thread that requests those that wait.

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
    def pairwise(self) -> Flow[tuple[T_co, T_co]]:
        """Each element with the one before it.

        Returns:
            A flow of pairs `(before, element)`. It is empty where the source has fewer than two elements.

        Demand:
            One more element than is demanded is requested upstream, once.

        Cancellation:
            Passes through. The hook gets a first element that is in no pair, also if the source completes after it.

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
            raise self.fault(error)  # noqa: B904  # the same error
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


NO_ELEMENT: Any = sentinel("NO_ELEMENT", __name__)


class _Pairwise(Step[T, tuple[T, T]]):
    name = "pairwise"
    calls = False

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
