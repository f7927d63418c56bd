"""Threads that start threads."""

from __future__ import annotations

import threading
import time


class NotJoined:
    """Looks at what a thread has done before it has ended."""

    def __init__(self) -> None:
        self.result: int | None = None

    def work(self) -> None:
        self.result = 1

    def actor_main(self) -> None:
        thread = threading.Thread(target=self.work)
        thread.start()
        self.wait(thread)
        assert self.result == 1, "there is no result yet"

    def wait(self, thread: threading.Thread) -> None:
        time.sleep(0)


class Joined(NotJoined):
    def wait(self, thread: threading.Thread) -> None:
        thread.join()


class StartedBeforeSet:
    """Starts a thread that uses a field which is set afterwards."""

    def __init__(self) -> None:
        self.config: dict[str, int] | None = None
        self.used: list[object] = []

    def work(self) -> None:
        self.used.append(self.config)

    def actor_main(self) -> None:
        thread = threading.Thread(target=self.work)
        self.go(thread)
        thread.join()
        assert self.used == [{"n": 1}], self.used

    def go(self, thread: threading.Thread) -> None:
        thread.start()
        self.config = {"n": 1}


class SetBeforeStarted(StartedBeforeSet):
    def go(self, thread: threading.Thread) -> None:
        self.config = {"n": 1}
        thread.start()


class Worker(threading.Thread):
    """A thread that is to stop on a flag; it looks once too seldom."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = False
        self.after_stop = 0

    def run(self) -> None:
        for _ in range(3):
            if self.stopped:
                return
            self.step()

    def step(self) -> None:
        if self.stopped:
            self.after_stop += 1


class StopIgnored:
    """Takes it that a thread which has been asked to stop does nothing any more."""

    def __init__(self) -> None:
        self.worker = Worker()

    def actor_main(self) -> None:
        self.worker.start()
        self.stop()
        assert self.worker.after_stop == 0, "it worked on"

    def stop(self) -> None:
        self.worker.stopped = True
        self.worker.join()


class StopAfterJoin(StopIgnored):
    def stop(self) -> None:
        self.worker.join()
        self.worker.stopped = True


class BarrierReused:
    """Two phases, and the second one's barrier is forgotten."""

    phases = 1

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2)
        self.first = [0, 0]
        self.sums: list[int] = []

    def work(self, me: int) -> None:
        if self.phases == 2:
            self.first[me] = 1
            self.barrier.wait()
        else:
            self.barrier.wait()
            self.first[me] = 1
        self.sums.append(sum(self.first))

    def actor_a(self) -> None:
        self.work(0)

    def actor_b(self) -> None:
        self.work(1)

    def at_end(self) -> None:
        assert self.sums == [2, 2], self.sums


class BarrierBetween(BarrierReused):
    phases = 2


PAIRS = [
    (NotJoined, Joined),
    (StartedBeforeSet, SetBeforeStarted),
    (StopIgnored, StopAfterJoin),
    (BarrierReused, BarrierBetween),
]
