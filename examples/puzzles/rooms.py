"""Puzzles 4: rooms and a rope that only some may use at the same time."""

from __future__ import annotations

from examples.puzzles.stage import (
    Act,
    Call,
    Check,
    Log,
    Puzzle,
    Run,
    apart,
    at_most,
    before,
    call,
    everything,
    side_by_side,
    sooner,
    together,
)

__all__ = ["PUZZLES"]


class SearchInsertDelete:
    """A list: searches run together, inserts one at a time beside them, a delete alone."""

    def search(self, act: Act) -> None:
        act()

    def insert(self, act: Act) -> None:
        act()

    def delete(self, act: Act) -> None:
        act()


class Bathroom:
    """Holds up to `n` women or up to `n` men, and never both kinds."""

    def __init__(self, n: int) -> None:
        self.n = n

    def woman(self, act: Act) -> None:
        act()

    def man(self, act: Act) -> None:
        act()


class FairBathroom(Bathroom):
    """As `Bathroom`; one that comes later does not overtake one of the other kind that waits."""


class Baboons:
    """A rope across a canyon holds up to `n`, all in direction 0 or all in direction 1; none waits for ever."""

    def __init__(self, n: int) -> None:
        self.n = n

    def cross(self, direction: int, act: Act) -> None:
        act()


class ModusHall:
    """One path in the snow, and two factions, 0 and 1. Only one faction walks, and the larger one goes first."""

    def walk(self, faction: int, act: Act) -> None:
        act()


class SushiBar:
    """`n` seats. If all are taken, their guests are one party: those that come wait until all of it have left."""

    def __init__(self, n: int) -> None:
        self.n = n

    def eat(self, act: Act) -> None:
        act()


class ChildCare:
    """Up to `n` children for each adult. A child waits before it comes in, and an adult before it leaves."""

    def __init__(self, n: int) -> None:
        self.n = n

    def adult(self, come: Act, stay: Act, leave: Act) -> None:
        come()
        stay()
        leave()

    def child(self, stay: Act) -> None:
        stay()


class FullChildCare(ChildCare):
    """As `ChildCare`; a child for which there is an adult does not wait, even if this adult waits to leave."""


LIST = ("search", "insert", "delete")


def _list(name: str, kind: str, at: float = 0, stays: float = 0) -> dict[str, list[Call]]:
    return {name: [call(kind, f"~{kind} {name}", at=at, stays=stays)]}


LIST_RULES = everything(
    apart("delete", "search"), apart("delete", "insert"), at_most(1, "insert"), at_most(1, "delete")
)


def _comes(name: str, kind: str, at: float = 0, stays: float = 0) -> dict[str, list[Call]]:
    """A woman or a man; or a baboon or a member of a faction."""
    return {name: [call(kind, f"~{kind} {name}", at=at, stays=stays)]}


def _goes(method: str, side: int, name: str, at: float = 0, stays: float = 0) -> dict[str, list[Call]]:
    return {name: [call(method, side, f"~side{side} {name}", at=at, stays=stays)]}


BATHROOM = (
    Run(
        {**_comes("a", "woman"), **_comes("b", "woman"), **_comes("c", "man")},
        apart("woman", "man"),
        (2,),
    ),
    Run({**_comes("a", "man"), **_comes("b", "man"), **_comes("c", "man")}, at_most(2, "man"), (2,)),
    Run({**_comes("a", "woman", stays=2), **_comes("b", "woman", at=1)}, together(2, "woman"), (2,)),
)


def _cared(n: int) -> Check:
    def check(log: Log) -> None:
        adults = children = 0
        for note in log:
            adults += note.startswith("comes") - note.startswith("leaves")
            children += note.startswith("+child") - note.startswith("-child")
            assert children <= n * adults, f"{children} children and {adults} adults: {', '.join(log)}"

    return check


def _adult(name: str, stays: float) -> dict[str, list[Call]]:
    return {name: [call("adult", f"comes {name}", f"~stays {name}", f"leaves {name}", stays=stays)]}


def _child(name: str, stays: float, at: float = 0) -> dict[str, list[Call]]:
    return {name: [call("child", f"~child {name}", at=at, stays=stays)]}


CHILD_CARE = (
    Run({**_adult("a", 1), **_child("c", 2), **_child("d", 2)}, _cared(2), (2,)),
    Run({**_adult("a", 1), **_adult("b", 9), **_child("c", 3), **_child("d", 3), **_child("e", 3)}, _cared(2), (2,)),
)

