"""Puzzles 2: buffers, readers and writers, philosophers, smokers."""

from __future__ import annotations

from examples.puzzles.stage import (
    Act,
    Call,
    Log,
    Puzzle,
    Run,
    apart,
    at_most,
    before,
    call,
    everything,
    in_order,
    never_more,
    overtaken,
    reads,
    side_by_side,
    together,
)

__all__ = ["PUZZLES"]


class ProducerConsumer:
    """`put` adds an item; `get` waits until there is one, and takes it."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def put(self, item: int) -> None:
        self.items.append(item)

    def get(self) -> int:
        return self.items.pop(0)


class FiniteBuffer:
    """Holds up to `n` items: `put` waits for room, `get` for an item."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.items: list[int] = []

    def put(self, item: int) -> None:
        self.items.append(item)

    def get(self) -> int:
        return self.items.pop(0)


class ReadersWriters:
    """Readers read together, a writer writes alone."""

    def read(self, act: Act) -> None:
        act()

    def write(self, act: Act) -> None:
        act()


class NoStarveReadersWriters(ReadersWriters):
    """As `ReadersWriters`; no reader overtakes a writer that waits."""


class WriterPriority(ReadersWriters):
    """As `ReadersWriters`; no reader goes in while a writer waits, even one that has come later."""


class NoStarveMutex:
    """One thread at a time; no thread is overtaken again and again while it waits."""

    def enter(self, act: Act) -> None:
        act()


class Philosophers:
    """`n` seats at a round table, and a fork between each two. To eat, a philosopher needs the forks of both sides."""

    def __init__(self, n: int) -> None:
        self.n = n

    def eat(self, seat: int, act: Act) -> None:
        act()


class PatientPhilosophers(Philosophers):
    """As `Philosophers`; a philosopher that waits holds no fork."""


class Smokers:
    """`put` lays ingredient 0, 1 or 2 on the table. A smoker has its own one, waits for the others, and takes both."""

    def put(self, ingredient: int) -> None:
        pass

    def smoke(self, own: int, act: Act) -> None:
        act()


class ManySmokers(Smokers):
    """As `Smokers`; ingredients come without waiting, and lie in heaps."""


TOBACCO, PAPER, MATCH = 0, 1, 2


def _reader(name: str, at: float = 0, stays: float = 0) -> list[Call]:
    return [call("read", f"~reads {name}", at=at, stays=stays)]


def _writer(name: str, at: float = 0, stays: float = 0) -> list[Call]:
    return [call("write", f"~writes {name}", at=at, stays=stays)]


SHARED = everything(apart("reads", "writes"), at_most(1, "writes"))
READERS_WRITERS = (
    Run({"r": _reader("r"), "s": _reader("s"), "w": _writer("w")}, SHARED),
    Run({"r": _reader("r"), "w": _writer("w"), "x": _writer("x")}, SHARED),
    Run({"r": _reader("r", stays=2), "s": _reader("s", at=1, stays=2)}, together(2, "reads")),
)
WRITER_IS_NEXT = Run(
    {"r": _reader("r", stays=3), "w": _writer("w", at=1), "s": _reader("s", at=2)}, before("+writes", "+reads s")
)


def _ate(log: Log) -> None:
    for seat in range(4):
        apart(f"seat{seat}", f"seat{(seat + 1) % 4}")(log)


def _seat(seat: int, at: float = 0, stays: float = 0) -> list[Call]:
    return [call("eat", seat, f"~seat{seat} eats", at=at, stays=stays)]


PHILOSOPHERS = (
    Run(
        {f"p{seat}": _seat(seat) for seat in range(3)},
        everything(apart("seat0", "seat1"), apart("seat1", "seat2"), apart("seat2", "seat0")),
        (3,),
    ),
    Run({f"p{seat}": _seat(seat) for seat in range(4)}, _ate, (4,)),
    Run({"p0": _seat(0, stays=2), "p2": _seat(2, at=1)}, side_by_side("seat0", "seat2"), (4,)),
)


def _all_taken(log: Log) -> None:
    items = sorted(note.split()[-1] for note in log if " got " in note)
    assert items == ["1", "2"], f"1 and 2 were put, and this was taken: {', '.join(log)}"


def _put(ingredient: int, at: float = 0) -> Call:
    return call("put", ingredient, at=at, before="puts")


def _two_for_each(log: Log) -> None:
    for end in range(len(log)):
        smoked, came = log[: end + 1].count("smokes"), log[: end + 1].count("puts")
        assert 2 * smoked <= came, f"{smoked} smoked, and {came} ingredients had come: {', '.join(log)}"


