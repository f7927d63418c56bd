"""The set CS: 29 small programs that were written to measure model checkers of C.

A thread that signals a condition holds its lock, as Python demands; in C it does not. A block that the original
declares to be atomic is one under a lock of its own.
"""

from __future__ import annotations

from threading import Condition, Lock

from explore.sctbench._program import Program, entry

__all__ = ["PROGRAMS"]


class Account(Program, check=1, deposit=1, withdraw=1):
    """The balance after a deposit and a withdrawal is looked at, by a formula that is wrong."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.balance = 1
        self.deposited = self.withdrawn = False

    def deposit(self) -> None:
        with self.lock:
            self.balance += 2
            self.deposited = True

    def withdraw(self) -> None:
        with self.lock:
            self.balance -= 4
            self.withdrawn = True

    def check(self) -> None:
        with self.lock:
            if self.deposited and self.withdrawn:
                assert self.balance == (1 + 2 - 4 if self.fixed else 1 - 2 - 4)


class ArithmeticProg(Program, produce=1, consume=1):
    """A consumer adds up what it takes, and the sum is what it must not be, in every schedule."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.empty, self.full = Condition(self.lock), Condition(self.lock)
        self.count = self.total = 0

    def produce(self) -> None:
        for _ in range(3):
            with self.lock:
                while self.count > 0:
                    self.empty.wait()
                self.count += 1
                self.full.notify()

    def consume(self) -> None:
        for number in range(3):
            with self.lock:
                while self.count == 0:
                    self.full.wait()
                self.total += number
                self.count -= 1
                self.empty.notify()
        self.total += 3

    def at_end(self) -> None:
        assert (self.total == 6) is self.fixed


class BluetoothDriver(Program, stop=1, add=1):
    """A driver is stopped between a request's look at the flag and its entry."""

    def set_up(self) -> None:
        self.atomic = Lock()
        self.pending = 1
        self.stopping = self.event = self.stopped = False

    def increment(self) -> bool:
        if self.stopping and not self.fixed:
            return False
        with self.atomic:
            self.pending += 1
        return not (self.fixed and self.stopping)

    def decrement(self) -> None:
        with self.atomic:
            self.pending -= 1
            pending = self.pending
        if pending == 0:
            self.event = True

    def add(self) -> None:
        if self.increment():
            assert not self.stopped
        self.decrement()

    def stop(self) -> None:
        self.stopping = True
        self.decrement()
        if self.event:
            self.stopped = True


class Carter01(Program, first=1, second=1, idle=2):
    """Two classes of threads share one lock for their counters, and wait for the resource with it."""

    def set_up(self) -> None:
        lock = Lock()
        self.locks = [lock, Lock() if self.fixed else lock]
        self.resource = Lock()
        self.counts = [0, 0]

    def use(self, kind: int) -> None:
        with self.locks[kind]:
            self.counts[kind] += 1
            if self.counts[kind] == 1:
                self.resource.acquire()
        with self.locks[kind]:
            self.counts[kind] -= 1
            if self.counts[kind] == 0:
                self.resource.release()

    def first(self) -> None:
        self.use(0)

    def second(self) -> None:
        self.use(1)

    def idle(self) -> None:
        pass


class CircularBuffer(Program, send=1, receive=1):
    """A consumer expects the i-th element in its i-th turn, whether it took one in each turn before or not."""

    turns = 7
    beforehand = 0

    def set_up(self) -> None:
        self.lock = Lock()
        self.buffer: list[int] = []
        self.taken = 0
        self.may_send = True

    def send(self) -> None:
        if self.beforehand:
            with self.lock:
                self.buffer.append(0)
        for number in range(self.beforehand, self.turns):
            with self.lock:
                if self.may_send:
                    self.buffer.append(number if not self.fixed else len(self.buffer))
                    self.may_send = False

    def receive(self) -> None:
        for number in range(self.turns):
            with self.lock:
                if not self.may_send:
                    element = self.buffer[self.taken]
                    assert element == (self.taken if self.fixed else number)
                    self.taken += 1
                    self.may_send = True


