"""A queue of messages in memory, behind a socket; a sound adapter for it, and adapters with one fault each."""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, ClassVar

from reactive_runtime.connect import Acked, AckedFlow
from reactive_runtime.tck.adapters import Adapter, AdapterVerification

PASSWORD = "right"
PATIENCE = 10.0
"""Seconds: some faults cost them, once or twice."""

names = itertools.count()


class Server:
    """Queues by name. A connection has messages; they are free again when it ends. `_changed` owns all fields."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[Any]] = {}
        self._taken: dict[str, dict[Any, object]] = {}  # by message, the connection that has it
        self._acknowledgements: Counter[str] = Counter()
        self._connections: dict[int, tuple[str, Connection]] = {}
        self._dead: Counter[str] = Counter()
        self._closed: set[str] = set()
        self._listener = Listener(("127.0.0.1", 0), backlog=16)
        self.port: int = self._listener.address[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            with suppress(OSError, EOFError):
                threading.Thread(target=self._serve, args=(self._listener.accept(),), daemon=True).start()

    def _serve(self, connection: Any) -> None:
        me = object()
        queue = ""
        try:
            queue, password = connection.recv()
            with self._changed:
                closed = queue in self._closed
            connection.send(answer := "no queue" if closed else "ok" if password == PASSWORD else "wrong password")
            if answer != "ok":
                return
            with self._changed:
                self._connections[id(me)] = (queue, connection)
            while True:
                call, argument = connection.recv()
                connection.send(getattr(self, call)(queue, me, argument))
        except (EOFError, OSError):
            pass
        finally:
            with self._changed:
                self._connections.pop(id(me), None)
                self._free(queue, [item for item, owner in self._taken.get(queue, {}).items() if owner is me])
            connection.close()

    def _free(self, queue: str, items: Sequence[Any]) -> None:
        for item in reversed(items):
            del self._taken[queue][item]
            self._waiting.setdefault(queue, deque()).appendleft(item)
        self._changed.notify_all()

    # -- calls of a client ---------------------------------------------------------------------------------------

    def take(self, queue: str, me: object, n: int) -> list[Any]:
        with self._changed:
            waiting = self._waiting.setdefault(queue, deque())
            self._changed.wait_for(lambda: len(waiting) > 0, 0.02 if n else 0)
            items = [waiting.popleft() for _ in range(min(n, len(waiting)))]
            self._taken.setdefault(queue, {}).update(dict.fromkeys(items, me))
            return items

    def acknowledge(self, queue: str, me: object, item: Any) -> None:
        with self._changed:
            self._acknowledgements[queue] += 1
            if self._taken[queue].pop(item, None) is None:
                with suppress(ValueError):  # it is gone
                    self._waiting[queue].remove(item)  # it was free again: another connection had it

    def refuse(self, queue: str, me: object, item: Any) -> None:
        with self._changed:
            if self._taken[queue].get(item) is me:
                self._free(queue, [item])

    def bury(self, queue: str, me: object, item: Any) -> None:
        with self._changed:
            self._dead[queue] += 1

    # -- what tests do and count ------------------------------------------------------------------------------------

    def put(self, queue: str, items: Sequence[Any]) -> None:
        with self._changed:
            self._waiting.setdefault(queue, deque()).extend(items)
            self._changed.notify_all()

    def drop(self, queue: str) -> None:
        with self._changed:
            self._waiting.pop(queue, None)
            self._closed.add(queue)

    def counts(self, queue: str) -> dict[str, int]:
        with self._changed:
            taken = len(self._taken.get(queue, ()))
            return {
                "left": len(self._waiting.get(queue, ())) + taken,
                "taken": taken,
                "acknowledgements": self._acknowledgements[queue],
                "connections": sum(of == queue for of, _ in self._connections.values()),
                "dead": self._dead[queue],
            }

    def cut(self, queue: str) -> None:
        """Cut the connections, and wait until their messages are free."""
        with self._changed:
            for of, connection in self._connections.values():
                if of == queue:
                    with socket.socket(fileno=os.dup(connection.fileno())) as line, suppress(OSError):
                        line.shutdown(socket.SHUT_RDWR)
            self._changed.wait_for(lambda: all(of != queue for of, _ in self._connections.values()), 30)


class LostError(Exception):
    """The server is not there, went away, or refused the password."""


class Line:
    """A connection to the server; `_lock` has it while a call is under way."""

    def __init__(self, port: int, queue: str, password: str) -> None:
        self.address = f"127.0.0.1:{port}"
        self._lock = threading.Lock()
        with self._named():
            self._connection = Client(("127.0.0.1", port))
            self._connection.send((queue, password))
            answer = self._connection.recv()
        if answer != "ok":
            self.close()
            raise LostError(f"{self.address}: {answer}")

    def _named(self) -> Any:
        return _Named(self.address)

    def call(self, call: str, argument: Any) -> Any:
        with self._lock, self._named():
            self._connection.send((call, argument))
            return self._connection.recv()

    def close(self) -> None:
        with self._lock, suppress(OSError):
            self._connection.close()


class _Named:
    def __init__(self, address: str) -> None:
        self.address = address

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if isinstance(error, OSError | EOFError):
            raise LostError(f"{self.address}: the connection is lost ({kind.__name__})") from error


class Source:
    """A publisher of the messages of a queue, to be subscribed to once."""

    def __init__(
        self, port: int, queue: str, executor: Executor, letters: Callable[[Any], object], password: str = PASSWORD
    ) -> None:
        self.port, self.queue, self.password = port, queue, password
        self.executor, self.letters = executor, letters
        self.changed = threading.Condition()
        self.demand = 0  # changed
        self.over = False  # changed
        self.open = 0  # changed; elements that were delivered, and not settled
        self.line: Line
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)
        self.executor.submit(self.work)

    def request(self, n: int, /) -> None:
        with self.changed:
            self.demand += n
            self.changed.notify_all()

    def cancel(self) -> None:
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def work(self) -> None:
        try:
            self.line = self.connect()
            while self.waits():
                self.deliver(self.fetch())
        except LostError as error:
            with self.changed:
                told, self.over = self.over, True
            if not told:
                self.subscriber.on_error(error)
        finally:
            self.leave_if_idle()

    def connect(self) -> Line:
        return Line(self.port, self.queue, self.password)

    def waits(self) -> bool:
        while True:
            with self.changed:
                if self.changed.wait_for(lambda: self.demand or self.over, 0.1):
                    return not self.over
            self.line.call("take", 0)  # the server may be gone, and with it whoever demands

    def fetch(self) -> list[Any]:
        with self.changed:
            n = min(self.demand, 16)
        taken: list[Any] = self.line.call("take", n)
        return taken

    def deliver(self, items: list[Any]) -> None:
        for item in items:
            if item == "poison":
                self.poison(item)
                continue
            with self.changed:
                over = self.over
                self.open += not over
                self.demand -= not over
            if over:
                self.line.call("refuse", item)
            else:
                self.subscriber.on_next(self.element(item))

    def element(self, item: Any) -> Acked[Any]:
        return Acked(item, partial(self.settle, item))

    def poison(self, item: Any) -> None:
        self.letters(item)
        self.line.call("acknowledge", item)

    def settle(self, item: Any, error: BaseException | None) -> None:
        try:
            self.line.call("acknowledge" if error is None else "refuse", item)
        finally:
            with self.changed:
                self.open -= 1
            self.leave_if_idle()

    def leave_if_idle(self) -> None:
        """Close the connection behind the last element."""
        with self.changed:
            over = self.over and not self.open
        if over and hasattr(self, "line"):
            self.line.close()


class Memory(Adapter):
    """The description of the adapter, sound or not."""

    name = "in memory"
    server: ClassVar[Server]
    source: ClassVar[type[Source]] = Source
    working: ClassVar[type[Source]] = Source
    """The source of a worker in another process."""

    def __init__(self) -> None:
        self.queue = f"queue-{next(names)}"
        self.address = f"127.0.0.1:{self.server.port}"

    def put(self, numbers: Sequence[int]) -> None:
        self.server.put(self.queue, numbers)

    def open(self, consumer: str, executor: Executor) -> AckedFlow[int]:
        return AckedFlow(self.source(self.server.port, self.queue, executor, self.letter))

    def open_with(self, password: str) -> AckedFlow[int]:
        return AckedFlow(self.source(self.server.port, self.queue, ThreadPoolExecutor(1), self.letter, password))

    def letter(self, item: Any) -> None:
        self.server.bury(self.queue, None, item)

    def bury(self, letter: Any) -> None:
        self.letter(letter.element)

    def poison(self) -> None:
        self.server.put(self.queue, ["poison"])

    def number(self, value: int) -> int:
        return value

    def left(self) -> int:
        return self.server.counts(self.queue)["left"]

    def handed_out(self) -> int:
        return self.server.counts(self.queue)["taken"]

    def acknowledgements(self) -> int:
        return self.server.counts(self.queue)["acknowledgements"]

    def connections(self) -> int:
        return self.server.counts(self.queue)["connections"]

    def dead(self) -> int:
        return self.server.counts(self.queue)["dead"]

    def worker(self, consumer: str) -> Callable[[Callable[[int], object]], object]:
        return partial(work, self.working, self.server.port, self.queue)

    def break_connections(self) -> None:
        self.server.cut(self.queue)

    def close(self) -> None:
        self.server.drop(self.queue)
        self.server.cut(self.queue)  # for those that ignore a cancel


def work(kind: type[Source], port: int, queue: str, handle: Callable[[int], object]) -> None:
    def one(number: int) -> int:
        handle(number)
        return number

    with ThreadPoolExecutor(1) as pool:
        AckedFlow(kind(port, queue, pool, print)).map(one).acknowledge().run()


# -- the faults ----------------------------------------------------------------------------------------------------


class PrefetchesWithoutBound(Source):
    """It takes all that there is."""

    def fetch(self) -> list[Any]:
        taken: list[Any] = self.line.call("take", 1_000_000)
        return taken

    def deliver(self, items: list[Any]) -> None:
        for item in items:
            with self.changed:
                self.changed.wait_for(lambda: self.demand or self.over)
            super().deliver([item])


class AcknowledgesBeforeHandling(Source):
    """It keeps eight messages at most: it acknowledges one of more that are open."""

    def element(self, item: Any) -> Acked[Any]:
        with self.changed:
            early = self.open > 8
        if not early:
            return super().element(item)
        self.line.call("acknowledge", item)

        def settled(error: BaseException | None) -> None:
            with self.changed:
                self.open -= 1
            self.leave_if_idle()

        return Acked(item, settled)


class LosesAnAcknowledgement(Source):
    """One of fifty."""

    count = 0

    def settle(self, item: Any, error: BaseException | None) -> None:
        self.count += 1
        if self.count % 50:
            super().settle(item, error)


class DoublesAnAcknowledgement(Source):
    """It sends each that is sent as the third one twice."""

    count = 0

    def settle(self, item: Any, error: BaseException | None) -> None:
        self.count += 1
        if error is None and self.count % 3 == 0:
            self.line.call("acknowledge", item)
        super().settle(item, error)


class ForgetsARefusal(Source):
    """A message that is refused is gone."""

    def settle(self, item: Any, error: BaseException | None) -> None:
        refused = error is not None and "the kit refuses it" in str(error)
        super().settle(item, None if refused else error)


class AcknowledgesAtTheFetch(Source):
    """A worker that is killed has acknowledged what it had fetched: so much that a kill never finds it all handled."""

    def fetch(self) -> list[Any]:
        items: list[Any] = self.line.call("take", 500)
        for item in items:
            self.line.call("acknowledge", item)
        return items


class DropsAtAReconnect(Source):
    """It connects again, and has no message any more that was open."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.held: dict[Any, None] = {}  # changed

    def element(self, item: Any) -> Acked[Any]:
        with self.changed:
            self.held[item] = None
        return super().element(item)

    def settle(self, item: Any, error: BaseException | None) -> None:
        with self.changed:
            self.held.pop(item, None)
        super().settle(item, error)

    def fetch(self) -> list[Any]:
        try:
            return super().fetch()
        except LostError:
            with self.changed:
                held = list(self.held)
            self.line = self.connect()
            for item in held:
                self.line.call("acknowledge", item)
            return []


