"""How many elements are worked on at once: the base of `flat_map` and its kin, and of `map_parallel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactive_runtime._core.drains.combinator import PENDING, InnerSubscription
from reactive_runtime._operators.combining import Delaying

if TYPE_CHECKING:
    from reactive_runtime._operators.flow_base import FlowBase

__all__ = ["Bounded"]


class Bounded(Delaying):
    """Works on several elements at once; the source begins with the first demand."""

    hears = True  # from those that are under way

    source: FlowBase[Any]
    concurrency: int
    begun = False

    def outer(self) -> InnerSubscription:
        """The source. It is asked for what can be worked on, and not for what is demanded downstream."""
        inner = self.inner(self.source)
        self._relaying.pop(inner, None)
        return inner

    def news(self, outer: InnerSubscription, busy: int) -> Any:
        """What to begin next, where `busy` are under way; PENDING; or END."""
        if self.drain.stopped:
            return PENDING
        self.begun = self.begun or self.drain.demanded
        if not self.begun or busy >= self.concurrency:
            return outer.peek_end()
        news = self.pulled(outer)
        if news is PENDING:
            outer.request(self.lacking(busy))
        return news

    def pulled(self, outer: InnerSubscription) -> Any:
        """The next element, PENDING, or END."""
        return outer.next_signal()

    def lacking(self, busy: int) -> int:
        """How many more elements can be worked on."""
        return self.concurrency - busy
