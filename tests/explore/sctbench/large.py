"""The sets CB, inspect, parsec and splash2, and ctrace: faults of large programs, at a reduced size."""

from __future__ import annotations

from threading import Condition, Lock

from explore.sctbench._program import Program, entry

__all__ = ["PROGRAMS"]


class Aget(Program, download=3, save=1):
    """A download is interrupted: the log has the bytes of each thread, and a sum of a later moment."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.offsets = [0] * 3
        self.written = 0
        self.log: tuple[list[int], int] = ([], 0)

    def download(self, number: int) -> None:
        for _ in range(2):
            if self.fixed:
                with self.lock:
                    self.offsets[number] += 10
                    self.written += 10
            else:
                self.offsets[number] += 10
                with self.lock:
                    self.written += 10

    def save(self) -> None:
        if self.fixed:
            with self.lock:
                self.log = (list(self.offsets), self.written)
        else:
            offsets = list(self.offsets)
            self.log = (offsets, self.written)

    def at_end(self) -> None:
        offsets, written = self.log
        assert sum(offsets) == written, f"{offsets}, and {written} in all"


class Pbzip2(Program, main=1, compress=2, write=1):
    """The queue is deleted when the writer has ended, and a thread that compresses still needs its lock."""

    def set_up(self) -> None:
        self.queue: Condition | None = Condition()
        self.blocks: list[int] = []
        self.compressed = 0
        self.all_read = False
        self.ended = Condition()
        self.writer_ended = False
        self.running = 2

    def main(self) -> None:
        queue = self.queue
        assert queue is not None
        for block in range(2):
            with queue:
                self.blocks.append(block)
                queue.notify_all()
        with queue:
            self.all_read = True
            queue.notify_all()
        with self.ended:
            self.ended.wait_for(lambda: self.writer_ended and not (self.fixed and self.running))
        self.queue = None

    def compress(self) -> None:
        while True:
            assert self.queue is not None, "the queue has been deleted"
            with self.queue as queue:
                while not self.blocks:
                    if self.all_read:
                        break
                    assert self.queue is not None, "the queue has been deleted"
                    self.queue.wait()
                if not self.blocks:
                    break
                self.blocks.pop()
            with self.ended:
                self.compressed += 1
                self.ended.notify_all()
            del queue
        with self.ended:
            self.running -= 1
            self.ended.notify_all()

    def write(self) -> None:
        with self.ended:
            self.ended.wait_for(lambda: self.compressed == 2)
            self.writer_ended = True
            self.ended.notify_all()


class StringBuffer(Program, append=1, erase=1):
    """The length of a buffer is asked for, and its characters are copied, by two calls that are atomic each."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.text = "abc"

    def append(self) -> None:
        if self.fixed:
            with self.lock:
                assert len(self.text[: len(self.text)]) == len(self.text)
            return
        with self.lock:
            length = len(self.text)
        with self.lock:
            assert length <= len(self.text), "the end is beyond the buffer"

    def erase(self) -> None:
        with self.lock:
            self.text = ""
        with self.lock:
            self.text += "abc"


class QsortMt(Program, serve=1, sort=1):
    """A thread of a pool is marked as busy before its lock is taken, and begins before it has got its work."""

    def set_up(self) -> None:
        self.allocation = Lock()
        self.state = "idle"
        self.changed = Condition(Lock())
        self.work: list[int] | None = None
        self.sorted: list[int] = []

    def serve(self) -> None:
        while True:
            with self.changed:
                while self.state == "idle":
                    self.changed.wait()
            if self.state == "end":
                return
            assert self.work is not None, "no work"
            self.sorted += sorted(self.work)
            with self.allocation:
                self.state = "idle"

    def sort(self) -> None:
        while True:
            with self.allocation:
                if self.state == "idle":
                    break
        if not self.fixed:
            self.state = "work"
        with self.changed:
            self.work = [3, 1, 2]
            self.state = "work"
            self.changed.notify()
        while True:
            with self.allocation:
                if self.state == "idle":
                    break
        with self.changed:
            self.state = "end"
            self.changed.notify()


class Ctrace(Program, main=1, end=2):
    """Two threads end the trace while a third writes to it."""

    def set_up(self) -> None:
        self.hash = Lock()
        self.on = True
        self.stream: list[str] | None = []

    def main(self) -> None:
        for line in ("i=0", "mystring"):
            if self.on:
                with self.hash:
                    if self.fixed and self.stream is None:
                        return
                    assert self.stream is not None, "the stream has been closed"
                    self.stream.append(line)
        self.end()

    def end(self) -> None:
        if self.on:
            with self.hash:
                if self.fixed and self.stream is None:
                    return
                assert self.stream is not None, "the stream is closed twice"
                self.stream = None
                self.on = False


