"""A lock is held while other code runs."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Display:
    """Shows what it is given, under a lock of its own, and under it takes itself off."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sensor: Sensor | None = None
        self.shown = 0  # lock
        self.closed = False  # lock
        self.after_close = 0  # lock

    def show(self) -> None:
        with self.lock:
            self.shown += 1
            self.after_close += self.closed

    def close(self) -> None:
        assert self.sensor is not None
        with self.lock:
            self.closed = True
            self.sensor.remove()


class Sensor:
    """Calls its display under its own lock."""

    def __init__(self, display: Display) -> None:
        self.lock = threading.Lock()
        self.display: Display | None = display  # lock

    def measure(self) -> None:
        with self.lock:
            if self.display is not None:
                self.display.show()

    def remove(self) -> None:
        with self.lock:
            self.display = None


class CallingOut:
    """One thread measures, another one closes the display."""

    sensor: type[Sensor] = Sensor

    def __init__(self) -> None:
        self.display = Display()
        self.display.sensor = self.sensor(self.display)

    def actor_measures(self) -> None:
        assert self.display.sensor is not None
        self.display.sensor.measure()

    def actor_closes(self) -> None:
        self.display.close()


class OpenCall(Sensor):
    """Decides under the lock, and calls without it."""

    def measure(self) -> None:
        with self.lock:
            display = self.display
        if display is not None:
            display.show()


class CallingFree(CallingOut):
    """The same, with a sensor that holds no lock while it calls."""

    sensor = OpenCall


class NoneAfterClose(CallingFree):
    """And nothing may be shown after the display was closed."""

    def at_end(self) -> None:
        assert self.display.after_close == 0, "shown after it was closed"


class ReentrantSensor(Sensor):
    """Its lock is reentrant."""

    def __init__(self, display: Display) -> None:
        super().__init__(display)
        self.lock = threading.RLock()  # type: ignore[assignment]


class Reentrant(CallingOut):
    """The first one with that."""

    sensor = ReentrantSensor


LESSON = Lesson(
    title="A lock held while calling out",
    terms=("deadlock", "open call", "alien method", "circular wait"),
    hazard="""A thread that calls a listener under a lock takes whatever locks the listener takes, after its own. The
    listener, which calls back under its lock, takes them the other way round. Neither class is wrong by itself, and no
    order of locks is written down that spans both.""",
    broken=CallingOut,
    question="Each class has one lock and takes it in `with`. Which two locks are taken in which two orders?",
    fixed=CallingFree,
    fix="hold a lock to read and to write, never to call: decide inside, call outside. That is an open call.",
    and_if=(
        AndIf(
            question="nothing may be shown after `close`?",
            answer="An open call may come after it: it was decided before. The listener has to be ready for that, and "
            "Reactive Streams says so for signals after `cancel` (rule 2.8).",
            program=NoneAfterClose,
            fails=True,
        ),
        AndIf(
            question="the lock of the sensor were reentrant?",
            answer="It lets in the thread that has it, and here two threads wait.",
            program=Reentrant,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="APScheduler 3.11.3: a scheduler that is shut down waits for a job, and the job for the scheduler "
            "(`python -m examples.found apscheduler`).",
            where="https://pypi.org/project/APScheduler/3.11.3/",
        ),
        Met(
            what="Goetz and others, Java Concurrency in Practice, 2006, section 10.1.4: open calls.",
            where="ISBN 978-0-321-34960-6",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
