"""Reads the tree of one flow: its drains, what each drains, and marks that change when it moves.

It takes no lock, since a stuck thread may hold it, and calls no code of a user. A field may be a moment older than the
field beside it; a part that has just ended is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import length_hint
from typing import Any, Final

from reactive_runtime._core.drains.combinator import Combinator
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.queues.multicaster import Reader
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime._core.queues.ready_queue import ReadyQueue
from reactive_runtime._core.queues.upstream import Relayed
from reactive_runtime._core.sources.naming import a_kind, kind_of
from reactive_runtime._core.sources.pollable import _MANY, _SIZED, IterablePollable, Pollable
from reactive_runtime._core.sources.task_source import TaskSource
from reactive_runtime._operators.concurrent.adaptive import Adaptive
from reactive_runtime._operators.concurrent.by_key import _ByKey
from reactive_runtime._operators.concurrent.tasks import Tasks
from reactive_runtime._operators.groups.group_buffer import GroupBuffer
from reactive_runtime._operators.groups.group_source import Split

__all__ = [
    "Node",
    "elements_of",
    "executor_text",
    "is_root",
    "mark",
    "operators_of",
    "queued_in",
    "subscriber_of",
    "tree",
]

WIDE: Final = 20
"""Inner subscriptions of one operator that are read, at most."""

DEEP: Final = 50
"""Stages above one another that are read, at most."""


@dataclass(slots=True)
class Node:
    """One part of a flow: a drain with what it drains, or an upstream that hangs on the drain of its operator."""

    drain: Any
    pollable: Pollable | None
    steps: Sequence[Any]
    depth: int
    begins: bool
    """The drain is its own: not that of the operator below."""
    foreign: Any = None
    """The subscription of a publisher that is not of this package, upstream of its queue."""
    above: list[Node] = field(default_factory=list)
    seconds: float = 0.0
    """For how long nothing of it has moved. Set by the history."""

    def on_its_drain(self) -> Iterator[Node]:
        """This node, and the nodes on the same drain upstream of it."""
        yield self
        for node in self.above:
            if not node.begins:
                yield from node.on_its_drain()

    def parts(self) -> Iterator[Node]:
        """This node, and every node upstream of it."""
        yield self
        for node in self.above:
            yield from node.parts()


def tree(drain: DrainContext) -> Node:
    """The tree of a drain, up to its sources."""
    return _node(drain, 0, {id(drain)})


def _node(drain: Any, depth: int, seen: set[int]) -> Node:
    inner = getattr(drain, "_inner", None)
    pollable, steps = (drain._pollable, drain._steps) if inner is None else (inner._pollable, inner._steps)
    node = Node(drain, pollable, tuple(steps), depth, begins=True)
    _read_above(node, seen)
    return node


def _read_above(node: Node, seen: set[int]) -> None:
    if node.depth >= DEEP:
        return
    pollable = node.pollable
    if isinstance(pollable, PrefetchQueue):
        _above_queue(node, pollable._upstream, seen)
    elif isinstance(pollable, Reader):
        _above_queue(node, pollable._multicaster._upstream, seen)
    elif isinstance(pollable, GroupBuffer):
        _add(node, getattr(pollable._split, "drain", None), seen)
    elif isinstance(pollable, Combinator):
        for inner in list(pollable.inners)[:WIDE]:
            above = Node(node.drain, inner._pollable, tuple(inner._steps), node.depth + 1, begins=False)
            node.above.append(above)
            _read_above(above, seen)


def _above_queue(node: Node, upstream: Any, seen: set[int]) -> None:
    subscription = None if upstream is None else upstream._subscription
    if subscription is None:
        return
    above = Relayed.unwrapped(subscription)
    if isinstance(above, PulledSubscription):
        _add(node, above, seen)
    else:
        node.foreign = above


def _add(node: Node, drain: Any, seen: set[int]) -> None:
    if drain is not None and id(drain) not in seen and hasattr(drain, "_over"):
        seen.add(id(drain))
        node.above.append(_node(drain, node.depth + 1, seen))


def is_root(drain: Any) -> bool:
    """Whether the drain signals to a subscriber, and not to a part of another flow."""
    subscriber = getattr(drain, "_subscriber", None)
    while isinstance(subscriber, Relayed):
        subscriber = subscriber.subscriber
    pollable = getattr(drain, "_pollable", None)
    return type(subscriber) is not PrefetchQueue and not isinstance(pollable, Split)


def subscriber_of(drain: Any) -> str:
    """The kind of the subscriber of a root."""
    if not isinstance(drain, PulledSubscription):
        return "a `for` loop"
    subscriber = drain._subscriber
    return "a subscriber that is being released" if subscriber is None else kind_of(subscriber)


def operators_of(node: Node) -> str:
    """The source and the operators of a node, in the words of `explain`."""
    return " ".join([_source_text(node), *map(str, node.steps)]).strip()


def _source_text(node: Node) -> str:
    pollable = node.pollable
    if pollable is None:
        return "closing"
    if isinstance(pollable, Adaptive):
        return f"{pollable.title}, {pollable.limiter.limit} at once"
    if isinstance(pollable, Combinator):
        return pollable.title
    if isinstance(pollable, IterablePollable):
        return pollable._title
    if isinstance(pollable, TaskSource):
        return "task"
    if isinstance(pollable, PrefetchQueue):
        return "|" if node.foreign is None else f"publisher with {a_kind(node.foreign)} |"
    if isinstance(pollable, Reader):
        return "shared"
    if isinstance(pollable, GroupBuffer):
        return "group"
    return "pushed"


def executor_text(executor: Any) -> str:
    """An executor by its kind and its name; its `repr` may be a user's code."""
    prefix = getattr(executor, "_thread_name_prefix", None) or getattr(executor, "_name", None)
    name = type(executor).__name__
    return f'pool "{prefix}"' if isinstance(prefix, str) and prefix else f"the {name}"


