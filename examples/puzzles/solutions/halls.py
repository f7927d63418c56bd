"""Solutions of puzzles 5."""

from __future__ import annotations

from examples.puzzles.monitor import Monitor
from examples.puzzles.stage import Act

__all__ = ["SOLUTIONS"]


class RoomParty(Monitor):
    """A count, and whether the dean is inside."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.students = 0
        self.dean_is_inside = False

    def student(self, enter: Act, stay: Act, leave: Act) -> None:
        with self.when(lambda: not self.dean_is_inside):
            self.students += 1
            enter()
        stay()
        with self.when():
            self.students -= 1
            leave()

    def dean(self, search: Act, end_party: Act, leave: Act) -> None:
        with self.when(lambda: self.students == 0 or self.students >= self.limit):
            self.dean_is_inside = True
            if self.students == 0:
                search()
            else:
                end_party()
        with self.when(lambda: self.students == 0):
            self.dean_is_inside = False
            leave()


class Bus(Monitor):
    """Numbers of riders: up to which they have come, were called, and have boarded."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.came = self.called = self.boarded = 0

    def bus(self, depart: Act) -> None:
        with self.when(lambda: self.boarded == self.called):
            self.called = last = min(self.came, self.called + self.n)
        with self.when(lambda: self.boarded == last):
            depart()

    def rider(self, board: Act) -> None:
        with self.when():
            self.came += 1
            number = self.came
        with self.when(lambda: number <= self.called):
            pass
        board()
        with self.when():
            self.boarded += 1


class TidyCourt(Monitor):
    """Sessions have numbers: who was inside in one is confirmed when the number is over."""

    def __init__(self) -> None:
        super().__init__()
        self.judge_is_there = False
        self.session = 0
        self.to_check = self.inside = self.confirmed = 0

    def immigrant(self, enter: Act, check_in: Act, swear: Act, leave: Act) -> None:
        with self.when(lambda: not self.judge_is_there):
            enter()
            session = self.session
            self.to_check += 1
            self.inside += 1
        with self.when():
            check_in()
            self.to_check -= 1
        with self.when(lambda: self.session > session):
            pass
        swear()
        with self.when(lambda: not self.judge_is_there):
            leave()
            self.confirmed -= 1

    def spectator(self, enter: Act, leave: Act) -> None:
        with self.when(lambda: not self.judge_is_there):
            enter()
        leave()

    def judge(self, enter: Act, confirm: Act, leave: Act) -> None:
        with self.when(self.ready):
            enter()
            self.judge_is_there = True
        with self.when(lambda: self.to_check == 0):
            confirm()
            self.session += 1
            self.confirmed += self.inside
            self.inside = 0
        with self.when():
            leave()
            self.judge_is_there = False

    def ready(self) -> bool:
        """Whether the judge may come; with the lock held."""
        return self.confirmed == 0


class Court(TidyCourt):
    """The judge may come at any time."""

    def ready(self) -> bool:
        return True


class Table(Monitor):
    """Those that eat, and those that are done."""

    eating = done = 0

    def student(self, sit: Act, dine: Act, leave: Act) -> None:
        with self.when():
            sit()
            self.eating += 1
        self.begin()
        dine()
        with self.when():
            self.eating -= 1
            self.done += 1
        with self.when(lambda: not (self.eating == 1 and self.done == 1)):
            self.done -= 1
            leave()

    def begin(self) -> None:
        """Return when it may dine."""


class CompanyAtTable(Table):
    """Begins when a second one is there."""

    def begin(self) -> None:
        with self.when(lambda: self.eating + self.done >= 2):
            pass


SOLUTIONS: dict[str, list[type]] = {
    "room_party": [RoomParty],
    "bus": [Bus],
    "court": [Court],
    "tidy_court": [TidyCourt],
    "table": [Table],
    "company_at_table": [CompanyAtTable],
}
