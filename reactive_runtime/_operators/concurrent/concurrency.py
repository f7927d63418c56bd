"""A bound on the elements that an operator works on at once: the base of `flat_map` and of `map_parallel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactive_runtime._core.drains.combinator import PENDING, InnerSubscription
from reactive_runtime._operators.combining import Delaying

if TYPE_CHECKING:
    from reactive_runtime._operators.flow_base import FlowBase

__all__ = ["Bounded"]


class Bounded(Delaying):
    """Works on several elements at once; the source begins with the first demand."""

    hears = True  # the inner flows, or the tasks, wake it

    source: FlowBase[Any]
    concurrency: int
    begun = False

    def outer(self) -> InnerSubscription:
        """Subscribe to the source. `news` requests elements by `concurrency`, and not by the demand downstream."""
        inner = self.inner(self.source)
        self.relay_no_more(inner)
        return inner

    def news(self, outer: InnerSubscription, busy: int) -> Any:
        """The next element to begin with, while `busy` are under way; PENDING; or END."""
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
        """How many more elements the operator can work on."""
        return self.concurrency - busy