class Queue(CircularBuffer):
    """The same with a queue, an element in it beforehand, and more turns."""

    turns = 20
    beforehand = 1


class Deadlock01(Program, one=1, two=1):
    """Two threads take two locks in opposite orders."""

    def set_up(self) -> None:
        self.a, self.b = Lock(), Lock()
        self.counter = 1

    def one(self) -> None:
        with self.a, self.b:
            self.counter += 1

    def two(self) -> None:
        first, second = (self.a, self.b) if self.fixed else (self.b, self.a)
        with first, second:
            self.counter -= 1


class DinPhil(Program, philosopher=2):
    """Philosophers eat in turn, and the last one must not have eaten: it has, in nearly every schedule."""

    def set_up(self) -> None:
        self.atomic = Lock()
        self.forks = [Lock() for _ in range(self.size["philosopher"])]
        self.eaten = 0

    def philosopher(self, number: int) -> None:
        count = len(self.forks)
        with self.atomic, self.forks[(number + 1) % count], self.forks[number]:
            pass
        self.eaten += 1
        assert self.eaten < (count + 1 if self.fixed else count)


class Fsbench(Program, create=27):
    """A file system has a lock fewer than there are threads."""

    def set_up(self) -> None:
        self.blocks = 26
        self.inode_locks = [Lock() for _ in range(27 if self.fixed else 26)]
        self.block_locks = [Lock() for _ in range(26)]
        self.busy = [False] * 26
        self.inodes = [0] * 32

    def create(self, number: int) -> None:
        with self.inode_locks[number]:
            if self.inodes[number] == 0:
                block = number * 2 % self.blocks
                for _ in range(self.blocks // 2):
                    with self.block_locks[block]:
                        if not self.busy[block]:
                            self.busy[block] = True
                            self.inodes[number] = block + 1
                            break
                    block = (block + 1) % self.blocks


class Lazy01(Program, one=1, two=1, three=1):
    """A thread takes it that another two have not both run before it."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.data = 0

    def one(self) -> None:
        with self.lock:
            self.data += 1

    def two(self) -> None:
        with self.lock:
            self.data += 2

    def three(self) -> None:
        with self.lock:
            assert self.data < (4 if self.fixed else 3)


class Phase01(Program, work=2):
    """A lock is never released."""

    def set_up(self) -> None:
        self.x, self.y = Lock(), Lock()

    def work(self) -> None:
        with self.x:
            pass
        self.x.acquire()
        if self.fixed:
            self.x.release()
        for _ in range(2):
            with self.y:
                pass


class Reorder(Program, set=2, check=1):
    """Threads set two fields one after the other, others see one set and the other not."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.a = self.b = 0

    def set(self) -> None:
        if self.fixed:
            with self.lock:
                self.store()
        else:
            self.store()

    def store(self) -> None:
        self.a = 1
        self.b = -1

    def check(self) -> None:
        if self.fixed:
            with self.lock:
                self.look()
        else:
            self.look()

    def look(self) -> None:
        assert (self.a == 0 and self.b == 0) or (self.a == 1 and self.b == -1)


class Stack(Program, push=1, pop=1):
    """A flag says that there was an element once; a consumer takes it for an element that is there."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.elements: list[int] = []
        self.flag = False

    def push(self) -> None:
        for number in range(10):
            with self.lock:
                self.elements.append(number)
                self.flag = True

    def pop(self) -> None:
        for _ in range(10):
            with self.lock:
                if self.elements if self.fixed else self.flag:
                    self.elements.pop()


class Sync01(Program, produce=1, consume=1):
    """A producer waits for a consumer that takes nothing, in every schedule."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.empty, self.full = Condition(self.lock), Condition(self.lock)
        self.count = 1

    def produce(self) -> None:
        with self.lock:
            while self.count > 0:
                self.empty.wait()
            self.count += 1
            self.full.notify()

    def consume(self) -> None:
        with self.lock:
            while self.count == 0:
                self.full.wait()
            if self.fixed:
                self.count -= 1
            self.empty.notify()


class Sync02(Sync01):
    """There are two elements beforehand; the consumer takes two, and the producer waits for ever."""

    def set_up(self) -> None:
        super().set_up()
        self.count = 2

    def produce(self) -> None:
        for _ in range(2):
            with self.lock:
                while self.count > 0:
                    self.empty.wait()
                self.count += 1
                self.full.notify()

    def consume(self) -> None:
        for _ in range(4 if self.fixed else 2):
            with self.lock:
                while self.count == 0:
                    self.full.wait()
                self.count -= 1
                self.empty.notify()


class TokenRing(Program, one=1, two=1, three=1, check=1):
    """Three threads copy a token on, and are taken to run in their order."""

    def set_up(self) -> None:
        self.atomic = Condition()
        self.x = [1, 2, 1]
        self.done = [False] * 3

    def one(self) -> None:
        with self.atomic:
            self.x[0] = (self.x[2] + 1) % 4
            self.done[0] = True
            self.atomic.notify_all()

    def copy(self, to: int) -> None:
        with self.atomic:
            while self.fixed and not self.done[to - 1]:
                self.atomic.wait()
            self.x[to] = self.x[to - 1]
            self.done[to] = True
            self.atomic.notify_all()

    def two(self) -> None:
        self.copy(1)

    def three(self) -> None:
        self.copy(2)

    def check(self) -> None:
        with self.atomic:
            if all(self.done):
                assert self.x[0] == self.x[1] == self.x[2]


class Twostage(Program, write=1, read=1):
    """Two fields are set under a lock each; a reader sees the first set, and the second not."""

    def set_up(self) -> None:
        self.both = Lock()
        self.lock1, self.lock2 = Lock(), Lock()
        self.data1 = self.data2 = 0

    def write(self) -> None:
        if self.fixed:
            with self.both:
                self.store()
        else:
            self.store()

    def store(self) -> None:
        with self.lock1:
            self.data1 = 1
        with self.lock2:
            self.data2 = self.data1 + 1

    def read(self) -> None:
        if self.fixed:
            with self.both:
                self.look()
        else:
            self.look()

    def look(self) -> None:
        with self.lock1:
            if self.data1 == 0:
                return
            seen = self.data1
        with self.lock2:
            assert self.data2 == seen + 1


class Wronglock(Program, one=1, other=7):
    """One field, two locks."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.wrong = self.lock if self.fixed else Lock()
        self.data = 0

    def one(self) -> None:
        with self.lock:
            before = self.data
            self.data += 1
            assert self.data == before + 1

    def other(self) -> None:
        with self.wrong:
            self.data += 1


PROGRAMS = [
    entry("CS.account", Account),
    entry("CS.arithmetic_prog", ArithmeticProg),
    entry("CS.bluetooth_driver", BluetoothDriver),
    entry("CS.carter01", Carter01),
    entry("CS.circular_buffer", CircularBuffer),
    entry("CS.deadlock01", Deadlock01),
    *(entry(f"CS.din_phil{count}", DinPhil, philosopher=count) for count in range(2, 8)),
    entry("CS.fsbench", Fsbench),
    entry("CS.lazy01", Lazy01),
    entry("CS.phase01", Phase01),
    entry("CS.queue", Queue),
    entry("CS.reorder_3", Reorder, set=2),
    entry("CS.reorder_4", Reorder, set=3),
    entry("CS.reorder_5", Reorder, set=4),
    entry("CS.reorder_10", Reorder, set=9),
    entry("CS.reorder_20", Reorder, set=10, check=10),
    entry("CS.stack", Stack),
    entry("CS.sync01", Sync01),
    entry("CS.sync02", Sync02),
    entry("CS.token_ring", TokenRing),
    entry("CS.twostage", Twostage),
    entry("CS.twostage_100", Twostage, write=99),
    entry("CS.wronglock", Wronglock),
    entry("CS.wronglock_3", Wronglock, other=3),
]
