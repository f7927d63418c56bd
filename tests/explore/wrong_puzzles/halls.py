"""Wrong solutions of puzzles 5."""

from __future__ import annotations

from examples.puzzles.solutions import halls as right
from examples.puzzles.stage import Act

__all__ = ["WRONG"]


class DoorStaysOpen(right.RoomParty):
    """Students come in beside the dean."""

    def student(self, enter: Act, stay: Act, leave: Act) -> None:
        with self.when():
            self.students += 1
            enter()
        stay()
        with self.when():
            self.students -= 1
            leave()


class ImpatientDean(right.RoomParty):
    """Does not wait until all have left."""

    def dean(self, search: Act, end_party: Act, leave: Act) -> None:
        with self.when(lambda: self.students == 0 or self.students >= self.limit):
            if self.students == 0:
                search()
            else:
                end_party()
            leave()


class EndsAnyParty(right.RoomParty):
    def __init__(self, limit: int) -> None:
        super().__init__(1)


class LatecomersBoard(right.Bus):
    """A rider that comes while the bus loads boards it."""

    def bus(self, depart: Act) -> None:
        with self.when():
            self.called = min(self.came, self.called + self.n)
        with self.when(lambda: self.boarded == min(self.came, self.called)):
            depart()

    def rider(self, board: Act) -> None:
        with self.when():
            self.came += 1
            number = self.came
            if self.boarded < self.called:
                self.called = number
        with self.when(lambda: number <= self.called):
            pass
        board()
        with self.when():
            self.boarded += 1


class NoLimit(right.Bus):
    def __init__(self, n: int) -> None:
        super().__init__(99)


class WaitsForOne(right.Bus):
    """Does not depart empty."""

    def bus(self, depart: Act) -> None:
        with self.when(lambda: self.came > self.called):
            pass
        super().bus(depart)


class ConfirmsAtOnce(right.TidyCourt):
    """Does not wait until all have checked in."""

    def judge(self, enter: Act, confirm: Act, leave: Act) -> None:
        with self.when(self.ready):
            enter()
            self.judge_is_there = True
        with self.when():
            confirm()
            self.session += 1
            self.confirmed += self.inside
            self.inside = 0
        with self.when():
            leave()
            self.judge_is_there = False


class AnySession(right.Court):
    """An immigrant that comes after the first session swears at once: a flag that stays."""

    def immigrant(self, enter: Act, check_in: Act, swear: Act, leave: Act) -> None:
        with self.when(lambda: not self.judge_is_there):
            enter()
            self.to_check += 1
            self.inside += 1
        with self.when():
            check_in()
            self.to_check -= 1
        with self.when(lambda: self.session > 0):
            pass
        swear()
        with self.when(lambda: not self.judge_is_there):
            leave()


class LeavesBesideTheJudge(right.Court):
    def judge(self, enter: Act, confirm: Act, leave: Act) -> None:
        super().judge(enter, confirm, lambda: None)
        leave()


class LeavesAtOnce(right.Table):
    def student(self, sit: Act, dine: Act, leave: Act) -> None:
        with self.when():
            sit()
        dine()
        with self.when():
            leave()


class WaitsForAll(right.Table):
    """Leaves when no one eats: also where a third one came, it waits."""

    def student(self, sit: Act, dine: Act, leave: Act) -> None:
        with self.when():
            sit()
            self.eating += 1
        dine()
        with self.when():
            self.eating -= 1
        with self.when(lambda: self.eating == 0):
            leave()


class TheOtherDecides(right.CompanyAtTable):
    """Waits until a second one has come, and does not look whether it is still there when a third begins."""

    together = False

    def begin(self) -> None:
        with self.when(lambda: self.together or self.eating + self.done >= 2):
            self.together = True


DEADLOCK = "no thread can go on"

WRONG: dict[str, list[tuple[type, str]]] = {
    "room_party": [
        (DoorStaysOpen, "beside the dean"),
        (ImpatientDean, "the dean went before"),
        (EndsAnyParty, "a party of 1 was ended"),
    ],
    "bus": [
        (LatecomersBoard, "in place of +boards"),
        (NoLimit, "in place of boards boards departs"),
        (WaitsForOne, DEADLOCK),
    ],
    "court": [
        (ConfirmsAtOnce, "had not checked in"),
        (AnySession, "and not confirmed"),
        (LeavesBesideTheJudge, "beside the judge"),
    ],
    "tidy_court": [(right.Court, "after the judge came again"), (ConfirmsAtOnce, "had not checked in")],
    "table": [(LeavesAtOnce, "one dines alone"), (WaitsForAll, "came before any 'leaves a'")],
    "company_at_table": [(right.Table, "alone"), (TheOtherDecides, "'+dines c' alone")],
}