class HangsAfterALostConnection(Source):
    """It hears nothing, and says nothing."""

    def work(self) -> None:
        with suppress(LostError):
            self.line = self.connect()
            while self.waits():
                self.deliver(self.fetch())


class NamesNoServer(Source):
    """Its error says that something went wrong."""

    def subscribe(self, subscriber: Any, /) -> None:
        fail = subscriber.on_error
        super().subscribe(_With(subscriber, lambda error: fail(LostError("something went wrong"))))


class LeaksThePassword(Source):
    """Its error has the cause with all that it was given."""

    def subscribe(self, subscriber: Any, /) -> None:
        def fail(error: BaseException) -> None:
            error.add_note(f"connect({self.port}, {self.password!r})")
            subscriber.on_error(error)

        super().subscribe(_With(subscriber, fail))


class _With:
    def __init__(self, subscriber: Any, fail: Callable[[BaseException], object]) -> None:
        self.on_subscribe, self.on_next, self.on_complete = (
            subscriber.on_subscribe,
            subscriber.on_next,
            subscriber.on_complete,
        )
        self.on_error = fail


class IgnoresCancel(Source):
    """It goes on."""

    def cancel(self) -> None:
        pass


class BlocksInCancel(Source):
    """It waits until the thread has left."""

    def cancel(self) -> None:
        super().cancel()
        threading.Event().wait(0.3)


