"""Two threads try two locks, give up, wait for the same time, and try again."""

from __future__ import annotations

import threading
import time

from examples.hazards.lesson import AndIf, Lesson, Met


class Transfer:
    """Each takes its own lock, tries the other one, and where that is taken backs off for two seconds."""

    def __init__(self) -> None:
        self.locks = [threading.Lock(), threading.Lock()]
        self.tries = [0, 0]

    def actor_there(self) -> None:
        self.transfer(0)

    def actor_back(self) -> None:
        self.transfer(1)

    def transfer(self, me: int) -> None:
        while not self.done(me):
            time.sleep(self.pause(me))

    def done(self, me: int) -> bool:
        self.tries[me] += 1
        with self.locks[me]:
            if not self.locks[1 - me].acquire(blocking=False):
                return False
            self.locks[1 - me].release()
            return True

    def pause(self, me: int) -> float:
        return 2.0

    def at_end(self) -> None:
        assert max(self.tries) <= 2, f"it took {self.tries} tries, and nothing says that it ever ends"


class InOrder(Transfer):
    """Takes the locks in one order, and never has to back off."""

    def done(self, me: int) -> bool:
        self.tries[me] += 1
        with self.locks[0], self.locks[1]:
            return True


class UnlikePauses(Transfer):
    """The second pauses for longer, each time."""

    def pause(self, me: int) -> float:
        return 2.0 + 4.0 * me


class LongerPauses(Transfer):
    """The pause grows from try to try, and it is the same for both."""

    def pause(self, me: int) -> float:
        return 2.0 ** self.tries[me]


LESSON = Lesson(
    title="Livelock by backing off",
    terms=("livelock", "try-lock", "back-off", "lock step"),
    hazard="""To avoid a deadlock, each thread only tries the second lock, and where it does not get it releases the
    first, pauses, and begins anew. Both pause for the same time. So they come back together, and do the same again.""",
    broken=Transfer,
    question="No thread keeps a lock while it pauses. Why does none get both?",
    fixed=InOrder,
    fix="take the locks in one order; then there is nothing to back off from.",
    and_if=(
        AndIf(
            question="each paused for another time?",
            answer="They fall out of step, and the second try succeeds, unless a thread is preempted for as long as "
            "the pauses differ. Random pauses do this for more threads.",
            program=UnlikePauses,
            fails=False,
        ),
        AndIf(
            question="the pause grew, for both alike?",
            answer="They stay in step: it is the difference that helps.",
            program=LongerPauses,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Metcalfe and Boggs, Ethernet: Distributed Packet Switching for Local Computer Networks, 1976: "
            "stations that collide retry after random times, for this.",
            where="https://doi.org/10.1145/360248.360253",
        ),
    ),
    gil="either way",
    gil_note="The program counts tries: that it goes on for ever no finite schedule shows.",
)

if __name__ == "__main__":
    LESSON.teach()
