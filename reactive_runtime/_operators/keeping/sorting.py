"""`sort`: sorts few elements in memory; more than that, in sorted files (*runs*), which it merges at the end."""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from operator import itemgetter
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar, overload

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements
from reactive_runtime._core.failures.assembly import caused
from reactive_runtime._core.failures.exits import each
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime.arguments import at_least, check_callable
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._operators.time.timing import WAITING

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from reactive_runtime._flow import Flow

__all__ = ["SortingOperators"]

T_co = TypeVar("T_co", covariant=True)

IN_MEMORY: Final = 65_536
"""How many elements are sorted in memory."""

RUNS: Final = 64
"""How many runs are merged into one, so that few files are open."""

PORTION: Final = 256
"""How many elements of a run are read at a time, at most; those of all runs together are no more than in memory."""

NOTHING: Any = sentinel("NOTHING", __name__)

Folder = str | PathLike[str] | None


class SortingOperators(FlowBase[T_co]):
    """All elements in order."""

    __slots__ = ()

    @overload
    def sort(
        self: FlowBase[SupportsRichComparison],
        *,
        key: None = None,
        reverse: bool = False,
        capacity: int = IN_MEMORY,
        folder: Folder = None,
    ) -> Flow[T_co]: ...

    @overload
    def sort(
        self,
        *,
        key: Callable[[T_co], SupportsRichComparison],
        reverse: bool = False,
        capacity: int = IN_MEMORY,
        folder: Folder = None,
    ) -> Flow[T_co]: ...

    @stateful
    def sort(
        self: FlowBase[Any],
        *,
        key: Callable[[Any], Any] | None = None,
        reverse: bool = False,
        capacity: int = IN_MEMORY,
        folder: Folder = None,
    ) -> Flow[Any]:
        """All elements, sorted, when the source has completed; equal elements keep the order of the source.

        The operator sorts more than `capacity` elements on disk: it pickles them into temporary files without a name,
        so a delivered element may be a copy. The files are gone when the flow ends, fails or is cancelled, when the
        program frees the flow, and when the process ends.

        Args:
            key: Returns the value to compare, with `<`; called once for each element. None: the operator compares the
                elements.
            reverse: True: the largest element comes first.
            capacity: How many elements are sorted in memory, 1 or more; 65,536. A merge of files holds up to as many
                elements more. Above 64 times `capacity` elements, and for each further factor of 64, it holds up to as
                many again.
            folder: The folder of the temporary files. None: that of Python's `tempfile`.

        Returns:
            A flow of the same elements. The flow fails with the error that `key` or the comparison raises, with
            TypeError if it can't pickle an element for the disk, and with OSError if the disk is full.

        Raises:
            TypeError: `key` cannot be called, or `capacity` is not an int.
            ValueError: `capacity` is below 1.

        Demand:
            With the first demand, the operator requests all elements upstream, 256 at a time. Sorted elements wait for
            demand.

        Cancellation:
            Passes through. The hook gets the elements that have not been delivered; the cancel reads them from the
            disk.

        Thread:
            The thread of the source calls `key`, compares, and writes the files. The thread that requests reads
            elements that waited for demand.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just("b", "ccc", "aa").sort(key=len, reverse=True))
            ['ccc', 'aa', 'b']

        Origin:
            `sorted` of RxJava and Python, `sort` of Reactor.
        """
        if key is not None:
            check_callable("sort", "key", key)
        at_least("sort", "capacity", 1, capacity)
        title = f"sort({'' if key is None else describe(key)})"
        return combinator_flow(title, lambda: _Sort(self, key, reverse, capacity, folder), self)


class _Run:
    """Sorted elements in a file. A flow that the program frees does not end: each run then closes its own file."""

    def __init__(self, items: Iterator[Any], portion: int, folder: Folder) -> None:
        self.portions = 0
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # `close` closes it
        try:
            while some := list(islice(items, portion)):
                pickle.dump(some, self.file, pickle.HIGHEST_PROTOCOL)
                self.portions += 1
        except BaseException:
            self.file.close()
            raise

    def __iter__(self) -> Iterator[Any]:
        """The elements, from the first on."""
        self.file.seek(0)
        for _ in range(self.portions):
            yield from pickle.load(self.file)  # this operator has written it

    def close(self) -> None:
        """Delete the file."""
        self.file.close()

    def __del__(self) -> None:
        # Any thread may run this, at any instruction: it takes no lock, and no other thread has the file.
        file = getattr(self, "file", None)  # there is none if the folder has no room
        if file is not None:
            with suppress(OSError):  # the elements that it might still write are dropped
                file.close()