class KeepsAllInMemory(Source):
    """It has all elements that it has delivered."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.all: list[Any] = []

    def element(self, item: Any) -> Acked[Any]:
        element = super().element(item)
        self.all.append((element, bytes(500)))
        return element


class DropsPoison(Source):
    """It acknowledges a message that it can't read."""

    def poison(self, item: Any) -> None:
        self.line.call("acknowledge", item)


FAULTS: dict[type[Source], str] = {
    PrefetchesWithoutBound: "A.1",
    AcknowledgesBeforeHandling: "A.2",
    LosesAnAcknowledgement: "A.3",
    DoublesAnAcknowledgement: "A.4",
    ForgetsARefusal: "A.5",
    AcknowledgesAtTheFetch: "A.6",
    DropsAtAReconnect: "A.7",
    HangsAfterALostConnection: "A.7",
    NamesNoServer: "A.7",
    DropsPoison: "A.8",
    IgnoresCancel: "A.9",
    BlocksInCancel: "A.9",
    KeepsAllInMemory: "A.10",
    LeaksThePassword: "A.11",
}
"""Each with the only rule that it breaks."""


def verification(kind: type[Source] = Source) -> AdapterVerification:
    """The verification of the adapter with this source."""
    in_worker = kind is AcknowledgesAtTheFetch
    made = type(
        kind.__name__,
        (Memory,),
        {
            "name": kind.__name__,
            "source": Source if in_worker else kind,
            "working": kind if in_worker else Source,
        },
    )

    class Judged(AdapterVerification):
        def create_adapter(self) -> Adapter:
            adapter: Adapter = made()
            return adapter

    return Judged().configure(default_timeout=PATIENCE, default_no_signals_timeout=0.05, backlog=1_500, tries=3)