PUZZLES = (
    Puzzle(
        "producer_consumer",
        "Put and get",
        "Little Book: producer-consumer; Deadlock Empire: producer-consumer",
        "Several threads call `put` and `get`. `get` waits until there is an item, and no two calls get the same one.",
        "A semaphore counts the items, and a lock guards the list.",
        ProducerConsumer,
        (
            Run(
                {
                    "c": [call("get", gets=True)],
                    "d": [call("get", gets=True)],
                    "p": [call("put", 1), call("put", 2)],
                },
                _all_taken,
            ),
        ),
        "check_then_act",
    ),
    Puzzle(
        "finite_buffer",
        "A bounded buffer",
        "Little Book: finite buffer",
        "As `producer_consumer`, with at most `n` items: `put` waits while `n` are stored, and only then.",
        "Two semaphores: one counts the items, one the free places. Take neither with the lock held.",
        FiniteBuffer,
        (
            Run(
                {
                    "p": [call("put", 1, after="stored"), call("put", 2, after="stored")],
                    "c": [call("get", before="takes", gets=True)],
                    "d": [call("get", before="takes", gets=True)],
                },
                everything(_all_taken, never_more("stored", "takes", plus=1)),
                (1,),
            ),
            Run(
                {
                    **{name: [call("put", 1, after="stored")] for name in "pqr"},
                    "c": [call("get", at=1, before="takes")],
                },
                reads("stored stored takes stored"),
                (2,),
            ),
        ),
        "nested_monitor",
    ),
    Puzzle(
        "readers_writers",
        "Readers and writers",
        "Little Book: readers-writers",
        "A writer writes alone. Readers can read at the same time.",
        "The first reader shuts the writers out, and the last one lets them in again.",
        ReadersWriters,
        READERS_WRITERS,
        "torn_read",
    ),
    Puzzle(
        "no_starve_readers_writers",
        "A writer that gets its turn",
        "Little Book: no-starve readers-writers",
        "As `readers_writers`; a reader that comes while a writer waits goes in after this writer.",
        "A turnstile at the door: a lock that each takes and gives back at once. A writer that waits keeps it.",
        NoStarveReadersWriters,
        (*READERS_WRITERS, WRITER_IS_NEXT),
        "starved_writer",
    ),
    Puzzle(
        "writer_priority",
        "Writers first",
        "Little Book: writer-priority readers-writers",
        "As `readers_writers`; no reader goes in while a writer writes or waits, even if the reader has come first.",
        "Count the writers that wait.",
        WriterPriority,
        (
            *READERS_WRITERS,
            WRITER_IS_NEXT,
            Run(
                {
                    "v": _writer("v", stays=3),
                    "s": _reader("s", at=1),
                    "w": _writer("w", at=2),
                },
                before("+writes", "+reads s"),
            ),
        ),
        "starved_writer",
    ),
    Puzzle(
        "no_starve_mutex",
        "A lock without starvation",
        "Little Book: no-starve mutex (Morris)",
        "One thread at a time. A thread that comes again and again overtakes a waiting thread once at most.",
        "`threading.Lock` does not say which thread is next. Number the threads as they come, or use two turnstiles.",
        NoStarveMutex,
        (
            Run({name: [call("enter", f"~in {name}")] for name in "abc"}, at_most(1, "in")),
            Run(
                {
                    "a": [call("enter", "~in a", stays=1) for _ in range(5)],
                    "b": [call("enter", "~in b", at=0.5)],
                },
                overtaken("+in a", "+in b", 2),
            ),
        ),
        "starved_writer",
    ),
    Puzzle(
        "philosophers",
        "Dining philosophers",
        "Little Book: dining philosophers",
        "Neighbours never eat at the same time, others can, and all eat in the end. Seat 0 is beside seat `n - 1`.",
        "Break the circle: number the forks and take the lower one first, or let only `n - 1` sit down.",
        Philosophers,
        PHILOSOPHERS,
        "philosophers",
    ),
    Puzzle(
        "patient_philosophers",
        "Both forks or none",
        "Little Book: dining philosophers, Tanenbaum's solution",
        "As `philosophers`; a philosopher eats at once if neither neighbour is eating, even if a neighbour waits.",
        "One lock for the table. Look at both sides, and wait without a fork.",
        PatientPhilosophers,
        (
            *PHILOSOPHERS,
            Run(
                {
                    "p3": _seat(3, stays=4),
                    "p2": _seat(2, at=1),
                    "p1": _seat(1, at=2),
                },
                everything(_ate, before("+seat1", "-seat3")),
                (4,),
            ),
        ),
        "philosophers",
    ),
    Puzzle(
        "smokers",
        "Cigarette smokers",
        "Little Book: cigarette smokers",
        "Ingredients are 0 (tobacco), 1 (paper) and 2 (matches). Two different ones come to the table. The smoker "
        "that has the third takes both, and smokes; then the next two come.",
        "A smoker that takes one and waits for the other holds up the right one. Look at the table as a whole.",
        Smokers,
        (
            Run(
                {
                    "left": [call("put", TOBACCO), call("put", PAPER, at=1), call("put", PAPER, at=2)],
                    "right": [call("put", MATCH), call("put", MATCH, at=1), call("put", TOBACCO, at=2)],
                    "has tobacco": [call("smoke", TOBACCO, "tobacco")],
                    "has paper": [call("smoke", PAPER, "paper")],
                    "has a match": [call("smoke", MATCH, "match")],
                },
                in_order("paper", "tobacco", "match"),
            ),
        ),
        "lock_order",
    ),
    Puzzle(
        "many_smokers",
        "Heaps on the table",
        "Little Book: generalized smokers",
        "As `smokers`; more ingredients come before the first two are taken, so one ingredient may lie there twice.",
        "Count each ingredient: a flag does not remember that there are two.",
        ManySmokers,
        (
            Run(
                {
                    "left": [_put(PAPER), _put(PAPER), _put(TOBACCO)],
                    "right": [_put(MATCH), _put(MATCH), _put(PAPER)],
                    "has tobacco": [call("smoke", TOBACCO, "smokes"), call("smoke", TOBACCO, "smokes")],
                    "has a match": [call("smoke", MATCH, "smokes")],
                },
                _two_for_each,
            ),
            Run(
                {
                    "left": [_put(PAPER), _put(PAPER, at=1)],
                    "right": [_put(MATCH), _put(MATCH, at=1)],
                    "has tobacco": [call("smoke", TOBACCO, "smokes"), call("smoke", TOBACCO, "smokes")],
                },
                _two_for_each,
            ),
        ),
        "lost_notify",
    ),
)