PUZZLES = (
    Puzzle(
        "search_insert_delete",
        "Three kinds of users",
        "Little Book: search-insert-delete",
        "Searches run beside each other and one insert. Two inserts never run together, and a delete runs alone.",
        "Which pairs may not meet? Two counts and two locks will do, or one lock and three counts.",
        SearchInsertDelete,
        (
            Run({**_list("a", "search"), **_list("b", "insert"), **_list("c", "delete")}, LIST_RULES),
            Run({**_list("a", "insert"), **_list("b", "insert"), **_list("c", "delete")}, LIST_RULES),
            Run({**_list("a", "search", stays=2), **_list("b", "search", at=1)}, together(2, "search")),
            Run({**_list("a", "search", stays=2), **_list("b", "insert", at=1)}, side_by_side("search", "insert")),
        ),
        "torn_read",
    ),
    Puzzle(
        "bathroom",
        "One door, two kinds",
        "Little Book: unisex bathroom",
        "Women and men are never inside together. Up to `n` of one kind can be.",
        "The first of a kind shuts out the other, and the last lets it in; a semaphore counts to `n`.",
        Bathroom,
        BATHROOM,
        "lock_order",
    ),
    Puzzle(
        "fair_bathroom",
        "One door, and a queue",
        "Little Book: no-starve unisex bathroom",
        "As `bathroom`; a woman who comes while a man waits goes in after him, and the other way round.",
        "A turnstile at the door, in which one stays until there is room.",
        FairBathroom,
        (
            *BATHROOM,
            Run(
                {**_comes("a", "woman", stays=3), **_comes("b", "man", at=1), **_comes("c", "woman", at=2)},
                before("+man", "+woman c"),
                (2,),
            ),
        ),
        "starved_writer",
    ),
    Puzzle(
        "baboons",
        "A rope across the canyon",
        "Little Book: baboon crossing",
        "Up to `n` are on the rope, all in one direction. One that waits is not overtaken from the other side.",
        "It is the fair bathroom again.",
        Baboons,
        (
            Run(
                {**_goes("cross", 0, "a"), **_goes("cross", 0, "b"), **_goes("cross", 1, "c")},
                apart("side0", "side1"),
                (2,),
            ),
            Run(
                {**_goes("cross", 0, "a"), **_goes("cross", 0, "b"), **_goes("cross", 0, "c")},
                at_most(2, "side0"),
                (2,),
            ),
            Run(
                {**_goes("cross", 0, "a", stays=2), **_goes("cross", 0, "b", at=1)},
                together(2, "side0"),
                (2,),
            ),
            Run(
                {
                    **_goes("cross", 0, "a", stays=3),
                    **_goes("cross", 1, "b", at=1),
                    **_goes("cross", 0, "c", at=2),
                },
                before("+side1", "+side0 c"),
                (2,),
            ),
        ),
        "starved_writer",
    ),
    Puzzle(
        "modus_hall",
        "The majority walks",
        "Little Book: Modus Hall",
        "Only one faction is on the path. One that comes follows its own faction onto the path, unless more of the "
        "other faction wait than of its own walk. When the path becomes empty, the faction with more that wait goes "
        "first.",
        "Count both: those on the path and those that wait, and look at the counts each time they change.",
        ModusHall,
        (
            Run(
                {**_goes("walk", 0, "a"), **_goes("walk", 0, "b"), **_goes("walk", 1, "c")},
                apart("side0", "side1"),
            ),
            Run(
                {
                    **_goes("walk", 0, "a", stays=3),
                    **_goes("walk", 1, "b", at=1),
                    **_goes("walk", 1, "c", at=1),
                    **_goes("walk", 0, "d", at=2),
                },
                sooner("+side1", "+side0 d"),
            ),
            Run(
                {
                    **_goes("walk", 0, "a", stays=3),
                    **_goes("walk", 1, "b", at=1),
                    **_goes("walk", 0, "d", at=2),
                },
                sooner("+side0 d", "+side1"),
            ),
        ),
        "starved_writer",
    ),
    Puzzle(
        "sushi_bar",
        "The party",
        "Little Book: sushi bar",
        "At most `n` eat. From the moment at which all seats are taken, no one sits down until all seats are free.",
        "A flag: the last one to sit sets it, and the last one to leave clears it. A thread that wakes looks again.",
        SushiBar,
        (
            Run({name: [call("eat", f"~eats {name}")] for name in "abc"}, at_most(2, "eats"), (2,)),
            Run({name: [call("eat", f"~eats {name}")] for name in "abc"}, at_most(1, "eats"), (1,)),
            Run(
                {
                    "a": [call("eat", "~eats a", stays=4)],
                    "b": [call("eat", "~eats b", at=1, stays=1)],
                    "c": [call("eat", "~eats c", at=3)],
                },
                before("-eats a", "+eats c"),
                (2,),
            ),
            Run(
                {"a": [call("eat", "~eats a", stays=4)], "c": [call("eat", "~eats c", at=3)]},
                together(2, "eats"),
                (2,),
            ),
        ),
        "if_instead_of_while",
    ),
    Puzzle(
        "child_care",
        "An adult for a few children",
        "Little Book: child care",
        "There are never more than `n` children inside for each adult. A child comes in when there are adults enough, "
        "an adult leaves when the others are enough. All leave in the end, also if two adults want to at the same "
        "moment.",
        "An adult brings `n` permits. To leave it takes `n` back: all of them, or none.",
        ChildCare,
        (
            *CHILD_CARE,
            Run(
                {
                    **_adult("a", 1),
                    **_adult("b", 1),
                    **_child("c", 4),
                    **_child("d", 4),
                },
                everything(_cared(2), sooner("leaves", "-child")),
                (2,),
            ),
        ),
        "lock_order",
    ),
    Puzzle(
        "full_child_care",
        "No place is kept empty",
        "Little Book: extended child care",
        "As `child_care`; a child comes in at once if there are adults enough, even if one of them waits to leave.",
        "An adult that waits holds nothing: it counts, and looks again.",
        FullChildCare,
        (
            *CHILD_CARE,
            Run(
                {
                    **_adult("a", 1),
                    **_adult("b", 9),
                    **_child("c", 4),
                    **_child("d", 4),
                    **_child("e", 4),
                    **_child("f", 1, at=2),
                },
                everything(_cared(2), before("+child f", "-child c")),
                (2,),
            ),
        ),
        "nested_monitor",
    ),
)
