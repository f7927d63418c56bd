"""Processes, files and databases: faults between processes are found, and nothing is said of their twins."""

from __future__ import annotations

import builtins
import fcntl
import multiprocessing
import os
import sqlite3
import sys
import threading
import time
from contextlib import closing, suppress
from multiprocessing import Process
from multiprocessing.synchronize import Lock as RealLock
from pathlib import Path
from typing import Any

import pytest
from searching import NIGHT, by_day

from explore.process_programs import (
    FILE,
    OUTCOMES,
    PROGRAMS,
    KilledWithFlock,
    KilledWithLock,
    LostUpdate,
    TwoOfGunicorn,
    Workers,
    rows,
)
from explore.test_early_timeouts import outcomes
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import Result, explore, replay
from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.dpor import DPOR

OPEN: Any = open

SEEDS = range(20) if NIGHT else range(1)
BRUTE = 10_000 if NIGHT else 40

EVERY = [program for pair in PROGRAMS.items() for program in pair]


def held(program: Any, **options: Any) -> Result:
    return explore(program, strategy="dpor", **options).assert_holds()


def message(program: Any, **options: Any) -> str:
    failure = explore(program, strategy="dpor", shrink=False, **options).failure
    assert failure is not None
    return failure.message


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_fault_between_processes_is_found(program: Any) -> None:
    for seed in SEEDS:
        assert explore(program, seed=seed, shrink=False).failure is not None, f"seed {seed}"
    for strategy in by_day(3, ("dpor", "bounded", "random")):
        assert explore(program, strategy=strategy, shrink=False).failure is not None, strategy


@pytest.mark.parametrize("twin", PROGRAMS.values(), ids=lambda program: program.__name__)
def test_a_twin_of_processes_is_explored_to_the_end(twin: Any) -> None:
    for early in by_day(2, (1, 0)):
        assert explore(twin, strategy="dpor", early_timeouts=early).verdict.kind == "exhausted"
    assert explore(twin, strategy="random", schedules=1_000 if NIGHT else 10).failure is None


@pytest.mark.parametrize("program", by_day(3, EVERY), ids=lambda program: program.__name__)
def test_of_processes_the_searches_say_what_brute_force_says(program: Any) -> None:
    brute = outcomes(program, Bounded(reduced=False), 0, BRUTE)
    if brute is not None:
        assert outcomes(program, Bounded(), 0) == brute
        assert outcomes(program, DPOR(), 0) == brute


@pytest.mark.parametrize("program", OUTCOMES, ids=lambda program: program.__name__)
def test_processes_have_all_outcomes_and_no_others(program: type[Workers]) -> None:
    class Judged(program):  # type: ignore[misc,valid-type]
        def at_end(self) -> None:
            pass

    globals()["Judged"] = Judged
    Judged.__qualname__ = "Judged"
    result = explore(Judged, strategy="dpor")
    assert result.verdict.kind == "exhausted"
    assert {outcome.value for outcome in result.outcomes} == OUTCOMES[program]


def test_workers_on_other_paths_need_one_schedule() -> None:
    assert held(OnOtherPaths).schedules == 1


class OnOtherPaths:
    def actor_a(self) -> None:
        self.work("a")

    def actor_b(self) -> None:
        self.work("b")

    def work(self, name: str) -> None:
        path = f"{FILE}.{name}"
        if not os.path.exists(path):
            Path(path).write_text(name)
        with open(path, "a") as file:
            file.write(name)
        os.replace(path, f"{path}.old")
        os.unlink(f"{path}.old")


def test_a_failure_of_processes_is_replayed() -> None:
    failure = explore(TwoOfGunicorn).failure
    assert failure is not None
    again = replay(TwoOfGunicorn, failure.token).failure
    assert again is not None
    assert again.message == failure.message
    assert {step.name for step in failure.steps} >= {"Process-1", "Process-2"}


# -- processes ------------------------------------------------------------------------------------------------


class Ends:
    """A process ends in one of several ways."""

    how: Any = None

    def run(self, box: list[int], running: Any) -> None:
        box.append(1)
        assert os.getpid() != os.getppid() == multiprocessing.parent_process().pid  # type: ignore[union-attr]
        running.set()
        self.how()

    def end(self, process: Process) -> None:
        pass

    def actor_master(self) -> None:
        box: list[int] = []
        running = multiprocessing.Event()
        process = Process(target=self.run, args=(box, running))
        process.start()
        assert process.pid is not None
        running.wait()
        self.end(process)
        process.join()
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
        assert not box
        self.code = process.exitcode

    def outcome(self) -> Any:
        return self.code


