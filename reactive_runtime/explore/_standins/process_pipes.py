"""Stand-ins for the pipes and queues of `multiprocessing`.

A pipe holds 64 kB. A process that writes to a full one waits until enough is read. `Queue.put` hands the element to a
thread of its process, the *feeder*, which pickles it and writes it to the pipe: other processes see it later, and a
process waits at its end until its feeder is done.
"""

from __future__ import annotations

import queue
import sys
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, NoReturn, Self

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Aborted, Task
from reactive_runtime.explore._standins import conditions, instrumented
from reactive_runtime.explore._standins.instrumented import Location
from reactive_runtime.explore._standins.process_world import Process, Shared, dumped, loaded, world

__all__ = ["Connection", "JoinableQueue", "Pipe", "Queue", "SimpleQueue", "looked"]

CAPACITY: Final = 65_536
"""Bytes that a pipe holds, as on Linux."""


def entered(item: Location, what: str, writes: bool = True) -> tuple[Scheduler, Task] | None:
    """A point of choice; None outside of a run, and while an invariant looks."""
    me = instrumented.caller()
    if me is None:
        return None
    scheduler = instrumented.running()
    if scheduler.aborting:
        raise Aborted
    instrumented.point(scheduler, me, item, what, writes)
    return scheduler, me


def looked(item: Location, what: str, frame: FrameType) -> bool:
    """A point of choice, at which a thread only looks. False outside of a run."""
    here = entered(item, what, writes=False)
    if here is None:
        return False
    instrumented.met(*here, item, writes=False)
    here[0].only_looked(here[1], frame)
    return True


def changed(scheduler: Scheduler, me: Task, item: Location) -> None:
    """`me` has changed what it has come to."""
    instrumented.met(scheduler, me, item)
    instrumented.left(scheduler, me, item)
    me.acts += 1


