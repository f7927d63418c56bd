"""A pollable source makes the iterator that one subscription pulls from, and ends it.

A cold source is a pollable source over the iterator that its supplier makes. A boundary is one over the elements that
have arrived from its upstream (`queues.prefetch_queue`). To the drain they differ only in that a boundary may have no
element yet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, islice, repeat
from operator import length_hint
from typing import Any, Final

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.ownership import owner_only
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import AssemblyLocation, note_assembly
from reactive_runtime._core.fusion.fuse import PENDING
from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.sources.naming import a_kind
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import RejectedError

__all__ = ["IterablePollable", "Pollable", "end_is_certain", "paced"]


class Pollable:
    """One subscription's supply. All but `attach` and `connect` is called by the owner of its drain."""

    __slots__ = ("heard",)

    heard: dropping.Listeners
    """The listeners to elements discarded here and further upstream. Set before `attach`."""

    queues: bool = False
    """The elements have been made already: the iterator runs no user's code to get them."""

    combines: bool = False
    """It subscribes to upstreams of its own when the iterator first runs."""

    waits: bool = False
    """Whether the iterator may yield PENDING."""

    keeps_requests: bool = False
    """A second `request(n)`, with no element taken since the first and no greater `n`, does nothing."""

    def attach(self, drain: DrainContext) -> None:
        """Wake this drain; called once, before anything else."""

    def stands_on(self, depth: int) -> None:
        """So many operators stand below it on the same drain. Called once, before `attach`, where it `combines`."""

    def connect(self) -> None:
        """Subscribe to the upstream; called once, on the subscribing thread, after `on_subscribe` has returned."""

    @owner_only
    def open(self) -> Iterator[Any]:
        """The iterator; called once, on the thread that drains. May raise what the source raises."""
        raise NotImplementedError

    def synchronous(self) -> bool:
        """Whether `next` on the iterator runs no user's code and never waits."""
        return False

    @owner_only
    def request(self, n: int) -> None:
        """The drain has run dry, and `n` elements are demanded: note the requests to upstreams."""

    def pace(self) -> None:
        """Give way after so many elements: the steps behind it may drop them all."""

    @owner_only
    def ask_exactly(self) -> None:
        """From now on ask for as many elements as are demanded (`request`)."""

    def note_source(self, error: BaseException) -> None:
        """Note on an error of the iterator the line that put the source into the flow."""

    @owner_only
    def failure(self) -> Exception | None:
        """The error that the upstream has ended with, as far as that is known, also where elements wait before it.

        It counts as taken: the caller raises it, as it comes out of here.
        """
        return None

    @owner_only
    def run_without_demand(self) -> None:
        """Run without demand, and pull nothing: for an end, an error, a timer."""

    def pushes(self) -> bool:
        """Whether elements come without a pull."""
        return self.waits

    def relays(self) -> bool:
        """Whether `request` does anything: False where all there is room for has been asked for."""
        return True

    @owner_only
    def notify_when_ready(self, ready: list[Any], who: Any) -> bool:
        """Put `who` into `ready`, which the drain's lock owns, when something arrives. False: it is here, or may be."""
        return False

    @owner_only
    def exhausted(self) -> bool:
        """Whether certainly no element of the source is left to come."""
        return False

    def what(self) -> str:
        """Its name, for a message."""
        return "its upstream"

    def still_to_come(self) -> int | None:
        """How many elements are left, at most; None: that is not known. A look, for the end of the interpreter."""
        return None

    def where(self) -> str:
        """Which source it is, and how far it has got, for an error about one of its elements."""
        return "the source"

    @owner_only
    def ask_no_more(self) -> bool:
        """Take nothing more from the upstream, and end behind the elements that have arrived. False: there are none."""
        return False

    def count_given(self) -> int | None:
        """How many elements its iterator has given, until it is closed; None: it does not count them.

        A look from any thread.
        """
        return None

    def close(self) -> None:
        """Release everything: the stream has ended or was cancelled. May be called before `open`."""


