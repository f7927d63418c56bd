"""The one drain loop, and the demand that it works off.

The problem: any thread may call `request` or `cancel`, or bring an element, at any moment, also from inside `on_next`.
Yet signals must be serial (1.3), demand must be neither exceeded (1.1) nor lost, and `request` inside `on_next` must
not recurse (3.3).

The answer is the queue-drain loop of RxJava and Reactor; one lock owns its `wip` and its `requested`. A thread that
finds the drain idle becomes its *owner*; any other thread leaves a *note* and returns (`claim`). The owner takes
*turns*. After each turn it looks for a note under the lock, and releases the drain only if there is none, so no note is
lost.

    idle ──claim──▶ owned ──turn: a note, or more to do──▶ owned … ──turn: neither──▶ idle
                      ├──turn raises──▶ idle
                      └──turn returns CLOSED, or the executor rejects the task──▶ closed (final: no more turns)

Guarantees: at most one thread at a time runs `_turn`; each turn sees the writes of the turn before, through the lock;
a drain does not recurse into itself; demand is at most MAX_DEMAND (3.17), and each turn subtracts its elements once. No
thread holds the lock during a turn or a submission.

Without an executor, turns run on the claiming thread, and the drains that wait on that thread alternate
(`drains.trampoline`). With one, turns run in a task; there is one at a time. After `batch` elements, or after 10 ms if
another task waits for the thread (`drains.pace`), the task submits the next one and returns its thread, so a thousand
drains share a small pool. The upstreams of one flow share one place in the pool's queue (`drains.shared_place`). If the
pool rejects a task, or drops it from its queue, the thread that notices calls `rejected`. Before the owner returns a
thread it may spin (`drains.spinning`).
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ClassVar, Final

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.ownership import owner_only, with_lock
from reactive_runtime._core.drains.pace import Pace, task_begins, task_ends
from reactive_runtime._core.drains.spinning import Spinning
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import caused
from reactive_runtime._core.failures.exits import (
    cancelled_in_queue,
    contained,
    goes_up,
    going_on,
    handed_over,
    is_ending,
    not_run_by,
    refused_by,
)
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.errors import RejectedError

__all__ = ["BATCH", "CLOSED", "Drain", "Task"]

BATCH: Final = 1024
"""Elements after which a drain on an executor gives its thread back."""

CLOSED: Final = -1
"""The result of the last turn."""


class Drain:
    """Demand, and at most one owner at a time, which works it off."""

    __slots__ = (
        "__weakref__",
        "_busy",
        "_cut",
        "_demand",
        "_missed",
        "_spent",
        "_spinning",
        "executor",
        "lock",
        "pace",
    )

    batch: ClassVar[int] = BATCH
    """The number of elements, or of turns without any, after which a task returns its thread to the executor."""

    context: Any = None
    """Each task runs in a copy of this `Context`; None: in the context of the executor's thread."""

    home: Executor | None = None
    """A drain without an executor goes on here after `spend`; None: on the same thread. See `DrainContext`."""

    def __init__(self, executor: Executor | None = None, *, owned: bool = False) -> None:
        """Drain on `executor`; None: on the thread that claims the drain.

        `owned`: the creating thread is the first owner, until it calls `_launch`.
        """
        self.executor: Executor | None = executor
        self.lock: primitives.Lock = primitives.Lock()
        self._demand = 0  # lock; 0 <= _demand <= MAX_DEMAND
        self._busy = owned  # lock; True while the drain is owned or closed
        self._spinning = None if executor is None else Spinning()  # the owner's
        self.pace: Pace | None = None if executor is None else Pace(self.batch)  # the owner's
        self._cut = False  # the owner's; a turn has taken less than it might, to look at the clock
        self._missed = False  # lock; a note was left while the drain was owned
        self._spent = False  # the owner's; the last turn has called `spend`

    @owner_only
    def _turn(self, allowance: int) -> int:
        """Work off up to `allowance` of the demand (0: only an end); return how much, or CLOSED. Owner only.

        Less than `allowance` means that there is no more now: the next turn waits for a note.
        """
        raise NotImplementedError

    def rejected(self, error: RejectedError) -> None:
        """The executor will not run the task that owns the drain, which is closed after this. Called on any thread."""
        raise NotImplementedError

    def still_to_come(self) -> int | None:
        """How many elements are left at most, None if unknown: asked when the interpreter ends, see `going_on`."""
        return None

    def _left(self) -> None:
        """Called after `run` has released or closed the drain, on the same thread, without the lock."""

    # -- claim and leave: with the lock held -------------------------------------------------------------------

    @with_lock
    def claim(self) -> bool:
        """Become the owner, and then call `_launch`. False: another thread is the owner, and has a note now."""
        if self._busy:
            self._missed = True
            return False
        self._busy = True
        return True

    @with_lock
    def leave(self) -> bool:
        """Release the drain. False: there was a note, which is taken, and the caller is still the owner. Owner only."""
        if self._missed:
            self._missed = False
            return False
        self._busy = False
        return True

    # -- from any thread, without the lock ---------------------------------------------------------------------

    def add(self, n: int) -> None:
        """Add `n` to the demand, and wake the drain."""
        with self.lock:
            demand = self._demand + n
            self._demand = demand if demand < MAX_DEMAND else MAX_DEMAND  # 3.17: capped, never wrapped
            # `claim`, written out: a GIL may change threads at a call, and other callers then wait for the lock.
            owner = not self._busy
            if owner:
                self._busy = True
            else:
                self._missed = True
        if owner:
            self._launch()

    def wake(self) -> None:
        """Claim the drain, and launch it if it was idle."""
        with self.lock:
            owner = self.claim()
        if owner:
            self._launch()

    def leave_note(self) -> bool:
        """Leave a note for the owner. False: the drain is idle, and there is no note."""
        with self.lock:
            self._missed = self._missed or self._busy
            return self._busy

    def is_owned(self) -> bool:
        """Whether the drain is owned or closed."""
        with self.lock:
            return self._busy

    def demand(self) -> int:
        """The demand left; it includes the elements of the present turn until that turn is over."""
        with self.lock:
            return self._demand

    # -- the owner ---------------------------------------------------------------------------------------------

    def has_note(self) -> bool:
        """Whether there is a note. Reads without the lock, so the answer may be late."""
        return self._missed

    def _launch(self) -> None:
        """Run the owner's loop: on this thread, or as a task on the executor. Owner only."""
        if self.executor is None:
            trampoline.launch(self.run)
        else:
            self._submit(resubmitted=False)

    @owner_only
    def spend(self) -> None:
        """Make `run` yield the thread after this turn, and come back: the turn has done enough work. Owner only."""
        self._spent = True
        with self.lock:
            self._missed = True

    # Complex, and in one piece: each request runs it, and every further call in it would cost time.
    def run(self) -> None:  # noqa: C901
        """Take turns until there is neither more to do nor a note. Owner only."""
        executor = self.executor
        budget = MAX_DEMAND if executor is None else self.batch
        spinning, spins, pace = self._spinning, False, self.pace
        first_turn = True  # of this task
        owned = True  # False while ownership passes to a further task
        with self.lock:
            self._missed = False
            demand = self._demand
        if pace is not None:
            pace.begin()
        try:
            while True:
                allowance = demand if demand < budget else budget
                taken = self._turn(allowance)
                if taken == CLOSED:
                    break
                if taken and spinning is not None:
                    spins = True
                with self.lock:
                    if self._demand != MAX_DEMAND:  # unbounded demand is not accounted for
                        self._demand -= taken
                    demand = self._demand
                    more = self._missed or (demand and (taken == allowance or self._cut))
                    if not (more or spins):
                        self._busy = False
                        break
                    self._missed = False
                if self._cut:
                    self._cut = False
                if not more:
                    assert spinning is not None
                    assert pace is not None
                    if not pace.is_over(executor):  # others need the thread: it does not wait on it
                        spinning.spin(self.has_note)
                    spins = False
                    budget -= taken
                    with self.lock:  # the next turn sees to the note, and to new demand
                        self._missed = False
                        demand = self._demand
                elif executor is None:
                    if self._spent:
                        self._spent = False
                        if self.home is not None:  # first: those that wait here may go on for ever
                            owned = False
                            if not self._submit(resubmitted=True):
                                return
                            owned = True
                            continue
                    if trampoline.others() or trampoline.wanted():
                        trampoline.gave_way(self)
                        return
                else:
                    budget -= taken or 1
                    if self._spent:  # in a first turn without elements, by a batch that the task before ended
                        self._spent = False
                        budget = budget if first_turn and not taken else 0
                    first_turn = False
                    assert pace is not None
                    if budget <= 0 or pace.is_over(executor):
                        owned = False
                        if not self._submit(resubmitted=True):
                            return
                        owned = True
                        budget, first_turn = self.batch, True
                        pace.begin()
        except BaseException:
            if owned:
                with self.lock:
                    self._busy = False  # this thread will not come back
            raise
        self._left()

    def _submit(self, *, resubmitted: bool) -> bool:
        """Submit the owner's loop as a task. True: the executor ran it on this very thread, so go on here."""
        return self._hand_over(Task(self, resubmitted=resubmitted), resubmitted=resubmitted)

    def _put_in_line(self, executor: Executor, task: Task) -> Future[Any]:
        """Submit the task."""
        return handed_over(executor, task)

    def _hand_over(self, task: Task, *, resubmitted: bool) -> bool:
        executor = self.executor or self.home
        assert executor is not None
        if trampoline.refuses(executor):
            task.refuse(RejectedError(f"{executor_name(executor)} drops its tasks, and would not run a stream's"))
            return False
        under_way = task.under_way = activity.begun(self.context, executor) if activity.in_use else None
        try:
            future = self._put_in_line(executor, task)
        except BaseException as error:
            if under_way is not None:
                under_way.end()
            if task.started:  # the task ran inside `submit` and raised: no rejection
                raise
            if is_ending(error) and (not resubmitted or going_on(self.still_to_come())):
                if not resubmitted:
                    task()
                return resubmitted
            task.refuse(refused_by(executor, error))
            if goes_up(error):
                raise
            return False
        task.submitter = 0
        future.add_done_callback(task.settled if under_way is None else under_way.last(task.settled))
        return task.returned