def exits() -> None:
    sys.exit(3)


def exits_at_once() -> None:
    try:
        os._exit(4)
    finally:
        Path(FILE).write_text("not reached")


def sleeps() -> None:
    time.sleep(1_000)


def returns() -> None:
    pass


@pytest.mark.parametrize(
    ("how", "end", "code"),
    [
        (returns, returns, 0),
        (exits, returns, 3),
        (exits_at_once, returns, 4),
        (sleeps, Process.terminate, -15),
        (sleeps, Process.kill, -9),
    ],
)
def test_exit_codes_are_those_of_real_processes(how: Any, end: Any, code: int) -> None:
    class Program(Ends):
        def end(self, process: Process) -> None:
            if end is not returns:
                end(process)

    Program.how = staticmethod(how)
    globals()["Program"] = Program
    Program.__qualname__ = "Program"
    assert [outcome.value for outcome in held(Program, early_timeouts=0).outcomes] == [code]


class Hands:
    """A process is handed what can't be."""

    given: Any = None

    def actor_master(self) -> None:
        Process(target=print, args=(type(self).given(),)).start()


@pytest.mark.parametrize(
    ("given", "text"),
    [(lambda: lambda: None, "local object '<lambda>"), (threading.Lock, "cannot pickle '_thread.lock' object")],
)
def test_an_argument_that_cannot_be_pickled_raises(given: Any, text: str) -> None:
    Hands.given = staticmethod(given)
    assert text in message(Hands)


class PutsALock:
    def actor_master(self) -> None:
        jobs: Any = multiprocessing.SimpleQueue()
        jobs.put(multiprocessing.Lock())


def test_a_lock_is_shared_through_inheritance_only() -> None:
    assert "through inheritance" in message(PutsALock)


class Refused:
    name = ""

    def actor_master(self) -> None:
        getattr(multiprocessing, self.name)()


@pytest.mark.parametrize("name", ["Pool", "Manager"])
def test_what_is_not_modelled_is_refused(name: str) -> None:
    Refused.name = name
    with pytest.raises(ExploreError, match=rf"multiprocessing\.{name} is not modelled"):
        explore(Refused)


class Noisy(Process):
    """A class of the program's own, with a state of its own."""

    def __init__(self, results: Any) -> None:
        super().__init__(daemon=True)
        self.results = results
        self.state = "new"

    def run(self) -> None:
        self.state = "ran"
        self.results.send((self.name, self.state, multiprocessing.current_process() is self))
        time.sleep(3_600)


class StartsNoisy:
    def actor_master(self) -> None:
        reader, writer = multiprocessing.get_context("spawn").Pipe(duplex=False)
        process = Noisy(writer)
        process.start()
        assert reader.recv() == ("Noisy-1", "ran", True)
        assert (process.state, process.is_alive()) == ("new", True)
        assert multiprocessing.active_children() == [process]


def test_a_daemon_does_not_keep_the_run_and_has_its_own_state() -> None:
    held(StartsNoisy, early_timeouts=0)


def test_after_an_exploration_all_is_real_again() -> None:
    explore(KilledWithLock)
    assert os.getpid() == multiprocessing.current_process().pid
    assert isinstance(multiprocessing.Lock(), RealLock)
    assert vars(builtins)["open"] is OPEN
    assert not multiprocessing.active_children()


# -- files ----------------------------------------------------------------------------------------------------


class OfOneProcess:
    """Two threads of a process exclude one another by `flock`, and not by `lockf`."""

    def lock(self, file: Any) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def __init__(self) -> None:
        Path(FILE).write_text("0")

    def work(self) -> None:
        with open(FILE, "r+") as file:
            self.lock(file)
            number = int(Path(FILE).read_text())
            file.write(str(number + 1))

    def actor_a(self) -> None:
        self.work()

    def actor_b(self) -> None:
        self.work()

    def at_end(self) -> None:
        assert Path(FILE).read_text() == "2", "lost"


class ByLockf(OfOneProcess):
    def lock(self, file: Any) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX)


def test_lockf_does_not_exclude_threads_of_a_process() -> None:
    held(OfOneProcess)
    assert message(ByLockf) == "lost"


class OneOpenFile:
    """Two threads write and flush one file object."""

    def __init__(self) -> None:
        self.file = open(FILE, "w")  # noqa: SIM115

    def actor_a(self) -> None:
        self.file.write("a")
        self.file.flush()

    def actor_b(self) -> None:
        self.file.write("b")
        self.file.flush()

    def tear_down(self) -> None:
        self.file.close()

    def at_end(self) -> None:
        assert sorted(Path(FILE).read_text()) == ["a", "b"]


