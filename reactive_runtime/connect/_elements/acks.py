"""Acknowledgements that a source sends in batches: which elements are open, and which are handled.

The problem: elements are settled on any thread, one by one, and the server wants to hear of many at once, by one
thread at a time, on one connection.

The answer: each element has a claim without a lock of its own. Acknowledgements wait here, until the source takes them
all for the server. When the source has gone, an acknowledgement goes its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reactive_runtime._core.runtime import primitives
from reactive_runtime.connect._elements.acked import Claim

__all__ = ["Acks"]


class _Entry(Claim):
    """The claim of one element."""

    __slots__ = ("_acks", "_id")

    def __init__(self, acks: Acks, id: Any) -> None:
        self._acks = acks
        self._id = id

    def settle(self, error: BaseException | None) -> bool:
        """See `Claim.settle`."""
        return self._acks.settle(self._id, self, error)

    @property
    def settled(self) -> bool:
        """See `Claim.settled`."""
        return not self._acks.holds(self._id, self)


class Acks:
    """The open elements of one subscription by their ids, and those that the server does not know to be handled.

    Args:
        news: Called with the first acknowledgement that waits, on the thread that acknowledges, under no lock.
        late: Called likewise with the id of an element that is acknowledged after the end.
    """

    def __init__(self, news: Callable[[], object], late: Callable[[Any], object]) -> None:
        self._news = news
        self._late = late
        self._lock = primitives.Lock()
        self._open: dict[Any, Claim] = {}  # _lock
        self._handled: list[Any] = []  # _lock; the server is not told yet
        self._over: bool = False  # _lock; final

    def claims(self, ids: Iterable[Any]) -> Mapping[Any, Claim]:
        """The claims of further elements, by their ids."""
        claims = {id: _Entry(self, id) for id in ids}
        with self._lock:
            self._open.update(claims)
        return claims

    def settle(self, id: Any, claim: Claim, error: BaseException | None) -> bool:
        """An element has been acknowledged or refused, on any thread. False: it had been before."""
        with self._lock:
            if self._open.get(id) is not claim:
                return False
            del self._open[id]
            if error is not None:
                return True
            late, first = self._over, not self._handled
            if not late:
                self._handled.append(id)
        if late:
            self._late(id)
        elif first:
            self._news()
        return True

    def holds(self, id: Any, claim: Claim) -> bool:
        """Whether the element with this claim is open."""
        with self._lock:
            return self._open.get(id) is claim

    def not_open(self, ids: Iterable[Any]) -> list[Any]:
        """Those of the ids whose elements are not open."""
        with self._lock:
            return [id for id in ids if id not in self._open]

    def put(self, ids: list[Any]) -> None:
        """Acknowledge these, or once more those whose acknowledgement may not have come through."""
        with self._lock:
            self._handled[:0] = ids

    def take(self) -> list[Any]:
        """All that waits; it is the caller's to send."""
        with self._lock:
            handled, self._handled = self._handled, []
        return handled

    def end(self, *, lose: bool = False) -> bool:
        """End it, if nothing waits, or what waits may be lost: the server gives those elements again."""
        with self._lock:
            self._over = lose or not self._handled
            return self._over
