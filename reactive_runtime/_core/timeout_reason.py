"""The reason why a flow has not ended in time: a look from outside, for the message of a TimeoutError.

The parts of a running flow belong to the owners of their drains. This module reads them without owning the drains: a
part may be a moment old, or gone, and then it is left out. Only the words of a message depend on that.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from types import BuiltinFunctionType
from typing import Any, Final

from reactive_runtime._core.drains.combinator import Combinator, InnerSubscription
from reactive_runtime._core.drains.drain import Drain
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.failures.assembly import place_of_thread
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.queues.multicaster import Reader
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime._core.queues.subscriber_buffer import SubscriberBuffer
from reactive_runtime._core.queues.upstream import Relayed, Upstream
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._core.sources.pollable import Pollable
from reactive_runtime._support.shown import shown

__all__ = ["awaited_by", "awaited_by_loop", "kept_by", "stalled_by"]

_PACKAGE: Final = __name__.partition(".")[0]

DEPTH = 50
"""How many stages upstream the message names, at most."""


def awaited_by(subscription: PulledSubscription) -> str:
    """In words, the part of a running flow that has not given an element."""
    with suppress(Exception):  # it changes while we look
        return f"it waited for {_of(subscription, DEPTH)}"
    return "what it waited for had just changed"


def awaited_by_loop(drain: DrainContext, inner: InnerSubscription) -> str:
    """In words, the part of a flow that has not given an element to a loop, whose thread asks."""
    with suppress(Exception):
        return f"it waited for {_pollable(inner.reads(), drain, DEPTH)}"
    return "what it waited for had just changed"


def kept_by(subscription: PulledSubscription | None, ident: int) -> str:
    """In words, which operator keeps the thread `ident`, and in which line it is."""
    parts: list[str] = []
    with suppress(Exception):
        pollable = None if subscription is None else subscription.reads()[0]
        if pollable is not None:
            place = getattr(pollable, "location", None) or getattr(pollable, "_location", None)
            parts.append(_text(pollable) + (f", which was put into the flow at {place[0]}:{place[1]}" if place else ""))
        parts.append(place_of_thread(ident))
    return "; ".join(filter(None, parts)) or "what keeps it had just changed"


def stalled_by(drain: DrainContext) -> str:
    """In words, the cause that `reactive-runtime ps` names; empty within an exploration, which no look may disturb."""
    with suppress(Exception):
        if isinstance(primitives.monotonic, BuiltinFunctionType):
            reason: str = import_module(f"{_PACKAGE}.live._reason").reason_of(drain)  # upwards, and only here
            return f"why it stood still: {reason}"
    return ""


def _of(subscription: PulledSubscription, depth: int) -> str:
    (pollable, steps), executor = subscription.reads(), subscription.executor
    owned, demand = subscription.is_owned(), subscription.demand()
    location = "the thread that woke it" if executor is None else executor_name(executor)
    if pollable is None:
        return "its end, which was being signalled"
    through = f" for {', '.join(map(str, steps))}" if steps else ""
    if owned:
        return f"{_text(pollable)}{through}, under way on {location}"
    if not demand:
        return f"demand, which has all been met, at {_text(pollable)}"
    return _pollable(pollable, subscription, depth)


def _pollable(pollable: Pollable, drain: DrainContext, depth: int) -> str:
    if depth and isinstance(pollable, PrefetchQueue):
        return _above(pollable.upstream(), _text(pollable), depth - 1)
    if depth and isinstance(pollable, Reader):
        upstream = pollable.upstream()
        if upstream is None:
            return "a multicaster that no source is connected to"
        return f"a multicaster, which waited for {_above(upstream, _text(pollable), depth - 1)}"
    if depth and isinstance(pollable, Combinator):
        return f"{_text(pollable)}, which waited for {_inners(pollable, drain, depth - 1)}"
    if isinstance(pollable, SubscriberBuffer):
        return "what is pushed to it"
    return _text(pollable)


def _above(upstream: Upstream | None, otherwise: str, depth: int) -> str:
    """In words, the part that an upstream waited for."""
    subscription = None if upstream is None else upstream.subscription()
    above = None if subscription is None else Relayed.unwrapped(subscription)
    if isinstance(above, PulledSubscription):
        return _of(above, depth)
    if above is None or isinstance(above, Drain):
        return otherwise
    if type(above).__module__.partition(".")[0] == _PACKAGE:
        return repr(above)
    return f"a publisher that is not of this package: its subscription is {shown(above)}"


def _inners(combinator: Combinator, drain: DrainContext, depth: int) -> str:
    open_inners: list[InnerSubscription] = [inner for inner in list(combinator.inners) if not inner.over]
    waits = [_pollable(inner.reads(), drain, depth) for inner in open_inners[:3]]
    more = len(open_inners) - len(waits)
    own = combinator.waits_for()
    parts = [*([own] if own else []), *waits, *([f"{more} more"] if more else [])]
    return " and ".join(parts) or "a timer, or to be woken"


def _text(pollable: Any) -> str:
    if isinstance(pollable, Combinator):
        return f"`{pollable.title}`"
    what: str = pollable.what()
    return what
