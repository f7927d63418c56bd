"""Puzzles 6: classes that look right, each with the hazards of a level of The Deadlock Empire. Mend them."""

from __future__ import annotations

import threading
import time

from examples.puzzles.stage import Act, Check, Log, Puzzle, Run, at_most, before, call, everything, in_order, reads

__all__ = ["PUZZLES"]


class Gate:
    """Two numbers that are equal whenever they are read; the gate is shut while they change."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.a = self.b = 0

    def change(self) -> None:
        self.open.clear()
        self.a += 1
        self.b += 1
        self.open.set()

    def read(self) -> tuple[int, int]:
        self.open.wait()
        return self.a, self.b


class Countdown:
    """`wait` returns when `done` has been called `n` times."""

    def __init__(self, n: int) -> None:
        self.left = n
        self.zero = threading.Event()

    def done(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.zero.set()

    def wait(self) -> None:
        self.zero.wait()


class LastOne:
    """Of `n` calls of `done` the last one does its act, and no other."""

    def __init__(self, n: int) -> None:
        self.lock = threading.Lock()
        self.left = n

    def done(self, act: Act) -> None:
        with self.lock:
            self.left -= 1
        if self.left == 0:
            act()


class Swap:
    """Two sides, 0 and 1, each give a value, and get that of the other, again and again."""

    def __init__(self) -> None:
        self.both = threading.Barrier(2)
        self.values = [0, 0]

    def swap(self, side: int, value: int) -> int:
        self.values[side] = value
        self.both.wait()
        return self.values[1 - side]


class OnePlace:
    """Acts never overlap. The place may take more than a second to become free."""

    def __init__(self) -> None:
        self.place = threading.Semaphore(1)

    def enter(self, act: Act) -> None:
        self.place.acquire(timeout=1)
        act()
        self.place.release()


class TryLock:
    """Does the act and returns True; or returns False at once if another thread does its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def attempt(self, act: Act) -> bool:
        free = self.lock.acquire(blocking=False)
        try:
            if free:
                act()
            return free
        finally:
            self.lock.release()


class Dragon:
    """`fire` waits for a tank that `refuel` has brought, and empties it; `level` is how many are there."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.there = threading.Semaphore(0)
        self.tanks = 0

    def refuel(self) -> None:
        self.tanks += 1
        with self.lock:
            self.there.release()

    def fire(self) -> None:
        with self.lock:
            self.there.acquire()
            self.tanks -= 1

    def level(self) -> int:
        return self.tanks


class OddAndEven:
    """`take(1)` waits until the oldest number is odd and takes it, `take(0)` until it is even."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def put(self, number: int) -> None:
        self.numbers.append(number)

    def take(self, odd: int) -> int:
        while not self.numbers or self.numbers[0] % 2 != odd:
            time.sleep(0)
        return self.numbers.pop(0)


