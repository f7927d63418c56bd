"""The operators that have a connection to PostgreSQL: a source of rows, and a sink."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import Any, Protocol

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements
from reactive_runtime._core.runtime.arguments import PREFETCH
from reactive_runtime._flow import Flow
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._elements.behind import Behind, Writes
from reactive_runtime.connect._postgres.connection import Connection, PostgresError, Server, Stopped

# isort: split
import psycopg
from psycopg import sql

__all__ = ["OfServer", "Putting", "Sink", "Source", "Writing"]


class OfServer(Combinator):
    """An operator that has a connection.

    Args:
        server: The server to connect to.
    """

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        self.passed: BaseException | None = None  # the drain's owner; the error of an upstream

    def stopped(self) -> bool:
        """Whether the flow was cancelled. Any thread."""
        return bool(self.drain.stopped)

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"PostgreSQL at {self.server}"

    def served(self, connection: Connection) -> Elements:
        """The elements: runs on the connection."""
        raise NotImplementedError

    def result(self) -> Elements:
        """The elements that come when the connection is closed."""
        yield from ()

    def release(self, connection: Connection) -> None:
        """The operator has ended."""
        connection.leave()

    def elements(self) -> Elements:
        yield from self.demand()
        yield from self.home()
        try:
            connection = self.server.connect(self.stopped)
            try:
                yield from self._served(connection)
            except Exception:
                with suppress(PostgresError):  # the first error counts
                    self.release(connection)
                raise
            except BaseException:
                self.release(connection)
                raise
            self.release(connection)
        except PostgresError as error:
            if error is not self.passed:
                self.fault(error)
            raise
        except Stopped:
            while not self._over:  # it is closed: a call of closing it may have been left
                yield PENDING
        else:
            yield from self.result()

    def _served(self, connection: Connection) -> Elements:
        try:
            yield from self.served(connection)
        except psycopg.Error as error:
            if error is self.passed:
                raise
            self.server.failed(connection, "the call failed", error)


class Source(OfServer):
    """Gives the elements that a function reads from the connection.

    Args:
        server: The server to connect to.
        of: Makes an iterator of runs of elements.
    """

    def __init__(self, server: Server, of: Callable[[Connection], Generator[Iterable[Any]]]) -> None:
        super().__init__(server)
        self.of = of

    def served(self, connection: Connection) -> Elements:
        drain, runs = self.drain, self.of(connection)
        try:
            for elements in runs:
                for element in elements:
                    yield element
                    while drain.away or not drain.demanded:  # the next one may have to be fetched
                        yield from self.demand()
                        yield from self.home()
        except psycopg.Error:
            raise
        except BaseException as error:
            connection.leave()  # else a cursor would be closed, and the rest of a COPY read, by calls to the server
            with suppress(psycopg.Error, Stopped):  # what is left of a COPY ends with the connection
                runs.close()
            if isinstance(error, Exception) and not isinstance(error, PostgresError):
                self.server.fail("the call failed", error)
            raise


class _Sink(OfServer):
    """Writes the elements of a flow, and gives how many there were.

    Args:
        server: The server to connect to.
        source: The elements.
    """

    def __init__(self, server: Server, source: Flow[Any]) -> None:
        super().__init__(server)
        self.source = source
        self.written = 0  # the drain's owner

    def result(self) -> Elements:
        yield from self.demand()
        yield self.written


class Writing(Protocol):
    """Writes elements, by one thread at a time."""

    written: int

    def write(self, element: Any) -> object:
        """Write this one, now or later."""


class Sink(_Sink):
    """Writes each element on the thread that brings it.

    Args:
        server: The server to connect to.
        into: Makes the writing; its context is left when all is written, or has failed.
        source: The elements.
    """

    def __init__(
        self, server: Server, into: Callable[[Connection], AbstractContextManager[Writing]], source: Flow[Any]
    ) -> None:
        super().__init__(server, source)
        self.into = into
        self.behind: Behind | None = None  # the drain's owner; of a flow that was cancelled

    def served(self, connection: Connection) -> Elements:
        stack = ExitStack()
        writing = stack.enter_context(self.into(connection))
        behind = Behind(partial(_abandon, stack, connection))
        try:
            step = _Write(writing.write, self.server.operator, behind)
            inner = self.inner(self.source._then(step), prefetch=PREFETCH)
            while inner.next_signal() is not END:  # writes what there is
                yield PENDING
                yield from self.home()
        except GeneratorExit:
            self.behind = behind
            raise
        except BaseException as error:
            self.passed = error
            stack.__exit__(type(error), error, error.__traceback__)
            raise
        stack.close()
        self.written = writing.written

    def release(self, connection: Connection) -> None:
        """See `OfServer.release`. It waits for no other thread that writes: the last one to leave releases."""
        if self.behind is None:
            connection.leave()
        else:
            self.behind.leave()


def _abandon(stack: ExitStack, connection: Connection) -> None:
    """The flow was cancelled, and no thread writes."""
    try:
        with suppress(GeneratorExit, psycopg.Error, PostgresError, Stopped):
            cancelled = GeneratorExit()
            stack.__exit__(GeneratorExit, cancelled, None)
    finally:
        connection.leave()


class _Write(Writes):
    name = "write"

    def __init__(self, write: Callable[[Any], object], operator: str, behind: Behind) -> None:
        super().__init__(behind)
        self.write = write
        self.operator = operator

    def on_next(self, element: Any) -> None:
        try:
            self.write(element)
        except Stopped:  # the flow was cancelled, and so will be the source
            self.write = _nothing

    def __str__(self) -> str:
        return self.operator


def _nothing(element: Any) -> None:
    """The connection is no use any more."""


class Putting(_Sink):
    """Puts elements into a queue, many at a time, and commits those that there are.

    Args:
        server: The server to connect to.
        source: The elements.
        statement: Puts one in.
        adapt: Makes of an element what the client can send. None: it can as it is.
    """

    def __init__(
        self, server: Server, source: Flow[Any], statement: sql.Composed, adapt: Callable[[Any], Any] | None
    ) -> None:
        super().__init__(server, source)
        self.statement, self.adapt = statement, adapt

    def served(self, connection: Connection) -> Elements:
        inner = self.inner(self.source, prefetch=PREFETCH)
        news: object = PENDING
        while news is not END:
            found: list[Any] = []
            try:
                news = inner.next_signals(found, PREFETCH)
            except Exception as error:
                self.put(connection, found)  # those before it
                self.passed = error
                raise
            self.put(connection, found)
            if news is PENDING:
                yield PENDING
                yield from self.home()

    def put(self, connection: Connection, elements: Sequence[Any]) -> None:
        """Put these in, and commit."""
        if not elements:
            return
        try:
            with connection.cursor() as cursor:
                bodies = elements if self.adapt is None else map(self.adapt, elements)
                cursor.executemany(self.statement, [(body,) for body in bodies])
            connection.commit()
        except Exception as error:  # `adapt` may raise any
            first = f"the first is {shown(elements[0])}"
            what = f"{len(elements)} elements from index {self.written} on can't be put in, {first}"
            self.server.failed(connection, what, error)
        self.written += len(elements)
