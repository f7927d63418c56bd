"""The one drain loop, and the demand it drains.

The problem: `request`, `cancel`, an element that arrives from another thread, may all come at any moment, from
any thread, and from inside the very signal they cause. Yet signals must be serial (1.3), demand must never be
exceeded (1.1) nor lost, and `request` inside `on_next` must not recurse (3.3).

The answer is the queue-drain of the field, with the demand merged into it. A thread that finds the drain idle owns it
and works; every other thread leaves a note and goes (`claim`). Before the owner leaves, it looks for notes, under the
lock that guards them, so that none can slip between its last look and its leaving.

    idle ──claim──▶ owned ──turn, notes?──▶ owned … ──turn, no notes──▶ idle
                      └──turn says CLOSED, or the executor rejects──▶ closed (final: no thread enters again)

Guarantees: `_turn` runs on at most one thread at a time, each turn sees what the one before wrote (the lock is
released and acquired in between), the depth of recursion is 1, demand is capped at MAX_DEMAND (3.17), the count
of what was taken is subtracted once per turn. No lock is held during a turn or a submission.

With an executor, turns run there: one task at a time, which gives the thread back after a batch of elements, so that a
thousand drains on a small pool progress together. Where the pool refuses a task, or drops it from its queue, the thread
that notices calls `rejected`. Before the owner gives a thread back, it may spin (`drains.spinning`).
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ClassVar, Final

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.ownership import owner_only, with_lock
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
"""Returned by the last turn."""


class Drain:
    """Demand, and at most one owner, which works it off."""

    __slots__ = ("__weakref__", "_busy", "_demand", "_missed", "_spent", "_spinning", "executor", "lock")

    batch: ClassVar[int] = BATCH
    """After so much work on an executor, the drain gives its thread back."""

    context: Any = None
    """The `Context` that the tasks run in, each in a copy of its own; None: in that of the executor's thread."""

    home: Executor | None = None
    """The executor on which a drain without one goes on after work without result; None: none. See `DrainContext`."""

    def __init__(self, executor: Executor | None = None, *, owned: bool = False) -> None:
        """Drain on `executor`, or without one on the thread that wakes the drain.

        `owned`: begin in the hands of the creator, who ends the hold with `_launch`.
        """
        self.executor: Executor | None = executor
        self.lock: primitives.Lock = primitives.Lock()
        self._demand = 0  # lock; 0 <= _demand <= MAX_DEMAND
        self._busy = owned  # lock; True while a thread owns the drain, and for ever once it is closed
        self._spinning = None if executor is None else Spinning()  # the owner's
        self._missed = False  # lock; a note was left while the drain was owned
        self._spent = False  # the owner's; a turn has used up its batch, whatever it has delivered

    @owner_only
    def _turn(self, allowance: int) -> int:
        """Work off at most `allowance` (0: only look around); return how much was taken, or CLOSED. Owner only."""
        raise NotImplementedError

    def rejected(self, error: RejectedError) -> None:
        """The executor will not run the turn that was due. Called by the owner; the drain is closed after it."""
        raise NotImplementedError

    def still_to_come(self) -> int | None:
        """How many elements may be left, for the end of the interpreter; None: that is not known."""
        return None

    def _left(self) -> None:
        """Called by the thread that has just released the drain, and owns it no more."""

    # -- the way in, and the way out: with the lock held -------------------------------------------------------

    @with_lock
    def claim(self) -> bool:
        """Own the drain; or, where a thread does, leave it a note.

        True: the caller owns it, and has to launch it.
        """
        if self._busy:
            self._missed = True
            return False
        self._busy = True
        return True

    @with_lock
    def leave(self) -> bool:
        """Own the drain no more. False: there is a note, which is taken, and the caller still owns it. Owner only."""
        if self._missed:
            self._missed = False
            return False
        self._busy = False
        return True

    # -- from any thread, without the lock ---------------------------------------------------------------------

    def add(self, n: int) -> None:
        """Add `n` to the demand; drain where no other thread does."""
        with self.lock:
            demand = self._demand + n
            self._demand = demand if demand < MAX_DEMAND else MAX_DEMAND  # 3.17: capped, never wrapped
            # `claim`, written out: a GIL may change hands at a call, and threads that ask meanwhile wait for the lock.
            owner = not self._busy
            if owner:
                self._busy = True
            else:
                self._missed = True
        if owner:
            self._launch()

    def wake(self) -> None:
        """Have the drain look around."""
        with self.lock:
            owner = self.claim()
        if owner:
            self._launch()

    def leave_note(self) -> bool:
        """Have the owner look around once more. False: there is no owner, and no note is left."""
        with self.lock:
            self._missed = self._missed or self._busy
            return self._busy

    def is_owned(self) -> bool:
        """Whether a thread owns it, or it is closed."""
        with self.lock:
            return self._busy

    def demand(self) -> int:
        """How much is owed; elements that the turn under way has taken count until it is over."""
        with self.lock:
            return self._demand

    # -- the owner ---------------------------------------------------------------------------------------------

    def has_note(self) -> bool:
        """Whether there is a note: a look without the lock, which may be late."""
        return self._missed

    def _launch(self) -> None:
        """Begin the owner's work: here, or as a task."""
        if self.executor is None:
            trampoline.launch(self.run)
        else:
            self._submit(resubmitted=False)

    @owner_only
    def spend(self) -> None:
        """Give way, and come back: the batch is used up, though not by elements that were delivered. Owner only."""
        self._spent = True
        with self.lock:
            self._missed = True

    # More complex than other functions: each request runs it, and would pay for every call into a part of it.
    def run(self) -> None:  # noqa: C901
        """Take turns until there is neither work nor a note. Owner only."""
        executor = self.executor
        budget = MAX_DEMAND if executor is None else self.batch
        spinning, spins = self._spinning, False
        first_turn = True  # nothing has been done since this task began
        owned = True  # not while it is handed on
        with self.lock:
            self._missed = False
            demand = self._demand
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
                    more = self._missed or (demand and taken == allowance)
                    if not (more or spins):
                        self._busy = False
                        break
                    self._missed = False
                if not more:
                    assert spinning is not None
                    spinning.spin(self.has_note)
                    spins = False
                elif executor is None:
                    if trampoline.others():
                        trampoline.later(self.run)
                        return
                    if self._spent:
                        self._spent = False
                        if self.home is not None:
                            owned = False
                            if not self._submit(resubmitted=True):
                                return
                            owned = True
                else:
                    budget -= taken or 1
                    if self._spent:  # a batch that ended with the task before is not counted twice
                        self._spent = False
                        budget = budget if first_turn and not taken else 0
                    first_turn = False
                    if budget <= 0:
                        owned = False
                        if not self._submit(resubmitted=True):
                            return
                        owned = True
                        budget, first_turn = self.batch, True
        except BaseException:
            if owned:
                with self.lock:
                    self._busy = False  # not held by a thread that is on its way out
            raise
        self._left()

    def _submit(self, *, resubmitted: bool) -> bool:
        """Hand the owner's work to the executor. True: it ran the task on this very thread, so go on here."""
        return self._hand_over(Task(self, resubmitted=resubmitted), resubmitted=resubmitted)

    def _hand_over(self, task: Task, *, resubmitted: bool) -> bool:
        executor = self.executor or self.home
        assert executor is not None
        if trampoline.refuses(executor):
            task.refuse(RejectedError(f"{executor_name(executor)} drops its tasks, and would not run a stream's"))
            return False
        under_way = task.under_way = activity.begun(self.context, executor) if activity.in_use else None
        try:
            future = handed_over(executor, task)
        except BaseException as error:
            if under_way is not None:
                under_way.end()
            if task.started:  # it ran right here, and this came out of it: not a refusal
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
    """One submission of a drain, which knows whether it ever ran."""

    __slots__ = ("drain", "returned", "started", "submitter", "under_way")

    def __init__(self, drain: Drain, *, resubmitted: bool) -> None:
        self.drain: Drain = drain
        self.started: bool = False  # written by the thread that runs the task, read once the future is done
        # The thread that is inside `submit`, from within the drain; 0 otherwise.
        self.submitter: int = primitives.get_ident() if resubmitted else 0
        self.returned: bool = False  # written and read by that thread only
        self.under_way: activity.UnderWay | None = None  # set once, before it is handed over

    def run(self) -> None:
        """Work the drain off."""
        self.drain.run()

    def refuse(self, error: RejectedError) -> None:
        """The executor will not run it."""
        self.drain.rejected(error)

    def __call__(self) -> None:
        """The executor runs it."""
        self.started = True
        if self.submitter == primitives.get_ident():
            # An executor that runs tasks where they are submitted: the drain is further down this very stack,
            # so it loops there instead of recursing here (3.3).
            self.returned = True
            return
        context = self.drain.context
        run = self.run if self.under_way is None else partial(self.under_way.run, self.run)
        if context is None:
            contained(run)
        else:
            contained(context.copy().run, run)

    def _reject(self, error: RejectedError) -> None:
        """On the thread that noticed; in the context that the task would have run in."""
        context = self.drain.context
        if context is None:
            self.refuse(error)
        else:
            context.copy().run(self.refuse, error)

    def settled(self, future: Future[Any]) -> None:
        """The future is done: signal that the task never ran, or report that it raised."""
        if not self.started or future.cancelled() or future.exception() is not None:
            contained(self._failed, future)

    def _failed(self, future: Future[Any]) -> None:
        if future.cancelled():
            if not self.started:
                # The executor may hold a lock of its own meanwhile, and a submission would wait for it for ever.
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
            if not goes_up(error):  # else it has been signalled, and has gone up where it was raised
                dropping.error_dropped("a stream's task raised in its executor", error)
        else:
            self._reject(caused(RejectedError(f"the executor could not run a stream's task: {error}"), error))
