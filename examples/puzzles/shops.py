"""Puzzles 3: a pot, three barbershops, Santa Claus, water, a boat, two roller coasters."""

from __future__ import annotations

from examples.puzzles.stage import (
    Act,
    Check,
    Log,
    Puzzle,
    Run,
    before,
    call,
    everything,
    in_groups,
    in_order,
    never_more,
    reads,
    side_by_side,
)

__all__ = ["PUZZLES"]


class Savages:
    """A pot, empty at first. A call of `cook` fills it once, with `n` servings; a call of `savage` takes one."""

    def __init__(self, n: int) -> None:
        self.n = n

    def savage(self, take: Act) -> None:
        take()

    def cook(self, fill: Act) -> None:
        fill()


class Barbershop:
    """One barber, and `chairs` on which customers wait. Each call of `barber` serves one customer."""

    def __init__(self, chairs: int) -> None:
        self.chairs = chairs

    def barber(self, cut: Act) -> None:
        cut()

    def customer(self, hair: Act, leave: Act) -> None:
        hair()


class FifoBarbershop(Barbershop):
    """As `Barbershop`; the customers are served in the order in which they have come."""


class BusyBarbershop:
    """Up to `room` customers are inside, up to `sofa` of them on the sofa; the others stand. Several barbers work.

    Each call of `barber` serves one customer.
    """

    def __init__(self, room: int, sofa: int) -> None:
        self.room = room
        self.sofa = sofa

    def customer(self, sit: Act, hair: Act, pay: Act, leave: Act) -> None:
        sit()
        hair()
        pay()

    def barber(self, cut: Act, accept: Act) -> None:
        cut()
        accept()


class Santa:
    """Sleeps until all `reindeer` are back, or a group of `elves` needs help. A call of `santa` serves one of them."""

    def __init__(self, reindeer: int, elves: int) -> None:
        self.n = reindeer
        self.group = elves

    def santa(self, prepare: Act, help_elves: Act) -> None:
        prepare()

    def reindeer(self, hitch: Act) -> None:
        hitch()

    def elf(self, get_help: Act) -> None:
        get_help()


class Water:
    """Two threads of hydrogen and one of oxygen bond, then those of the next molecule."""

    def hydrogen(self, bond: Act) -> None:
        bond()

    def oxygen(self, bond: Act) -> None:
        bond()


class River:
    """A boat for four: four of a kind, or two of each. All four board, one of them rows, then the next boat loads."""

    def hacker(self, board: Act, row: Act) -> None:
        board()

    def serf(self, board: Act, row: Act) -> None:
        board()


class RollerCoaster:
    """A car for `n`: they board when it loads, it goes when it is full, they leave when it unloads."""

    def __init__(self, n: int) -> None:
        self.n = n

    def car(self, load: Act, go: Act, unload: Act) -> None:
        load()
        go()
        unload()

    def passenger(self, board: Act, leave: Act) -> None:
        board()
        leave()


class ManyCars:
    """Cars 0 to `cars - 1`, each for `n`: they load in turn and unload in turn, and can run together."""

    def __init__(self, n: int, cars: int) -> None:
        self.n = n
        self.cars = cars

    def car(self, number: int, load: Act, go: Act, unload: Act) -> None:
        load()
        go()
        unload()

    def passenger(self, board: Act, leave: Act) -> None:
        board()
        leave()


def _pot(n: int) -> Check:
    def check(log: Log) -> None:
        left = 0
        for note in log:
            assert left == 0 if note == "fill" else left > 0, f"{note!r} with {left} in the pot: {', '.join(log)}"
            left += n if note == "fill" else -1

    return check


def _once_each(log: Log) -> None:
    for note in ("prepares", "helps"):
        assert log.count(note) == 1, f"{note!r} {log.count(note)} times: {', '.join(log)}"


SANTA = [call("santa", "prepares?", "helps?"), call("santa", "prepares?", "helps?")]
CAR = call("car", "load", "go", "unload")
RIDER = call("passenger", "board", "leave")

