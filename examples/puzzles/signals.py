"""Puzzles 1: threads that wait for each other, one time or again and again."""

from __future__ import annotations

from examples.puzzles.stage import (
    Act,
    Log,
    Puzzle,
    Run,
    at_most,
    before,
    call,
    everything,
    fine,
    in_groups,
    in_order,
    never_more,
    together,
)

__all__ = ["PUZZLES"]


class Signal:
    """`late` does its act when `early` has done its own."""

    def early(self, act: Act) -> None:
        act()

    def late(self, act: Act) -> None:
        act()


class Rendezvous:
    """Two threads meet: neither does its second act before the other has done its first."""

    def left(self, first: Act, second: Act) -> None:
        first()
        second()

    def right(self, first: Act, second: Act) -> None:
        first()
        second()


class Mutex:
    """One thread at a time does its act."""

    def enter(self, act: Act) -> None:
        act()


class Multiplex:
    """Up to `n` threads do their acts together."""

    def __init__(self, n: int) -> None:
        self.n = n

    def enter(self, act: Act) -> None:
        act()


class Barrier:
    """`wait` returns when `n` threads have called it. A barrier is used once."""

    def __init__(self, n: int) -> None:
        self.n = n

    def wait(self) -> None:
        pass


class ReusableBarrier:
    """`wait` returns when `n` threads have called it, and then it is as new."""

    def __init__(self, n: int) -> None:
        self.n = n

    def wait(self) -> None:
        pass


class Dance:
    """Leaders and followers come one by one. Each waits for a partner of the other kind, then does its act."""

    def leader(self, dance: Act) -> None:
        dance()

    def follower(self, dance: Act) -> None:
        dance()


class PairDance:
    """As `Dance`; both of a pair do their acts before any of the next pair does."""

    def leader(self, dance: Act) -> None:
        dance()

    def follower(self, dance: Act) -> None:
        dance()


class FifoQueue:
    """`wait` returns after a `signal`; the thread that has come first goes first. A signal is never lost."""

    def wait(self) -> None:
        pass

    def signal(self) -> None:
        pass


def _rounds(log: Log) -> None:
    """No thread does an act of a round before all have done that of the round before."""
    rounds = [int(note.split()[-1]) for note in log]
    assert rounds == sorted(rounds), f"a thread was a round ahead: {', '.join(log)}"


PUZZLES = (
    Puzzle(
        "signal",
        "One before the other",
        "Little Book: serialization and signalling",
        "`late` does its act only after `early` has done its own, in whichever order the two are called.",
        "A semaphore that begins with 0 remembers that something has happened.",
        Signal,
        (Run({"early": [call("early", "early")], "late": [call("late", "late")]}, in_order("early", "late")),),
        "unsafe_publication",
    ),
    Puzzle(
        "rendezvous",
        "Two that meet",
        "Little Book: rendezvous",
        "One thread calls `left`, one `right`. Neither does its second act before the other has done its first.",
        "Two semaphores, one for each thread. Say that you are there before you wait.",
        Rendezvous,
        (
            Run(
                {"left": [call("left", "first l", "second l")], "right": [call("right", "first r", "second r")]},
                before("first", "second"),
            ),
        ),
        "lock_order",
    ),
    Puzzle(
        "mutex",
        "One at a time",
        "Little Book: mutex",
        "Acts of three threads never overlap, and each is done.",
        "`threading.Lock` does it. If you build your own, look at the lesson on spin locks first.",
        Mutex,
        (Run({name: [call("enter", f"~in {name}")] for name in "abc"}, at_most(1, "in")),),
        "spin_lock",
    ),
    Puzzle(
        "multiplex",
        "A few at a time",
        "Little Book: multiplex; Deadlock Empire: semaphores",
        "At most `n` acts are under way at the same time, and `n` are if `n` or more threads come.",
        "A semaphore that begins with `n`.",
        Multiplex,
        (
            Run({name: [call("enter", f"~in {name}")] for name in "abc"}, at_most(2, "in"), (2,)),
            Run({name: [call("enter", f"~in {name}", stays=1)] for name in "abc"}, together(2, "in"), (2,)),
        ),
    ),
    Puzzle(
        "barrier",
        "All of them first",
        "Little Book: barrier, turnstile; Deadlock Empire: the barrier",
        "`wait` returns only after all `n` threads have called it.",
        "Count under a lock. The last one opens a turnstile: a semaphore that each takes and gives back at once.",
        Barrier,
        (
            Run(
                {name: [call("wait", before=f"comes {name}", after=f"goes {name}")] for name in "abc"},
                before("comes", "goes"),
                (3,),
            ),
        ),
    ),
    Puzzle(
        "reusable_barrier",
        "All of them, again and again",
        "Little Book: reusable barrier, preloaded turnstile, barrier objects",
        "`n` threads call `wait` after each round of their work; none begins a round before all have ended the last.",
        "A quick thread may come round before a slow one has left. Two turnstiles: one to come in, one to leave.",
        ReusableBarrier,
        (
            Run(
                {name: [call("wait", before=f"{name} does {number}") for number in range(1, 4)] for name in "ab"},
                _rounds,
                (2,),
            ),
        ),
    ),
    Puzzle(
        "dance",
        "Leaders and followers",
        "Little Book: queue",
        "Each leader has a follower as its partner. Neither of the two does its act before the other has come.",
        "Two semaphores, as in a rendezvous; here many threads use them.",
        Dance,
        (
            Run(
                {
                    "l": [call("leader", "leader dances", before="L 1")],
                    "m": [call("leader", "leader dances", before="L 2")],
                    "f": [call("follower", "follower dances", before="F 1")],
                    "g": [call("follower", "follower dances", before="F 2")],
                },
                everything(never_more("leader", "F"), never_more("follower", "L")),
            ),
        ),
    ),
    Puzzle(
        "pair_dance",
        "Two by two",
        "Little Book: exclusive queue",
        "As `dance`; the acts of a leader and its follower come one after the other, in either order, none between.",
        "A pair that is there shuts the floor. The second of the two to end opens it again.",
        PairDance,
        (
            Run(
                {
                    "l": [call("leader", "L")],
                    "m": [call("leader", "L")],
                    "f": [call("follower", "F")],
                    "g": [call("follower", "F")],
                },
                in_groups("L F"),
            ),
        ),
    ),
    Puzzle(
        "fifo_queue",
        "First come, first served",
        "Little Book: FIFO queue",
        "A semaphore that begins with 0: each `signal` releases the thread that has waited longest. If none waits, "
        "the next `wait` returns at once.",
        "Each thread that waits has a semaphore of its own, in a list.",
        FifoQueue,
        (
            Run({"a": [call("wait")], "b": [call("wait")], "s": [call("signal"), call("signal")]}, fine),
            Run(
                {
                    "a": [call("wait", at=1, after="a")],
                    "b": [call("wait", at=2, after="b")],
                    "c": [call("wait", at=3, after="c")],
                    "s": [call("signal", at=at) for at in (4, 5, 6)],
                },
                in_order("a", "b", "c"),
            ),
            Run({"a": [call("wait", after="a")], "s": [call("signal", before="s")]}, in_order("s", "a")),
        ),
    ),
)
