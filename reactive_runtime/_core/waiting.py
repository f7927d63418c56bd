"""What a flow that has not ended in time was waiting for: a look from outside, for the message of a TimeoutError.

The parts of a running flow belong to the owners of their drains. Here they are read without: what is seen may be a
moment old, or gone, and then it is left out. Nothing depends on it but the words.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from reactive_runtime._core.drain import Drain
from reactive_runtime._core.feed import Feed
from reactive_runtime._core.gather import Gather, Lane
from reactive_runtime._core.host import Host
from reactive_runtime._core.hub import Reader
from reactive_runtime._core.inbox import Inbox, Relayed, Upstream
from reactive_runtime._core.naming import executor_name
from reactive_runtime._core.outbox import Outbox
from reactive_runtime._core.single import Single
from reactive_runtime._core.subscription import PulledSubscription

__all__ = ["waited_for"]

_PACKAGE: Final = __name__.partition(".")[0]

DEPTH = 50
"""So many stages upstream are looked at."""


def waited_for(subscription: PulledSubscription) -> str:
    """In words, what has not given an element."""
    with suppress(Exception):  # it changes while we look
        return f"it waited for {_of(subscription, DEPTH)}"
    return "what it waited for had just changed"


def _of(subscription: PulledSubscription, depth: int) -> str:
    feed, steps, executor = subscription._feed, subscription._steps, subscription._executor
    with subscription._lock:
        busy, demand = subscription._busy, subscription._demand
    place = "the thread that woke it" if executor is None else executor_name(executor)
    if feed is None:
        return "its end, which was being signalled"
    through = f" for {', '.join(map(str, steps))}" if steps else ""
    if busy:
        return f"{_text(feed)}{through}, under way on {place}"
    if not demand:
        return f"demand, which has all been met, at {_text(feed)}"
    return _feed(feed, subscription, depth)


def _feed(feed: Feed, host: Host, depth: int) -> str:
    if depth and isinstance(feed, Inbox):
        return _above(feed._upstream, _text(feed), depth - 1)
    if depth and isinstance(feed, Reader):
        if feed._hub._upstream is None:
            return "a hub that no source is connected to"
        return f"a hub, which waited for {_above(feed._hub._upstream, _text(feed), depth - 1)}"
    if depth and isinstance(feed, Gather):
        return f"{_text(feed)}, which waited for {_lanes(feed, host, depth - 1)}"
    if isinstance(feed, Outbox):
        return "what is pushed to it"
    return _text(feed)


def _above(upstream: Upstream | None, otherwise: str, depth: int) -> str:
    """What an upstream waited for."""
    above = None if upstream is None or upstream._subscription is None else Relayed.unwrapped(upstream._subscription)
    if isinstance(above, PulledSubscription):
        return _of(above, depth)
    if above is None or isinstance(above, Drain):
        return otherwise
    if type(above).__module__.partition(".")[0] == _PACKAGE:
        return repr(above)
    return f"a publisher that is not of this package: its subscription is {above!r}"


def _lanes(gather: Gather, host: Host, depth: int) -> str:
    open_lanes: list[Lane] = [lane for lane in list(gather.lanes) if not lane.over]
    waits = [_feed(lane._feed, host, depth) for lane in open_lanes[:3]]
    more = len(open_lanes) - len(waits)
    own = gather.waits_for()
    parts = [*([own] if own else []), *waits, *([f"{more} more"] if more else [])]
    return " and ".join(parts) or "a timer, or to be woken"


def _text(feed: Any) -> str:
    if isinstance(feed, Gather):
        return f"`{feed.title}`"
    if isinstance(feed, Single):
        return f"a task on {executor_name(feed._executor)}"
    what: str = feed.what()
    return what