PUZZLES = (
    Puzzle(
        "savages",
        "The pot",
        "Little Book: dining savages",
        "A savage waits while the pot is empty. The cook waits until it is empty, then fills it.",
        "A savage that finds the pot empty wakes the cook, and keeps the turn to take until the pot is full.",
        Savages,
        (
            Run(
                {
                    "a": [call("savage", "take"), call("savage", "take")],
                    "b": [call("savage", "take"), call("savage", "take")],
                    "cook": [call("cook", "fill"), call("cook", "fill")],
                },
                _pot(2),
                (2,),
            ),
        ),
        "one_condition_for_two",
    ),
    Puzzle(
        "barbershop",
        "The barber sleeps",
        "Little Book: barbershop",
        "The barber's `cut` and the customer's `hair` come in either order, both before those of the next customer. A "
        "customer that is served is on no chair. One that finds all chairs taken calls `leave` at once, and not "
        "`hair`.",
        "A rendezvous of the barber and a customer at the beginning, and another at the end.",
        Barbershop,
        (
            Run(
                {
                    "a": [call("customer", "hair", "leaves?")],
                    "b": [call("customer", "hair", "leaves?")],
                    "barber": [call("barber", "cut"), call("barber", "cut")],
                },
                in_groups("cut hair"),
                (2,),
            ),
            Run(
                {
                    "a": [call("customer", "~hair a", "leaves a?", stays=5)],
                    "b": [call("customer", "~hair b", "leaves b?", at=1)],
                    "c": [call("customer", "~hair c?", "leaves c?", at=2)],
                    "barber": [call("barber", "cut"), call("barber", "cut")],
                },
                in_order("+hair a", "leaves c", "-hair a", "+hair b"),
                (1,),
            ),
        ),
        "lost_notify",
    ),
    Puzzle(
        "fifo_barbershop",
        "The barber serves in order",
        "Little Book: FIFO barbershop",
        "As `barbershop`; the customer that has come first is served first.",
        "A queue of semaphores, one for each customer that waits.",
        FifoBarbershop,
        (
            Run(
                {
                    "a": [call("customer", "hair", "leaves?")],
                    "b": [call("customer", "hair", "leaves?")],
                    "barber": [call("barber", "cut"), call("barber", "cut")],
                },
                in_groups("cut hair"),
                (2,),
            ),
            Run(
                {
                    "a": [call("customer", "hair a", "leaves?", at=1)],
                    "b": [call("customer", "hair b", "leaves?", at=2)],
                    "c": [call("customer", "hair c", "leaves?", at=3)],
                    "barber": [call("barber", "cut", at=4), call("barber", "cut"), call("barber", "cut")],
                },
                in_order("hair a", "hair b", "hair c"),
                (3,),
            ),
        ),
        "starved_writer",
    ),
    Puzzle(
        "busy_barbershop",
        "A sofa, and a till",
        "Little Book: Hilzer's barbershop",
        "A customer is on the sofa from `sit` to `hair`, and then with a barber, who calls `cut` after `hair` and "
        "`accept` after `pay`. Customers sit down, and are served, in the order in which they came. One that finds "
        "`room` others inside calls only `leave`.",
        "Two queues, one behind the other: the place that one frees lets in the next of the other.",
        BusyBarbershop,
        (
            Run(
                {
                    **{name: [call("customer", "sits", "hair", "pays", "leaves?")] for name in "ab"},
                    "barber": [call("barber", "cuts", "accepts")],
                    "other": [call("barber", "cuts", "accepts")],
                },
                everything(
                    never_more("sits", "hair", plus=1),
                    never_more("cuts", "hair"),
                    never_more("accepts", "pays"),
                    never_more("hair", "accepts", plus=2),
                ),
                (2, 1),
            ),
            Run(
                {
                    "a": [call("customer", "sits a", "hair a", "pays", "leaves a?", at=1)],
                    "b": [call("customer", "sits b", "hair b", "pays", "leaves b?", at=2)],
                    "c": [call("customer", "sits c?", "hair c?", "pays?", "leaves c?", at=3)],
                    "barber": [call("barber", "cuts", "accepts", at=4), call("barber", "cuts", "accepts")],
                },
                in_order("sits a", "leaves c", "hair a", "sits b", "hair b"),
                (2, 1),
            ),
        ),
        "starved_writer",
    ),
    Puzzle(
        "santa",
        "Santa Claus",
        "Little Book: Santa Claus",
        "A call of `santa` waits until all reindeer are back, and calls `prepare`; or until a group of elves has "
        "come, and calls `help_elves`. If both are there, the reindeer go first. They call `hitch` after `prepare`, "
        "and the elves `get_help` after `help_elves`; then the next group can be helped.",
        "Reindeer count up to all, elves up to a group; the next group starts when the last elf has been helped.",
        Santa,
        (
            Run(
                {
                    "santa": SANTA,
                    **{f"reindeer {name}": [call("reindeer", "hitches")] for name in "rs"},
                    **{f"elf {name}": [call("elf", "asks")] for name in "ef"},
                },
                everything(_once_each, before("prepares", "hitches"), before("helps", "asks")),
                (2, 2),
            ),
            Run(
                {
                    "santa": [call("santa", "prepares?", "helps?", at=2), SANTA[1]],
                    **{f"reindeer {name}": [call("reindeer", "hitches", at=1)] for name in "rs"},
                    **{f"elf {name}": [call("elf", "asks")] for name in "ef"},
                },
                in_order("prepares", "helps"),
                (2, 2),
            ),
            Run(
                {"santa": SANTA, **{f"elf {name}": [call("elf", "asks")] for name in "efgh"}},
                reads("helps asks asks helps asks asks"),
                (2, 2),
            ),
        ),
        "if_instead_of_while",
    ),
    Puzzle(
        "water",
        "H2O",
        "Little Book: building H2O",
        "Bonds come in threes: two of hydrogen and one of oxygen, in any order. None of the next three comes between.",
        "Let two and one in, then shut the door until all three have bonded.",
        Water,
        (
            Run(
                {
                    **{name: [call("hydrogen", "H")] for name in "ghij"},
                    **{name: [call("oxygen", "O")] for name in "op"},
                },
                in_groups("H H O"),
            ),
        ),
        "two_drains",
    ),
    Puzzle(
        "river",
        "Four in a boat",
        "Little Book: river crossing",
        "As soon as four that fit have come, all four board; then one of them rows. Four of a kind fit, or two of "
        "each; three of one kind and one of the other do not.",
        "Count those that wait. The one that completes a boat lets three others go, and is its captain.",
        River,
        (
            Run(
                {
                    **{name: [call("hacker", "H", "row?")] for name in "ghij"},
                    **{name: [call("serf", "S", "row?")] for name in "stuv"},
                },
                in_groups("H H S S row", "H H H H row", "S S S S row"),
            ),
            Run(
                {
                    **{name: [call("hacker", "H", "row?")] for name in "ghi"},
                    "s": [call("serf", "S", "row?")],
                    "j": [call("hacker", "H", "row?", at=1)],
                    **{name: [call("serf", "S", "row?", at=2)] for name in "tuv"},
                },
                reads("H H H H row S S S S row"),
            ),
        ),
        "check_then_act",
    ),
    Puzzle(
        "roller_coaster",
        "One car",
        "Little Book: roller coaster",
        "The acts come in this order, again and again: `load`, `n` times `board`, `go`, `unload`, `n` times `leave`.",
        "The last one that boards wakes the car, and so does the last one that leaves.",
        RollerCoaster,
        (
            Run(
                {"car": [CAR, CAR], "a": [RIDER, RIDER], "b": [RIDER, RIDER]},
                reads(" ".join(["load board board go unload leave leave"] * 2)),
                (2,),
            ),
        ),
        "one_condition_for_two",
    ),
    Puzzle(
        "many_cars",
        "Several cars",
        "Little Book: multi-car roller coaster",
        "Cars load in the order of their numbers, each with `n` passengers, and unload in this order. While one runs, "
        "the next can load, and run beside it.",
        "A turn for loading and a turn for unloading, each handed to the next car.",
        ManyCars,
        (
            Run(
                {
                    **{f"car {n}": [call("car", n, f"load{n}", f"~go{n}", f"unload{n}", stays=1)] for n in (0, 1)},
                    "a": [RIDER],
                    "b": [RIDER],
                },
                everything(
                    reads("load0 board load1 board", words="load0 load1 board"),
                    reads("unload0 leave unload1 leave", words="unload0 unload1 leave"),
                    in_order("load0", "+go0", "-go0", "unload0"),
                    in_order("load1", "+go1", "-go1", "unload1"),
                    side_by_side("go0", "go1"),
                ),
                (1, 2),
            ),
        ),
        "starved_writer",
    ),
)