def end_is_certain(steps: Sequence[Step[Any, Any]], pollable: Pollable) -> bool:
    """Whether looking ahead can't take an element from the source, nor from a step that expands.

    Elements that a step gives at the end wait for demand before they go on to the next step.
    """
    for step in reversed(steps):
        if step.expands and step.holds():
            return False
        if step.done:
            return True
    return pollable.exhausted()


def paced(elements: Iterator[Any], drain: DrainContext) -> Iterator[Any]:
    """`elements` of a source that never waits, for steps that may drop them all: gives way after so many of them."""
    return chain.from_iterable(_paced(elements, drain))


def _paced(elements: Iterator[Any], drain: DrainContext) -> Iterator[Iterable[Any]]:
    for first in elements:
        yield chain((first,), islice(elements, drain.next_run() - 1))
        if drain.end_run():
            drain.spend()
            yield (PENDING,)


_EMPTY: Final[tuple[Iterable[Any], ...]] = ((), [], range(0), range(2**63, 2**63), "", b"", {}, {}.values())
_SIZED: Final[tuple[type[Any], ...]] = tuple(type(iter(empty)) for empty in _EMPTY)
"""Python's iterators whose length hint is exact: it says without a pull how many elements are left."""

_MANY: Final = sys.maxsize


class IterablePollable(Pollable):
    """The iterator of a supplier's iterable, made when the drain first runs."""

    __slots__ = ("_count", "_iterable", "_iterator", "_location", "_supplier", "_title")

    def __init__(
        self, supplier: Callable[[], Iterable[Any]], title: str, location: AssemblyLocation | None = None
    ) -> None:
        self._supplier = supplier
        self._title = title
        self._location = location
        # Owned by the subscription's drain:
        self._iterator: Iterator[Any] | None = None
        self._iterable: Any = None  # of an iterator whose length hint is exact
        self._count: repeat[bool] | None = None  # of another: what is left of MANY

    def open(self) -> Iterator[Any]:
        iterable = self._supplier()
        try:
            iterator: Iterator[Any] = iter(iterable)
        except TypeError as error:
            what = "its __iter__ returns no iterator" if hasattr(iterable, "__iter__") else "it is not iterable"
            raise TypeError(f"the source gave {a_kind(iterable)}: {what} ({error})") from error
        self._iterator = iterator
        if self.synchronous() and iterator is not iterable:
            self._iterable = iterable
            return iterator
        self._count = repeat(True, _MANY)  # counts, for `where`, at the cost of two nanoseconds an element
        return compress(iterator, self._count)

    def where(self) -> str:
        return f"the source {self._title} at index {self.count_given() - 1}"

    def count_given(self) -> int:
        iterator, iterable, count = self._iterator, self._iterable, self._count
        if iterable is not None:
            return len(iterable) - length_hint(iterator)
        return 0 if count is None else _MANY - length_hint(count)

    def note_source(self, error: BaseException) -> None:
        if not isinstance(error, RejectedError):  # that is the executor's
            note_assembly(error, self._title, self._location)

    def synchronous(self) -> bool:
        return isinstance(self._iterator, _SIZED)

    def exhausted(self) -> bool:
        # 2.9: a list that has been read to its end completes at once; a generator's end is only known by asking.
        iterator = self._iterator
        return isinstance(iterator, _SIZED) and length_hint(iterator) == 0

    def relays(self) -> bool:
        return False

    def put_in(self) -> tuple[str, AssemblyLocation | None]:
        """Its title, and the line that put it into the flow."""
        return self._title, self._location

    def what(self) -> str:
        iterator = self._iterator
        return "its source" if iterator is None else f"the source, {a_kind(iterator)}"

    def still_to_come(self) -> int | None:
        iterator = self._iterator
        return length_hint(iterator) if isinstance(iterator, _SIZED) else None

    def close(self) -> None:
        iterator, self._iterator, self._iterable = self._iterator, None, None
        close = getattr(iterator, "close", None)
        if close is None:
            return
        try:
            close()
        except BaseException as error:
            dropping.raised(f"closing the source's iterator {shown(iterator)} raised", error)