class Ferret(Program, read=1, segment=1, extract=1, rank=1, write=1):
    """A pipeline: the last stage has counted all elements before it is said that there are no more.

    It sees an end only when it counts, so then it waits for ever: the reader has to be kept from its last step until
    all others have gone through all stages.
    """

    elements = 2

    def set_up(self) -> None:
        self.queues: list[list[int]] = [[] for _ in range(4)]
        self.changed = [Condition() for _ in range(4)]
        self.input_ended = False
        self.put = self.taken = 0

    def enqueue(self, stage: int, element: int) -> None:
        with self.changed[stage]:
            self.queues[stage].append(element)
            self.changed[stage].notify()

    def dequeue(self, stage: int) -> int:
        with self.changed[stage]:
            while not self.queues[stage]:
                if self.fixed and stage == 3 and self.input_ended and self.put == self.taken:
                    return -1
                self.changed[stage].wait()
            return self.queues[stage].pop(0)

    def read(self) -> None:
        for element in range(self.elements):
            self.put += 1
            self.enqueue(0, element)
        if self.fixed:
            with self.changed[3]:
                self.input_ended = True
                self.changed[3].notify()
        else:
            self.input_ended = True

    def pass_on(self, stage: int) -> None:
        for _ in range(self.elements):
            self.enqueue(stage + 1, self.dequeue(stage))

    def segment(self) -> None:
        self.pass_on(0)

    def extract(self) -> None:
        self.pass_on(1)

    def rank(self) -> None:
        self.pass_on(2)

    def write(self) -> None:
        while self.dequeue(3) >= 0:
            self.taken += 1
            if self.input_ended and self.put == self.taken:
                return


class Rendezvous:
    """The barrier of parsec: the last that leaves opens it again."""

    def __init__(self, parties: int) -> None:
        self.parties = parties
        self.inside = 0
        self.arriving = True
        self.changed = Condition()

    def wait(self) -> None:
        with self.changed:
            while not self.arriving:
                self.changed.wait()
            self.inside += 1
            if self.inside == self.parties:
                self.arriving = False
                self.changed.notify_all()
            while self.arriving:
                self.changed.wait()
            self.inside -= 1
            if self.inside == 0:
                self.arriving = True
                self.changed.notify_all()


class Streamcluster(Program, master=1, work=2):
    """A thread waits at one barrier where its master waits at two: it goes round, and finds the centre still open."""

    def set_up(self) -> None:
        self.barrier = Rendezvous(1 + self.size["work"])
        self.lock = Lock()
        self.opened = Condition(self.lock)
        self.open = False
        self.centre = 0
        self.costs: list[int] | None = None
        self.seen: list[list[int]] = [[] for _ in range(self.size["work"])]
        self.prepare()

    def prepare(self) -> None:
        self.costs = [0] * (1 + self.size["work"])

    def open_centre(self, centre: int) -> None:
        with self.lock:
            self.centre = centre
            self.open = True
            self.opened.notify_all()

    def master(self) -> None:
        self.open_centre(1)
        self.barrier.wait()
        self.open = False
        self.barrier.wait()
        self.open_centre(2)
        self.barrier.wait()

    def work(self, number: int) -> None:
        for centre in (1, 2):
            with self.lock:
                while not self.open:
                    self.opened.wait()
                assert self.centre == centre, "the centre is an old one"
            self.barrier.wait()
            if self.fixed and centre == 1:
                self.barrier.wait()


class Streamcluster2(Streamcluster, master=1, work=4):
    """No barrier stands between the master's allocation and the other threads' first use of it."""

    def prepare(self) -> None:
        self.costs = None

    def master(self) -> None:
        self.costs = [0] * (1 + self.size["work"])
        if self.fixed:
            self.barrier.wait()
        self.costs[0] = 1
        self.barrier.wait()

    def work(self, number: int) -> None:
        if self.fixed:
            self.barrier.wait()
        assert self.costs is not None, "used before it is allocated"
        self.costs[1 + number] = 1
        self.barrier.wait()


class Streamcluster3(Streamcluster):
    """The master frees what the other threads still add up."""

    def add_up(self, number: int) -> None:
        assert self.costs is not None
        self.barrier.wait()
        self.costs[number] = 1
        self.barrier.wait()
        total = 0
        for other in range(1 + self.size["work"]):
            assert self.costs is not None, "used after it is freed"
            total += self.costs[other]
        if self.fixed:
            self.barrier.wait()

    def master(self) -> None:
        self.add_up(0)
        self.costs = None

    def work(self, number: int) -> None:
        self.add_up(1 + number)


class Splash(Program, main=1, slave=1):
    """The macro that waits for the threads' end is empty: the main thread takes it that all have finished."""

    phases = 2

    def set_up(self) -> None:
        self.start = Rendezvous(2)
        self.lock = Lock()
        self.data = [1, 2]
        self.finished = 0
        self.slave_ended = Condition()
        self.ended = False

    def compute(self, number: int) -> None:
        for _ in range(self.phases):
            other = self.data[1 - number]
            self.start.wait()
            self.data[number] += other
            self.start.wait()
        with self.lock:
            self.finished += 1

    def main(self) -> None:
        self.compute(0)
        if self.fixed:
            with self.slave_ended:
                while not self.ended:
                    self.slave_ended.wait()
        assert self.finished == 2, "a thread has not finished"

    def slave(self) -> None:
        self.compute(1)
        with self.slave_ended:
            self.ended = True
            self.slave_ended.notify()


class Fft(Splash):
    phases = 1


class Barnes(Splash):
    phases = 4


PROGRAMS = [
    entry("CB.aget-bug2", Aget),
    entry("CB.pbzip2-0.9.4", Pbzip2),
    entry("CB.stringbuffer-jdk1.4", StringBuffer),
    entry("inspect.qsort_mt", QsortMt),
    entry("misc.ctrace-test", Ctrace),
    entry("parsec.ferret", Ferret),
    entry("parsec.streamcluster", Streamcluster),
    entry("parsec.streamcluster2", Streamcluster2),
    entry("parsec.streamcluster3", Streamcluster3),
    entry("splash2.barnes", Barnes),
    entry("splash2.fft", Fft),
    entry("splash2.lu", Splash),
]