class Waited(Location):
    """A location at which threads wait for a change."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Task] = []

    def wait(self, scheduler: Scheduler, me: Task, what: str, deadline: float | None = None) -> bool:
        """Wait for the next change. False: the time is over."""
        if scheduler.tracking:
            scheduler.note(me, self, False)
        self.waiting.append(me)
        me.location, me.writes, me.what = self, True, what
        scheduler.wait(me, deadline)
        if me in self.waiting:
            self.waiting.remove(me)
        return not me.timed_out

    def wake(self, scheduler: Scheduler) -> None:
        """All that wait look again."""
        for task in self.waiting:
            scheduler.wake(task)
        self.waiting.clear()


class Channel(Waited):
    """One direction of a pipe."""

    __slots__ = ("held", "items", "readers", "writers")

    def __init__(self) -> None:
        super().__init__()
        self.items: deque[bytes] = deque()
        self.held: int = 0  # bytes
        self.readers: int = 0  # ends that are open, in all processes
        self.writers: int = 0

    def write(self, data: bytes, what: str = "send", pickled: Callable[[], bytes] | None = None) -> None:
        """Write, and wait while the pipe is full. `pickled` gives the data when the turn has come."""
        here = entered(self, what)
        if here is None:
            self.items.append(data if pickled is None else pickled())
            return
        scheduler, me = here
        if not self.readers:
            instrumented.met(scheduler, me, self)
            raise BrokenPipeError(32, "Broken pipe")
        data = data if pickled is None else pickled()
        self.items.append(data)
        self.held += len(data)
        changed(scheduler, me, self)
        self.wake(scheduler)
        while self.held > CAPACITY and self.readers:
            self.wait(scheduler, me, "full pipe")
            instrumented.met(scheduler, me, self)

    def take(self, here: tuple[Scheduler, Task] | None) -> bytes:
        """The next element, which is there."""
        data = self.items.popleft()
        self.held = max(0, self.held - len(data))
        if here is not None:
            changed(*here, self)
            self.wake(here[0])
        return data

    def read(self) -> bytes:
        """Wait for the next element, and take it; EOFError if no process can write any more."""
        here = entered(self, "receive")
        while not self.items:
            if here is None:
                raise RuntimeError("no process can wait here: this is outside of a run")
            if not self.writers:
                instrumented.met(*here, self)
                raise EOFError
            self.wait(*here, "receive")
        return self.take(here)


# -- pipes ----------------------------------------------------------------------------------------------------


class Connection(Shared):
    """Stands in for `multiprocessing.connection.Connection`: one end of a pipe, as one process has it."""

    travels: Final = True

    def __init__(self, reads: Channel | None, writes: Channel | None, process: Process | None) -> None:
        self._reads = reads
        self._writes = writes
        self._open = True
        self._process: Process | None = None  # None: it is on its way
        if reads is not None:
            reads.readers += 1
        if writes is not None:
            writes.writers += 1
        if process is not None:
            self.arrived(process)

    def handed(self, process: Process | None) -> Connection:
        """An end of its own for another process."""
        return Connection(self._reads, self._writes, process)

    def arrived(self, process: Process) -> None:
        """It is among what `process` has open."""
        if self._process is None:
            self._process = process
            process.leaving[id(self)] = self._left

    def _left(self, scheduler: Scheduler, me: Task) -> None:
        if not self._open:
            return
        self._open = False
        for channel in (self._reads, self._writes):
            if channel is not None:
                if channel is self._reads:
                    channel.readers -= 1
                else:
                    channel.writers -= 1
                changed(scheduler, me, channel)
                channel.wake(scheduler)

    def _end(self, channel: Channel | None, what: str) -> Channel:
        if not self._open:
            raise OSError("handle is closed")
        if channel is None:
            raise OSError(f"connection is {what}-only")
        return channel

    @property
    def closed(self) -> bool:
        """Whether this process has closed it."""
        return not self._open

    @property
    def readable(self) -> bool:
        """Whether it can receive."""
        return self._reads is not None

    @property
    def writable(self) -> bool:
        """Whether it can send."""
        return self._writes is not None

    def fileno(self) -> NoReturn:
        """Refused."""
        raise ExploreError("Connection.fileno is not modelled: explored pipes have no descriptor")

    def send(self, obj: Any) -> None:
        """As `Connection.send`: a point of choice, and a wait while the pipe is full."""
        self._end(self._writes, "read").write(dumped(obj, world()))

    def send_bytes(self, buf: Any, offset: int = 0, size: int | None = None) -> None:
        """As `Connection.send_bytes`."""
        data = bytes(memoryview(buf).cast("B"))
        self._end(self._writes, "read").write(data[offset : None if size is None else offset + size])

    def recv(self) -> Any:
        """As `Connection.recv`: a point of choice, and a wait."""
        return loaded(self._end(self._reads, "write").read(), world(), world().inside)

    def recv_bytes(self, maxlength: int | None = None) -> bytes:
        """As `Connection.recv_bytes`."""
        data = self._end(self._reads, "write").read()
        if maxlength is not None and len(data) > maxlength:
            raise OSError("got more bytes than maxlength")
        return data

    def poll(self, timeout: float | None = 0.0) -> bool:
        """As `Connection.poll`, in virtual time."""
        channel = self._end(self._reads, "write")
        here = entered(channel, "poll", writes=False)
        if here is not None:
            scheduler, me = here
            instrumented.met(scheduler, me, channel, writes=False)
            deadline = None if timeout is None else scheduler.clock + max(0.0, timeout)
            if timeout == 0:
                scheduler.only_looked(me, sys._getframe(1))
            while timeout != 0 and not channel.items and channel.writers:
                if not channel.wait(scheduler, me, "poll", deadline):
                    break
                instrumented.met(scheduler, me, channel, writes=False)
        return bool(channel.items) or not channel.writers

    def close(self) -> None:
        """As `Connection.close`: a point of choice."""
        channel = self._reads or self._writes
        here = entered(channel, "close") if self._open and channel is not None else None
        if here is not None:
            if self._process is not None:
                self._process.leaving.pop(id(self), None)
            self._left(*here)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def Pipe(duplex: bool = True) -> tuple[Connection, Connection]:  # noqa: N802
    """Stands in for `multiprocessing.Pipe`."""
    here, there = world().inside, Channel()
    if duplex:
        back = Channel()
        return Connection(back, there, here), Connection(there, back, here)
    return Connection(there, None, here), Connection(None, there, here)


# -- queues ---------------------------------------------------------------------------------------------------


def _channel() -> Channel:
    """That of a queue, whose ends all processes have that have the queue."""
    channel = Channel()
    channel.readers = channel.writers = 1
    return channel


class SimpleQueue(Shared):
    """Stands in for `multiprocessing.SimpleQueue`: a pipe, which one process at a time reads."""

    def __init__(self) -> None:
        self._channel = _channel()
        self._reader: Task | None = None  # the thread that waits for an element, and keeps others from it

    def _next(self, block: bool, timeout: float | None) -> bytes:
        channel = self._channel
        here = entered(channel, "get")
        if here is None:
            if not channel.items:
                raise queue.Empty
            return channel.take(None)
        scheduler, me = here
        deadline = None if timeout is None else scheduler.clock + max(0.0, timeout)
        while self._reader is not None:  # also a process that was killed while it waited: its lock stays
            self._wait(scheduler, me, block, deadline)
        while not channel.items:
            self._reader = me
            try:
                self._wait(scheduler, me, block, deadline)
            finally:
                if not scheduler.aborting:
                    self._reader = None
        return channel.take(here)

    def _wait(self, scheduler: Scheduler, me: Task, block: bool, deadline: float | None) -> None:
        channel = self._channel
        over = not block or (deadline is not None and deadline <= scheduler.clock)
        if over or not channel.wait(scheduler, me, "get", deadline):
            changed(scheduler, me, channel)
            self._reader = None if self._reader is me else self._reader
            channel.wake(scheduler)
            if not block:
                scheduler.only_looked(me, sys._getframe(3))
            raise queue.Empty
        instrumented.met(scheduler, me, channel)

    def get(self) -> Any:
        """As `SimpleQueue.get`."""
        return loaded(self._next(True, None), world(), world().inside)

    def put(self, obj: Any) -> None:
        """As `SimpleQueue.put`: it waits while the pipe is full."""
        self._channel.write(dumped(obj, world()), "put")

    def empty(self) -> bool:
        """As `SimpleQueue.empty`: a point of choice."""
        looked(self._channel, "empty", sys._getframe(1))
        return not self._channel.items

    def close(self) -> None:
        """Does nothing: other processes have it too."""


class _Buffer(Location):
    """The elements that the feeder of one process has still to write. The holder of the turn owns it."""

    __slots__ = ("cancelled", "closed", "feeder", "items", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.items: deque[Any] = deque()
        self.feeder: Task | None = None
        self.waiting: list[Task] = []  # the feeder, for elements; or a thread, for the feeder to be done
        self.closed = False
        self.cancelled = False


class Queue(SimpleQueue):
    """Stands in for `multiprocessing.Queue`."""

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__()
        self._maxsize = maxsize
        self._free = conditions.Semaphore(maxsize, bound=maxsize) if maxsize > 0 else None
        self._buffers: dict[Process, _Buffer] = {}
        self._size = 0

    def _buffer(self) -> _Buffer:
        here = world().inside
        buffer = self._buffers.get(here)
        if buffer is None:
            buffer = self._buffers[here] = _Buffer()
            here.exits.append(lambda: self._flush(buffer))
        return buffer

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """As `Queue.put`: the feeder gets it."""
        buffer = self._buffer()
        if buffer.closed:
            raise ValueError("Queue is closed")
        if self._free is not None and not self._free.acquire(block, None if not block else timeout):
            raise queue.Full
        here = entered(buffer, "put") if self._free is None else _now()
        self._size += 1
        self._count()
        if here is None:
            self._channel.items.append(dumped(obj, world()))
            return
        scheduler, me = here
        buffer.items.append(obj)
        changed(scheduler, me, buffer)
        if buffer.feeder is None:
            title = f"feeder of {world().inside.title}"
            buffer.feeder = scheduler.spawn(title, lambda: self._feed(buffer), daemon=True)
        for task in buffer.waiting:
            scheduler.wake(task)
        buffer.waiting.clear()

    def _count(self) -> None:
        """The number of elements changes."""

    def _feed(self, buffer: _Buffer) -> None:
        """The life of a feeder."""
        here = world()
        scheduler = instrumented.running()
        me = scheduler.current
        while True:
            while not buffer.items:
                buffer.waiting.append(me)
                me.location, me.writes, me.what = buffer, True, "idle"
                scheduler.wait(me)
            self._channel.write(b"", "feed", lambda: dumped(buffer.items[0], here))
            buffer.items.popleft()
            changed(scheduler, me, buffer)
            for task in buffer.waiting:
                scheduler.wake(task)
            buffer.waiting.clear()

    def _flush(self, buffer: _Buffer) -> None:
        """Wait until the feeder has written all."""
        here = _now()
        while here is not None and buffer.items and not buffer.cancelled:
            scheduler, me = here
            buffer.waiting.append(me)
            me.location, me.writes, me.what = buffer, False, "wait for the feeder"
            scheduler.wait(me)
        if here is not None:
            instrumented.met(*here, buffer)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """As `Queue.get`, in virtual time."""
        data = self._next(block, timeout)
        self._size -= 1
        if self._free is not None:
            self._free.release()
        return loaded(data, world(), world().inside)

    def put_nowait(self, obj: Any) -> None:
        """As `Queue.put_nowait`."""
        self.put(obj, False)

    def get_nowait(self) -> Any:
        """As `Queue.get_nowait`."""
        return self.get(False)

    def qsize(self) -> int:
        """As `Queue.qsize`: a point of choice, of which each step of another process may change the result."""
        me = instrumented.caller()
        if me is not None and not instrumented.running().aborting:
            scheduler = instrumented.running()
            instrumented.point(scheduler, me, None, "qsize", writes=False)
            if scheduler.tracking:
                me.chain = hash((me.chain, *(task.chain for task in scheduler.threads if task is not me)))
            if scheduler.observer is not None:
                scheduler.observer.concerns_all()
            scheduler.only_looked(me, sys._getframe(1))
        return self._size

    def full(self) -> bool:
        """As `Queue.full`: a point of choice."""
        if self._free is None:
            return False
        looked(self._free, "full", sys._getframe(1))
        return not self._free.free

    def close(self) -> None:
        """As `Queue.close`: this process puts no more."""
        self._buffer().closed = True

    def join_thread(self) -> None:
        """As `Queue.join_thread`: wait until the feeder has written all."""
        self._flush(self._buffer())

    def cancel_join_thread(self) -> None:
        """As `Queue.cancel_join_thread`: the process does not wait for its feeder at its end."""
        self._buffer().cancelled = True


class JoinableQueue(Queue):
    """Stands in for `multiprocessing.JoinableQueue`."""

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(maxsize)
        self._unfinished = 0
        self._joining = conditions.Condition(instrumented.Lock())

    def _count(self) -> None:
        with self._joining:
            self._unfinished += 1

    def task_done(self) -> None:
        """As `JoinableQueue.task_done`."""
        with self._joining:
            if not self._unfinished:
                raise ValueError("task_done() called too many times")
            self._unfinished -= 1
            if not self._unfinished:
                self._joining.notify_all()

    def join(self) -> None:
        """As `JoinableQueue.join`."""
        with self._joining:
            if self._unfinished:
                self._joining.wait()


def _now() -> tuple[Scheduler, Task] | None:
    """The thread that has the turn, in a run."""
    me = instrumented.caller()
    return None if me is None or instrumented.running().aborting else (instrumented.running(), me)