def test_threads_flush_one_file_without_blocking_each_other() -> None:
    held(OneOpenFile)


class WithoutWaiting:
    def __init__(self) -> None:
        self.file = open(FILE, "w")  # noqa: SIM115
        fcntl.flock(self.file, fcntl.LOCK_SH)

    def actor_a(self) -> None:
        with open(FILE) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def tear_down(self) -> None:
        self.file.close()


def test_flock_without_waiting_raises_where_it_would_wait() -> None:
    held(WithoutWaiting)


def test_a_lock_of_a_file_is_released_when_its_process_is_killed() -> None:
    held(KilledWithFlock)


# -- databases ------------------------------------------------------------------------------------------------


class Waits(LostUpdate):
    """A worker waits for a transaction of another one, `seconds` long, and at most three."""

    seconds = 2

    def actor_master(self) -> None:
        with closing(sqlite3.connect(FILE, isolation_level=None)) as connection:
            connection.execute("create table if not exists counter (n)")
            connection.execute("begin immediate")
            worker = Process(target=self.work)
            worker.start()
            time.sleep(self.seconds)
            connection.execute("commit")
            worker.join()

    def work(self) -> None:
        with closing(sqlite3.connect(FILE, timeout=3)) as connection:
            connection.execute("insert into counter values (1)")
            connection.commit()

    def outcome(self) -> Any:
        return None

    at_end = outcome


class WaitsInVain(Waits):
    seconds = 4


def test_a_locked_database_is_waited_for_in_virtual_time() -> None:
    held(Waits, early_timeouts=0)
    assert message(WaitsInVain, early_timeouts=0) == "Process-1 raised OperationalError: database is locked"


class KilledInTransaction(LostUpdate):
    def work(self) -> None:
        connection = sqlite3.connect(FILE)
        connection.execute("insert into counter values (1)")
        self.inserted.set()
        time.sleep(3_600)

    def actor_master(self) -> None:
        self.inserted = multiprocessing.Event()
        with closing(sqlite3.connect(FILE)) as connection:
            connection.execute("create table counter (n)")
            worker = Process(target=self.work)
            worker.start()
            self.inserted.wait()
            worker.kill()
            worker.join()
            assert connection.execute("select * from counter").fetchall() == []
            connection.execute("insert into counter values (2)")

    def at_end(self) -> None:
        assert rows("select n from counter") == [(0,)]


def test_the_transaction_of_a_killed_process_is_rolled_back() -> None:
    held(KilledInTransaction, early_timeouts=0)


class InMemory:
    def work(self) -> None:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("create table t (n)")
            connection.execute("insert into t values (1)")
            assert connection.execute("select count(*) from t").fetchone() == (1,)

    def actor_a(self) -> None:
        self.work()

    def actor_b(self) -> None:
        self.work()


def test_a_database_in_memory_is_private_to_its_connection() -> None:
    assert held(InMemory).schedules == 1


class Linked:
    """A job is claimed by a link whose absence is checked before it is made."""

    looks: Any = None

    def __init__(self) -> None:
        Path(FILE).unlink(missing_ok=True)
        self.done = 0

    def actor_a(self) -> None:
        if not type(self).looks(FILE):
            with suppress(FileExistsError):
                os.symlink("target", FILE)
            self.done += 1

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.done == 1


@pytest.mark.parametrize("looks", [os.path.lexists, os.path.islink])
def test_a_look_for_a_link_is_an_access_of_its_file(looks: Any) -> None:
    assert explore(type("Looks", (Linked,), {"looks": staticmethod(looks)})).failure is not None


class LeavesOpen(Workers):
    """A process is killed, or ends, with a file that it has opened."""

    def work(self) -> None:
        number = os.open(FILE, os.O_RDWR | os.O_CREAT)
        fcntl.flock(number, fcntl.LOCK_EX)
        with os.fdopen(os.open(FILE, os.O_WRONLY), "w") as file:
            file.write("x")
        self.count()

    def actor_master(self) -> None:
        workers = [Process(target=self.work) for _ in range(2)]
        for worker in workers:
            worker.start()
        workers[0].kill()
        for worker in workers:
            worker.join()


def test_what_processes_leave_open_is_closed_after_each_run() -> None:
    """A system closes it at their end; after some 1,000 schedules this process could open no more."""
    folder = "/proc/self/fd"
    before = len(os.listdir(folder))
    held(LeavesOpen, schedules=40, early_timeouts=0)
    assert len(os.listdir(folder)) == before