def queued_in(node: Node) -> int | None:
    """How many elements wait before a node, if it has a queue."""
    pollable = node.pollable
    if isinstance(pollable, Reader):
        return max(0, pollable._multicaster._end - pollable._position)
    if not isinstance(pollable, ReadyQueue):
        return None
    return len(pollable._items) + _hint(getattr(pollable, "_chunk", None))


def _hint(iterator: Any) -> int:
    """How many elements are left in one of Python's own iterators."""
    return length_hint(iterator) if isinstance(iterator, _SIZED) else 0


def elements_of(node: Node) -> int | None:
    """How many elements the source of a node has given, if it counts."""
    pollable = node.pollable
    if isinstance(pollable, IterablePollable):
        iterable, iterator = pollable._iterable, pollable._iterator
        if pollable._count is not None and iterable is None:
            return _MANY - length_hint(pollable._count)
        if type(iterable) in (list, tuple, range, str, bytes, dict):
            return len(iterable) - _hint(iterator)
        return None
    if isinstance(pollable, Reader):
        return pollable._position
    return pollable.index if isinstance(pollable, Tasks) else None


def mark(node: Node) -> tuple[Any, ...]:
    """Values that stay the same as long as a node does not move."""
    drain, pollable = node.drain, node.pollable
    marks: list[Any] = [id(pollable), elements_of(node), queued_in(node), len(drain.stopped)]
    if node.begins:
        subscriber = getattr(drain, "_subscriber", None)
        marks += [drain._demand, getattr(subscriber, "number", None), drain._calling]
    if isinstance(pollable, PrefetchQueue):
        marks += [pollable._room, pollable._consumed, pollable._taken, pollable._over, id(pollable._upstream)]
        marks += [id(pollable._chunk), id(pollable._items)]  # new for each piece that is taken
    elif isinstance(pollable, IterablePollable):
        marks.append(_hint(pollable._iterator))
    elif isinstance(pollable, Combinator):
        marks += [len(pollable.inners), *((id(timer._future), timer._round) for timer in list(pollable.timers)[-1:])]
        if isinstance(pollable, Tasks):
            marks += [len(pollable.flying), len(pollable.landed)]
        elif isinstance(pollable, _ByKey):
            marks += [pollable.held, len(pollable.landed), len(pollable.done), len(pollable.ready)]
        elif isinstance(pollable, Split):
            marks += [len(pollable.buffers), pollable._wanted, id(pollable.in_hand)]
    else:
        marks += [getattr(pollable, name, None) for name in ("_given", "_handed", "_over", "_begun")]
    return tuple(marks)
