"""Programs of processes that fail under some schedules, and a twin of each that never fails.

The processes share files, a database, or what `multiprocessing` makes.
"""

from __future__ import annotations

import atexit
import fcntl
import multiprocessing
import os
import queue
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from multiprocessing import Process
from pathlib import Path
from typing import Any

__all__ = ["OUTCOMES", "PROGRAMS", "rows"]

FOLDER = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
FILE = os.path.join(FOLDER, "file")
LOG = os.path.join(FOLDER, "log")
JOBS = os.path.join(FOLDER, "jobs.db")


class Workers:
    """A master starts two workers, and waits for them."""

    def __init__(self) -> None:
        for name in os.listdir(FOLDER):
            os.unlink(os.path.join(FOLDER, name))
        self.done = multiprocessing.Value("i", 0)

    def work(self) -> None:
        raise NotImplementedError

    def count(self) -> None:
        with self.done.get_lock():
            self.done.value += 1

    def actor_master(self) -> None:
        workers = [Process(target=self.work) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def outcome(self) -> Any:
        return self.done.value


class ClaimedTwice(Workers):
    """A job is claimed by a file whose absence is checked before it is made."""

    def work(self) -> None:
        if not os.path.exists(FILE):
            with open(FILE, "w"):
                self.count()

    def at_end(self) -> None:
        assert self.done.value == 1, f"{self.done.value} workers did the job"


class ClaimedOnce(ClaimedTwice):
    def work(self) -> None:
        try:
            os.close(os.open(FILE, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        self.count()


class MovedTwice(ClaimedTwice):
    """A job is a file; a worker reads it, and deletes it when it is done."""

    def __init__(self) -> None:
        super().__init__()
        Path(FILE).write_text("job")

    def work(self) -> None:
        try:
            Path(FILE).read_text()
        except FileNotFoundError:
            return
        self.count()
        Path(FILE).unlink(missing_ok=True)


class MovedOnce(MovedTwice):
    def work(self) -> None:
        try:
            os.rename(FILE, f"{FILE}.{os.getpid()}")
        except FileNotFoundError:
            return
        self.count()


class StalePidFile(ClaimedTwice):
    """Each worker takes over the PID file of a process that is dead."""

    def __init__(self) -> None:
        super().__init__()
        Path(FILE).write_text("6000000")

    def work(self) -> None:
        try:
            os.kill(int(Path(FILE).read_text()), 0)
        except ProcessLookupError:
            Path(FILE).write_text(str(os.getpid()))
            self.count()


class LockedPidFile(StalePidFile):
    def work(self) -> None:
        with open(FILE, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if file.read() == "6000000":
                file.seek(0)
                file.write(str(os.getpid()))
                self.count()


class UnlockedTooEarly(Workers):
    """The lock is released while what was written is in the buffer."""

    def __init__(self) -> None:
        super().__init__()
        Path(FILE).write_text("0")

    def before_unlocking(self, file: Any) -> None:
        pass

    def work(self) -> None:
        with open(FILE, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            number = int(file.read())
            file.seek(0)
            file.write(str(number + 1))
            self.before_unlocking(file)
            fcntl.flock(file, fcntl.LOCK_UN)

    def outcome(self) -> Any:
        return Path(FILE).read_text()

    def at_end(self) -> None:
        assert Path(FILE).read_text() == "2", "an update is lost"


class UnlockedAfterFlush(UnlockedTooEarly):
    def before_unlocking(self, file: Any) -> None:
        file.flush()


class LockLostByClose(UnlockedTooEarly):
    """A process loses its locks of `lockf` when it closes any descriptor of the file."""

    def work(self) -> None:
        with open(FILE, "r+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            number = int(Path(FILE).read_text())
            file.write(str(number + 1))


class LockKeptByFlock(LockLostByClose):
    def work(self) -> None:
        with open(FILE, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            number = int(Path(FILE).read_text())
            file.write(str(number + 1))


def rows(text: str) -> list[Any]:
    connection = sqlite3.connect(JOBS)
    found = connection.execute(text).fetchall()
    connection.close()
    return found


class LostUpdate(Workers):
    """A worker reads a row, and writes it in another transaction."""

    begin = ""

    def __init__(self) -> None:
        super().__init__()
        connection = sqlite3.connect(JOBS)
        connection.executescript("create table counter (n); insert into counter values (0)")
        connection.close()

    def work(self) -> None:
        with closing(sqlite3.connect(JOBS, isolation_level=None)) as connection:
            if self.begin:
                connection.execute(self.begin)
            (number,) = connection.execute("select n from counter").fetchone()
            connection.execute("update counter set n = ?", (number + 1,))
            if self.begin:
                connection.execute("commit")

    def outcome(self) -> Any:
        return rows("select n from counter")

    def at_end(self) -> None:
        assert rows("select n from counter") == [(2,)], "an update is lost"


class ImmediateUpdate(LostUpdate):
    begin = "begin immediate"


class UpgradeOfBoth(LostUpdate):
    """Two transactions read, and then neither can write."""

    begin = "begin deferred"


class UpgradeRepeated(UpgradeOfBoth):
    def work(self) -> None:
        try:
            super().work()
        except sqlite3.OperationalError:
            self.begin = "begin immediate"
            super().work()


class ReadsOfBoth(LostUpdate):
    """The same in the mode WAL: what was read is not the newest any more."""

    begin = "begin deferred"

    def __init__(self) -> None:
        Workers.__init__(self)
        connection = sqlite3.connect(JOBS)
        connection.executescript("pragma journal_mode = wal; create table counter (n); insert into counter values (0)")
        connection.close()


class ImmediateInWAL(ReadsOfBoth):
    begin = "begin immediate"


class EmptyThenGet(Workers):
    """A worker that finds the queue not empty may find it empty when it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: Any = multiprocessing.Queue()
        self.jobs.put("job")
        self.jobs.join_thread()

    def work(self) -> None:
        if not self.jobs.empty():
            self.jobs.get()


class GetOrEmpty(EmptyThenGet):
    def work(self) -> None:
        with suppress(queue.Empty):
            self.jobs.get_nowait()


class EmptyBehindPut(Workers):
    """`put` returns before the element is in the pipe."""

    def work(self) -> None:
        pass

    def actor_master(self) -> None:
        jobs: Any = multiprocessing.Queue()
        jobs.put("job")
        self.look(jobs)

    def look(self, jobs: Any) -> None:
        assert not jobs.empty(), "no job"


class GetBehindPut(EmptyBehindPut):
    def look(self, jobs: Any) -> None:
        assert jobs.get() == "job"


class WithoutGetLock(Workers):
    """`Value += 1` is a load and a store."""

    def work(self) -> None:
        self.done.value += 1

    def at_end(self) -> None:
        assert self.done.value == 2, f"two were added, and the value is {self.done.value}"


class WithGetLock(WithoutGetLock):
    def work(self) -> None:
        self.count()


class KilledWithLock(Workers):
    """A worker that is killed may hold the lock, which then stays locked."""

    def __init__(self) -> None:
        super().__init__()
        self.lock: Any = multiprocessing.Lock()

    def work(self) -> None:
        with self.lock:
            self.count()

    def end(self, worker: Process) -> None:
        worker.terminate()

    def actor_master(self) -> None:
        worker = Process(target=self.work)
        worker.start()
        self.end(worker)
        worker.join()
        with self.lock:
            pass


class JoinedWithLock(KilledWithLock):
    def end(self, worker: Process) -> None:
        pass


class KilledWithFlock(KilledWithLock):
    """The twin of which the system releases the lock."""

    def work(self) -> None:
        with open(LOG, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)

    def actor_master(self) -> None:
        worker = Process(target=self.work)
        worker.start()
        self.end(worker)
        worker.join()
        self.work()


class JoinedBeforeRead(Workers):
    """A worker ends when its queue is read, and the master reads when the worker has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.results: Any = multiprocessing.Queue()

    def work(self) -> None:
        self.results.put(bytes(100_000))

    def actor_master(self) -> None:
        worker = Process(target=self.work)
        worker.start()
        self.end(worker)

    def end(self, worker: Process) -> None:
        worker.join()
        self.results.get()


class ReadBeforeJoined(JoinedBeforeRead):
    def end(self, worker: Process) -> None:
        self.results.get()
        worker.join()


class EndLeftOpen(Workers):
    """A worker waits for the end of what only itself could still send."""

    closes = False

    def read(self, reader: Any, writer: Any) -> None:
        if self.closes:
            writer.close()
        try:
            while True:
                reader.recv()
        except EOFError:
            pass

    def actor_master(self) -> None:
        reader, writer = multiprocessing.Pipe(duplex=False)
        worker = Process(target=self.read, args=(reader, writer))
        worker.start()
        writer.send("job")
        writer.close()
        worker.join()


class EndClosed(EndLeftOpen):
    closes = True


class PutAndChanged(Workers):
    """A feeder pickles a batch when it writes it, and the master has cleared it."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: Any = multiprocessing.Queue()

    def kept(self, batch: list[int]) -> list[int]:
        return batch

    def actor_master(self) -> None:
        batch = [1]
        self.batches.put(self.kept(batch))
        batch.clear()
        assert self.batches.get() == [1]


class PutAndKept(PutAndChanged):
    def kept(self, batch: list[int]) -> list[int]:
        return list(batch)


finished: list[int] = []
lock_of_all = multiprocessing.Lock()


class NotedInGlobals(Workers):
    """A worker notes in a list of its own that it is done."""

    def __init__(self) -> None:
        super().__init__()
        finished.clear()
        self.noted: Any = multiprocessing.SimpleQueue()

    def work(self) -> None:
        with lock_of_all:
            finished.append(os.getpid())
        self.noted.put(len(finished))

    def at_end(self) -> None:
        assert len(finished) == 2, f"{len(finished)} are done"


class NotedInClass(NotedInGlobals):
    """The same, in an attribute of the class."""

    count_of_all = 0

    def work(self) -> None:
        NotedInClass.count_of_all += 1
        self.noted.put(NotedInClass.count_of_all)

    def at_end(self) -> None:
        assert [self.noted.get() for _ in range(2)] == [1, 1]
        assert NotedInClass.count_of_all == 2, f"{NotedInClass.count_of_all} are done"


class NotedInQueue(NotedInGlobals):
    def at_end(self) -> None:
        assert [self.noted.get() for _ in range(2)] == [1, 1]


class TwoOfGunicorn(Workers):
    """A master and two workers share a table of jobs and a log; a worker takes a job that another one has taken."""

    def __init__(self) -> None:
        super().__init__()
        connection = sqlite3.connect(JOBS)
        connection.executescript(
            "create table jobs (id integer primary key, state text); insert into jobs (state) values ('new')"
        )
        connection.close()

    def claim(self, connection: sqlite3.Connection) -> int | None:
        found = connection.execute("select id from jobs where state = 'new'").fetchone()
        if found is None:
            return None
        with connection:
            connection.execute("update jobs set state = 'taken' where id = ?", found)
        job: int = found[0]
        return job

    def work(self) -> None:
        connection = sqlite3.connect(JOBS)
        job = self.claim(connection)
        connection.close()
        if job is not None:
            with open(LOG, "a") as log:
                fcntl.flock(log, fcntl.LOCK_EX)
                log.write(f"{job}\n")

    def outcome(self) -> Any:
        return Path(LOG).read_text() if os.path.exists(LOG) else ""

    def at_end(self) -> None:
        assert self.outcome() == "1\n", f"the log is {self.outcome()!r}"


class TwoThatAgree(TwoOfGunicorn):
    def claim(self, connection: sqlite3.Connection) -> int | None:
        with connection:
            found = connection.execute("update jobs set state = 'taken' where state = 'new' and id = 1")
            return 1 if found.rowcount else None


PROGRAMS: dict[type[Workers], type[Workers]] = {
    ClaimedTwice: ClaimedOnce,
    MovedTwice: MovedOnce,
    StalePidFile: LockedPidFile,
    UnlockedTooEarly: UnlockedAfterFlush,
    LockLostByClose: LockKeptByFlock,
    LostUpdate: ImmediateUpdate,
    UpgradeOfBoth: UpgradeRepeated,
    ReadsOfBoth: ImmediateInWAL,
    EmptyThenGet: GetOrEmpty,
    EmptyBehindPut: GetBehindPut,
    WithoutGetLock: WithGetLock,
    KilledWithLock: JoinedWithLock,
    JoinedBeforeRead: ReadBeforeJoined,
    EndLeftOpen: EndClosed,
    PutAndChanged: PutAndKept,
    NotedInGlobals: NotedInQueue,
    NotedInClass: NotedInQueue,
    TwoOfGunicorn: TwoThatAgree,
}
"""A program, and its twin."""


OUTCOMES: dict[Any, set[Any]] = {
    ClaimedTwice: {1, 2},
    ClaimedOnce: {1},
    MovedTwice: {1, 2},
    UnlockedTooEarly: {"1", "2"},
    LockLostByClose: {"1", "2"},
    LockKeptByFlock: {"2"},
    WithoutGetLock: {1, 2},
    KilledWithFlock: {0},
}
"""All results that schedules have, of programs that are explored to the end."""