class Gather:
    """`arrive` returns when `n` threads have called it. There are two faults."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.count = 0
        self.all_here = threading.Condition()

    def arrive(self) -> None:
        self.count += 1
        with self.all_here:
            if self.count < self.n:
                self.all_here.wait()
            else:
                self.all_here.notify()


def _got(*wanted: str) -> Check:
    """These results, in any order."""

    def check(log: Log) -> None:
        got = sorted(note for note in log if " got " in note)
        assert got == sorted(wanted), f"{', '.join(got)}, in place of {', '.join(sorted(wanted))}"

    return check


def _equal(log: Log) -> None:
    for note in log:
        first, second = note.rpartition("(")[2].rstrip(")").split(", ")
        assert first == second, f"{note}: the numbers differ"
    assert log[-1].endswith("(1, 1)") or log[0].endswith("(1, 1)"), f"the change is lost: {', '.join(log)}"


def _true_if_done(log: Log) -> None:
    done = sum(note.startswith("+in") for note in log)
    true = sum(note.endswith("got True") for note in log)
    assert done == true > 0, f"{done} acts, and {true} times True: {', '.join(log)}"


PUZZLES = (
    Puzzle(
        "gate",
        "An event is no lock",
        "Deadlock Empire: manual-reset event",
        "`read` never sees a change half done.",
        "The gate may be shut just after a thread has gone through it.",
        Gate,
        (
            Run(
                {"changes": [call("change"), call("read", gets=True)], "reads": [call("read", gets=True)]},
                _equal,
            ),
        ),
        "torn_read",
    ),
    Puzzle(
        "countdown",
        "Counted down",
        "Deadlock Empire: countdown event",
        "`wait` returns after the last of the `n` calls of `done`, and never waits for ever.",
        "Two threads that count at the same moment may count down by one only.",
        Countdown,
        (
            Run(
                {**{name: [call("done", before="done")] for name in "abc"}, "waits": [call("wait", after="goes on")]},
                before("done", "goes on"),
                (3,),
            ),
        ),
        "lost_update",
    ),
    Puzzle(
        "last_one",
        "The last one turns off the light",
        "Deadlock Empire: countdown event revisited",
        "Exactly one of `n` calls does its act: the last.",
        "Between counting down and looking at the count others count down.",
        LastOne,
        (Run({name: [call("done", "last?")] for name in "abc"}, reads("last"), (3,)),),
        "check_then_act",
    ),
    Puzzle(
        "swap",
        "Once is not enough",
        "Deadlock Empire: the barrier",
        "Each side gets the value that the other side gives in the same round.",
        "A quick thread may give its next value before the slow one has read the last.",
        Swap,
        (
            Run(
                {
                    "a": [call("swap", 0, 1, gets=True), call("swap", 0, 2, gets=True)],
                    "b": [call("swap", 1, 8, gets=True), call("swap", 1, 9, gets=True)],
                },
                everything(_got("a got 8", "a got 9", "b got 1", "b got 2"), in_order("a got 8", "a got 9")),
            ),
        ),
        "torn_read",
    ),
    Puzzle(
        "one_place",
        "A timeout that no one looks at",
        "Deadlock Empire: semaphores",
        "Acts never overlap, and each is done, even if a thread keeps the place for longer than a second.",
        "What does `acquire` return?",
        OnePlace,
        (Run({name: [call("enter", f"~in {name}")] for name in "ab"}, at_most(1, "in")),),
        "leaked_lock",
    ),
    Puzzle(
        "try_lock",
        "Give back only what you have",
        "Deadlock Empire: a more complex thread",
        "Acts never overlap. `attempt` returns whether it has done its act, and never waits for another thread.",
        "`finally` runs whether the thread has the lock or not.",
        TryLock,
        (
            Run(
                {name: [call("attempt", f"~in {name}?", gets=True)] for name in "abc"},
                everything(at_most(1, "in"), _true_if_done),
            ),
            Run(
                {
                    "a": [call("attempt", "~in a", stays=2)],
                    "b": [call("attempt", "~in b?", at=1, gets=True)],
                },
                in_order("+in a", "b got False", "-in a"),
            ),
            Run(
                {name: [call("attempt", f"~in {name}?", stays=2, gets=True)] for name in "ab"},
                reads("+in a -in b", "+in b -in a", "a +in -in b", "b +in -in a"),
            ),
        ),
        "leaked_lock",
    ),
    Puzzle(
        "dragon",
        "Two faults, one behind the other",
        "Deadlock Empire: dragonfire",
        "Two threads bring a tank each, and a third one uses both; then the level is 0.",
        "One fault shows as a deadlock. The other one is seen only when that is mended.",
        Dragon,
        (
            Run(
                {
                    "brings": [call("refuel")],
                    "brings too": [call("refuel")],
                    "dragon": [call("fire"), call("fire"), call("level", gets=True)],
                },
                _got("dragon got 0"),
            ),
        ),
        "nested_monitor",
    ),
    Puzzle(
        "odd_and_even",
        "Three that take",
        "Deadlock Empire: triple danger",
        "Two threads take odd numbers and one takes an even one, in the order in which they were put.",
        "Make one step of looking at the oldest and taking it. A thread that wakes looks again.",
        OddAndEven,
        (
            Run(
                {
                    "puts": [call("put", 1), call("put", 2), call("put", 3)],
                    "odd": [call("take", 1, after="odd")],
                    "odd too": [call("take", 1, after="odd")],
                    "even": [call("take", 0, gets=True)],
                },
                _got("even got 2"),
            ),
        ),
        "check_then_act",
    ),
    Puzzle(
        "gather",
        "All at once",
        "Deadlock Empire: condition variables, boss fight",
        "As `barrier`, with a `threading.Condition`: `arrive` returns only after all `n` threads have called it.",
        "How many threads does `notify` wake? And what is lost if two threads count at the same moment?",
        Gather,
        (
            Run(
                {name: [call("arrive", before=f"comes {name}", after=f"goes {name}")] for name in "abc"},
                before("comes", "goes"),
                (3,),
            ),
        ),
        "lost_notify",
    ),
)
