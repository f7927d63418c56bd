"""Puzzles 5: a party, a bus, a court, and tables at which no one sits alone."""

from __future__ import annotations

from examples.puzzles.stage import (
    Act,
    Call,
    Log,
    Puzzle,
    Run,
    call,
    everything,
    in_order,
    reads,
    sooner,
)

__all__ = ["PUZZLES"]


class RoomParty:
    """The dean searches an empty room, or ends a party of `limit` or more, and stays until all are gone."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def student(self, enter: Act, stay: Act, leave: Act) -> None:
        enter()
        stay()
        leave()

    def dean(self, search: Act, end_party: Act, leave: Act) -> None:
        end_party()
        leave()


class Bus:
    """A bus with `n` seats takes the riders that wait when it comes, and departs when they are aboard."""

    def __init__(self, n: int) -> None:
        self.n = n

    def bus(self, depart: Act) -> None:
        depart()

    def rider(self, board: Act) -> None:
        board()


class Court:
    """While the judge is there no one comes in, and no immigrant leaves. The judge confirms those that are inside."""

    def immigrant(self, enter: Act, check_in: Act, swear: Act, leave: Act) -> None:
        enter()
        check_in()
        swear()
        leave()

    def spectator(self, enter: Act, leave: Act) -> None:
        enter()
        leave()

    def judge(self, enter: Act, confirm: Act, leave: Act) -> None:
        enter()
        confirm()
        leave()


class TidyCourt(Court):
    """As `Court`; the judge does not come again before all that were confirmed have left."""


class Table:
    """Students sit, dine, and leave. No student leaves another that still dines alone at the table."""

    def student(self, sit: Act, dine: Act, leave: Act) -> None:
        sit()
        dine()
        leave()


class CompanyAtTable(Table):
    """As `Table`; no student begins to dine alone."""


def _student(name: str, at: float = 0, stays: float = 0) -> dict[str, list[Call]]:
    return {name: [call("student", f"enters {name}", f"~stays {name}", f"leaves {name}", at=at, stays=stays)]}


def _party(log: Log) -> None:
    inside = 0
    ending = False
    for note in log:
        inside += note.startswith("enters") - note.startswith("leaves")
        if note == "searches":
            assert inside == 0, f"a search with {inside} inside: {', '.join(log)}"
        elif note == "ends it":
            assert inside >= 2, f"a party of {inside} was ended: {', '.join(log)}"
            ending = True
        elif note == "dean goes":
            assert not ending or inside == 0, f"the dean went before {inside} students: {', '.join(log)}"
            ending = False
        assert not (ending and note.startswith("enters")), f"{note!r} beside the dean: {', '.join(log)}"


def _dean(at: float = 0) -> list[Call]:
    return [call("dean", "searches?", "ends it?", "dean goes", at=at)]


def _immigrant(name: str, at: float = 0, stays: float = 0) -> dict[str, list[Call]]:
    acts = (f"enters {name}", f"checks in {name}", f"~swears {name}", f"leaves {name}")
    return {name: [call("immigrant", *acts, at=at, stays=stays)]}


def _judge(*times: float) -> dict[str, list[Call]]:
    return {"judge": [call("judge", "judge comes", "confirms", "judge goes", at=at) for at in times]}


SPECTATOR = {"spectator": [call("spectator", "enters s", "goes s")]}


def _court(log: Log) -> None:
    judge = False
    to_check = 0
    confirmed: set[str] = set()
    inside: set[str] = set()
    for note in log:
        name = note.split()[-1]
        if note in ("judge comes", "judge goes"):
            judge = note == "judge comes"
        assert not (judge and note.startswith(("enters", "leaves"))), f"{note!r} beside the judge: {', '.join(log)}"
        if note.startswith("enters") and name != "s":
            to_check += 1
            inside.add(name)
        elif note.startswith("checks in"):
            to_check -= 1
        elif note == "confirms":
            assert to_check == 0, f"{to_check} had not checked in: {', '.join(log)}"
            confirmed |= inside
        elif note.startswith("+swears"):
            assert name in confirmed, f"{note!r}, and not confirmed: {', '.join(log)}"


def _tidy(log: Log) -> None:
    second = len(log) - 1 - log[::-1].index("judge comes")
    late = [note for note in log[second:] if note.startswith("leaves")]
    assert not late, f"{late[0]!r} after the judge came again: {', '.join(log)}"


COURT = (
    Run({**_immigrant("i"), **_immigrant("j"), **SPECTATOR, **_judge(0, 1)}, _court),
    Run({**_immigrant("i", at=1), **_immigrant("j", at=3), **_judge(2, 4)}, _court),
)


def _diner(name: str, at: float = 0, stays: float = 0) -> dict[str, list[Call]]:
    return {name: [call("student", f"sits {name}", f"~dines {name}", f"leaves {name}", at=at, stays=stays)]}


def _left_alone(log: Log) -> None:
    seated = dining = 0
    for note in log:
        seated += note.startswith("sits") - note.startswith("leaves")
        dining += note.startswith("sits") - note.startswith("-dines")
        alone = note.startswith("leaves") and seated == dining == 1
        assert not alone, f"{note!r}, and one dines alone: {', '.join(log)}"


def _begins_alone(log: Log) -> None:
    seated = 0
    for note in log:
        seated += note.startswith("sits") - note.startswith("leaves")
        assert not (note.startswith("+dines") and seated < 2), f"{note!r} alone: {', '.join(log)}"


TABLE = (
    Run({**_diner("a"), **_diner("b")}, _left_alone),
    Run({**_diner("a"), **_diner("b"), **_diner("c")}, _left_alone),
    Run(
        {**_diner("a", stays=1), **_diner("b", stays=3), **_diner("c", at=2, stays=3)},
        everything(_left_alone, sooner("leaves a", "-dines b")),
    ),
)

PUZZLES = (
    Puzzle(
        "room_party",
        "The dean of students",
        "Little Book: room party",
        "If no student is inside, the dean calls `search`, then `leave`. If `limit` or more are, the dean calls "
        "`end_party`, and `leave` when all are gone. Otherwise the dean waits. While the dean is inside, no student "
        "comes in. A student is inside from `enter` to `leave`.",
        "Three states: no dean, a dean that waits, a dean inside. Call `enter` and `leave` with the state locked.",
        RoomParty,
        (
            Run({**_student("a"), **_student("b"), "dean": _dean()}, _party, (2,)),
            Run(
                {**_student("a", stays=5), **_student("b", at=2, stays=5), **_student("c", at=3), "dean": _dean(1)},
                everything(_party, in_order("enters a", "enters b", "ends it", "dean goes", "enters c")),
                (2,),
            ),
        ),
        "if_instead_of_while",
    ),
    Puzzle(
        "bus",
        "The bus",
        "Little Book: Senate bus",
        "A bus takes up to `n` of the riders that wait when it comes, and departs when all these have boarded. Riders "
        "that come later, or find no seat, wait for the next bus. A bus that finds no rider departs at once.",
        "Number the riders. A bus calls those up to a number, and departs when so many have boarded.",
        Bus,
        (
            Run(
                {
                    **{name: [call("rider", "boards", at=1)] for name in "abc"},
                    "bus": [call("bus", "departs", at=at) for at in (2, 3, 4)],
                },
                reads("boards boards departs boards departs departs"),
                (2,),
            ),
            Run(
                {
                    "a": [call("rider", "~boards a", at=1, stays=2)],
                    "b": [call("rider", "~boards b", at=3)],
                    "bus": [call("bus", "departs", at=at) for at in (2, 6)],
                },
                reads("+boards -boards departs +boards -boards departs"),
                (2,),
            ),
            Run(
                {"a": [call("rider", "boards a", at=1)], "bus": [call("bus", "departs", at=at) for at in (0, 2)]},
                reads("departs boards departs"),
                (2,),
            ),
        ),
        "check_then_act",
    ),
    Puzzle(
        "court",
        "Before the judge",
        "Little Book: Faneuil Hall",
        "The judge comes, and confirms when all immigrants inside have checked in. Then these swear, and they leave "
        "when the judge has left. While the judge is there, no one comes in; spectators leave when they like.",
        "One lock at the door, which the judge keeps; a count of those that have not checked in.",
        Court,
        COURT,
        "stale_cache",
    ),
    Puzzle(
        "tidy_court",
        "Before the judge comes again",
        "Little Book: extended Faneuil Hall",
        "As `court`; the judge waits outside until all that were confirmed the last time have left.",
        "The last of them to leave opens the door for the judge.",
        TidyCourt,
        (
            *COURT,
            Run(
                {**_immigrant("i", stays=5), **_immigrant("j", stays=5), **_judge(1, 2)},
                everything(_court, _tidy),
            ),
        ),
        "stale_cache",
    ),
    Puzzle(
        "table",
        "No one is left alone",
        "Little Book: dining hall",
        "A student that has dined waits while only one other is at the table, and that one is not done. It leaves "
        "when a third sits down, or when the other is done. One that has sat down is at the table, and not done.",
        "Two that would leave at the same time leave together: the second one lets the first go.",
        Table,
        TABLE,
        "write_skew",
    ),
    Puzzle(
        "company_at_table",
        "No one begins alone",
        "Little Book: extended dining hall",
        "As `table`; a student begins to dine only while another one is at the table.",
        "Count those at the table, and of these the ones that are done.",
        CompanyAtTable,
        (
            Run({**_diner("a"), **_diner("b")}, everything(_left_alone, _begins_alone)),
            Run(
                {
                    **_diner("a", stays=1),
                    **_diner("b", at=1, stays=1),
                    **_diner("c", at=3, stays=1),
                    **_diner("d", at=4, stays=1),
                },
                everything(_left_alone, _begins_alone),
            ),
        ),
        "write_skew",
    ),
)