class Task:
    """One submission of a drain. It notes whether it ran."""

    __slots__ = ("drain", "returned", "started", "submitter", "under_way")

    def __init__(self, drain: Drain, *, resubmitted: bool) -> None:
        self.drain: Drain = drain
        self.started: bool = False  # written by the thread that runs the task, read once the future is done
        # The thread that calls `submit`, if `run` is below on its stack; otherwise, and after the call, 0.
        self.submitter: int = primitives.get_ident() if resubmitted else 0
        self.returned: bool = False  # written and read by that thread only
        self.under_way: activity.UnderWay | None = None  # set once, before it is handed over

    def run(self) -> None:
        """Run the owner's loop."""
        self.drain.run()

    def refuse(self, error: RejectedError) -> None:
        """The executor will not run it."""
        self.drain.rejected(error)

    def __call__(self) -> None:
        """The executor runs it."""
        self.started = True
        if self.submitter == primitives.get_ident():
            # The executor runs tasks inside `submit`, and `run` is below on this stack: it goes on there, without
            # recursion (3.3).
            self.returned = True
            return
        context = self.drain.context
        run = self.run if self.under_way is None else partial(self.under_way.run, self.run)
        task_begins()
        try:
            if context is None:
                contained(run)
            else:
                contained(context.copy().run, run)
        finally:
            task_ends()

    def _reject(self, error: RejectedError) -> None:
        """Call `refuse` on this thread, in a copy of the drain's context."""
        context = self.drain.context
        if context is None:
            self.refuse(error)
        else:
            context.copy().run(self.refuse, error)

    def settled(self, future: Future[Any]) -> None:
        """Called when the future is done: reject if the task never ran; report an error that it raised."""
        if not self.started or future.cancelled() or future.exception() is not None:
            contained(self._failed, future)

    def _failed(self, future: Future[Any]) -> None:
        if future.cancelled():
            if not self.started:
                # The executor may hold its lock now: a submission on this thread would wait for it for ever.
                here, executor = trampoline.here, self.drain.executor or self.drain.home
                before, here.refusing = getattr(here, "refusing", None), executor
                try:
                    self._reject(cancelled_in_queue())
                finally:
                    here.refusing = before
            return
        error = future.exception()
        if error is None:
            if not self.started:
                self._reject(not_run_by(self.drain.executor or self.drain.home))
        elif self.started:
            if not goes_up(error):  # if it does, its stream has signalled it already
                dropping.error_dropped("a stream's task raised in its executor", error)
        else:
            self._reject(caused(RejectedError(f"the executor could not run a stream's task: {error}"), error))