class _Reader:
    """Gives a merge the items of a run, and remembers the last: the merge may not have delivered this one yet."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = iter(items)
        self.head: Any = NOTHING

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.head = NOTHING
        self.head = next(self.items)
        return self.head


class _Sort(Combinator):
    """The owner of the drain owns all of it, the files too."""

    def __init__(
        self, source: FlowBase[Any], key: Callable[[Any], Any] | None, reverse: bool, capacity: int, folder: Folder
    ) -> None:
        super().__init__()
        self.source = source
        self.key = key
        self.reverse = reverse
        self.capacity = capacity
        self.folder = folder
        self.portion = max(1, min(PORTION, capacity // RUNS))
        self.kept: list[Any] = []  # elements, or pairs of a key and an element
        self.levels: list[list[_Run]] = []  # runs, by how often they were merged; the oldest are in the last level
        self.readers: list[_Reader] = []  # of the last merge
        self.given: Any = END  # what the merge has given last, and will replace when it is resumed
        self.left = 0  # how many elements have not gone on
        self.order: Callable[[Any], Any] | None = None if key is None else itemgetter(0)

    def elements(self) -> Elements:
        inner = self.inner(self.source, WAITING)
        begun = False
        while True:
            begun = begun or self.drain.demanded
            element = inner.next_signal() if begun else inner.peek_end()
            if element is END:
                break
            if element is PENDING:
                yield PENDING
                continue
            self.kept.append(element if self.key is None else (self.call(self.key, element), element))
            self.left += 1
            if len(self.kept) >= self.capacity:
                self._spill()
        self._sort_kept()
        self.readers = [*map(_Reader, self._runs()), _Reader(_taken(self.kept))]
        merged = self._merge(self.readers)
        while self.left:
            yield from self.demand()
            self.given = END
            self.given = self.call(next, merged)
            self.left -= 1
            yield self._element(self.given)

    def _element(self, item: Any) -> Any:
        return item if self.key is None else item[1]

    def _sort_kept(self) -> None:
        self.call(lambda: self.kept.sort(key=self.order, reverse=self.reverse))

    def _runs(self) -> list[_Run]:
        """The runs, the oldest first: so equal elements keep their order."""
        return [run for level in reversed(self.levels) for run in level]

    def _merge(self, runs: Sequence[Iterable[Any]]) -> Iterator[Any]:
        return iter(heapq.merge(*runs, key=self.order, reverse=self.reverse))

    def _spill(self) -> None:
        """Write the elements in memory into a run, and merge runs where there are many."""
        self._sort_kept()
        self._add(0, self._written(iter(self.kept)))
        self.kept.clear()
        for number, level in enumerate(self.levels):
            if len(level) < RUNS:
                return
            self._add(number + 1, self.call(_Run, self._merge(level), self.portion, self.folder))
            for run in level:
                run.close()
            level.clear()

    def _written(self, items: Iterator[Any]) -> _Run:
        try:
            return self.call(_Run, items, self.portion, self.folder)  # type: ignore[no-any-return]
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            message = (
                f"{self.title}: {self.capacity} elements are in memory, and can't be pickled to the disk ({error}):"
                " raise capacity, or sort what can be pickled"
            )
            raise self.fault(caused(TypeError(message), error)) from error

    def _add(self, level: int, run: _Run) -> None:
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(run)

    def closed(self) -> None:
        runs = self._runs()
        try:
            if self.left:
                for item in self._left() if self.readers else chain(*runs, self.kept):
                    self.discard(self._element(item))
        finally:
            self.levels, self.kept, self.readers, self.given = [], [], [], END
            each([run.close for run in runs])

    def _left(self) -> Iterator[Any]:
        """The items that the readers have, but for the one that has gone on."""
        for reader in self.readers:
            if reader.head is self.given:
                self.given = END  # once: other readers may have the same object
            elif reader.head is not NOTHING:
                yield reader.head
            yield from reader.items


def _taken(items: list[Any]) -> Iterator[Any]:
    """Items in their order, each of which is released when it is taken."""
    items.reverse()
    while items:
        yield items.pop()
