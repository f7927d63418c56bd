"""The one drain loop, and the demand it drains.

The problem: `request`, `cancel`, an element that arrives from another thread, may all come at any moment, from
any thread, and from inside the very signal they cause. Yet signals must be serial (1.3), demand must never be
exceeded (1.1) nor lost, and `request` inside `on_next` must not recurse (3.3).

The answer is the queue-drain of the field, with the demand merged into it: the thread that finds the drain
idle owns it and works; every other leaves a note and goes. Before the owner leaves it looks for notes, under the same
lock that they are left under, so that none can slip between its last look and its leaving.

    idle ──_add(n)──▶ owned ──turn, notes?──▶ owned … ──turn, no notes──▶ idle
                        └──turn says CLOSED, or the executor rejects──▶ closed (final: no thread enters)

Guarantees: `_turn` runs on at most one thread at a time, each turn sees what the one before wrote (the lock is
released and acquired in between), the depth of recursion is 1, demand is capped at MAX_DEMAND (3.17), the count
of what was taken is subtracted once per turn. No lock is held during a turn or a submission.

With an executor, turns run there: one task at a time, which gives the thread back after a batch of elements, so
that a thousand drains on a small pool progress together. A task that is refused, or dropped from the pool's
queue before it ran, is handed to `_rejected`, on the thread that noticed.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any, ClassVar, Final

from reactive_runtime._core import hooks, primitives, trampoline
from reactive_runtime._core.exits import contained, goes_up, going_on, handed_over, is_ending
from reactive_runtime._core.naming import executor_name
from reactive_runtime.errors import RejectedError
from reactive_runtime.spec import MAX_DEMAND

__all__ = ["BATCH", "CLOSED", "Drain", "Task"]

BATCH: Final = 1024
"""Elements after which a drain on an executor gives its thread back."""

CLOSED: Final = -1
"""What a turn returns when there will be no further one."""


class Drain:
    """Demand, and at most one owner who works it off."""

    __slots__ = ("__weakref__", "_busy", "_demand", "_executor", "_lock", "_missed", "_spent", "_spins_to_skip")

    batch: ClassVar[int] = BATCH
    """After so much work on an executor its thread is given back."""

    _context: Any = None
    """The `Context` that the tasks run in, each in a copy of its own; None: in that of the executor's thread."""

    _home: Executor | None = None
    """Where it gives way, having no executor, after work without result; None: nowhere. See `DrainContext`."""

    def __init__(self, executor: Executor | None = None, *, owned: bool = False) -> None:
        """Drain on `executor`, or without one on the thread that wakes the drain.

        `owned`: begin in the hands of the creator, who ends the hold with `_launch`.
        """
        self._executor = executor
        self._lock = primitives.Lock()
        self._demand = 0  # _lock; 0 <= _demand <= MAX_DEMAND
        self._busy = owned  # _lock; True while a thread owns the drain, and for ever once it is closed
        self._spins_to_skip = 2  # the owner's; how many times more to leave at once
        self._missed = False  # _lock; a note was left while the drain was owned
        self._spent = False  # the owner's; a turn has used up its batch, whatever it has delivered

    def _turn(self, allowance: int) -> int:
        """Work off at most `allowance` (0: only look around); return how much was taken, or CLOSED. Owner only."""
        raise NotImplementedError

    def _rejected(self, error: RejectedError) -> None:
        """The executor will not run the turn that was due. Called by the owner; the drain is closed after it."""
        raise NotImplementedError

    def _still_to_come(self) -> int | None:
        """How many elements there may be yet, for the end of the interpreter; None: that is not known."""
        return None

    def _left(self) -> None:
        """Called by the thread that has just left the drain, and owns it no more."""

    def _add(self, n: int) -> None:
        """Add `n` to the demand (0: just wake the drain); drain if no thread does."""
        with self._lock:
            demand = self._demand + n
            self._demand = demand if demand < MAX_DEMAND else MAX_DEMAND  # 3.17: capped, never wrapped
            if self._busy:
                self._missed = True
                return
            self._busy = True
        self._launch()

    def _launch(self) -> None:
        """Begin the owner's work: here, or as a task."""
        if self._executor is None:
            trampoline.launch(self._run)
        else:
            self._submit(resubmitted=False)

    def _spend(self) -> None:
        """The batch is used up, though not by elements that were delivered: give way, and come back. Owner only."""
        self._spent = True
        with self._lock:
            self._missed = True

    def _run(self) -> None:
        """Take turns until there is neither work nor a note. Owner only."""
        executor = self._executor
        budget = MAX_DEMAND if executor is None else self.batch
        spins = False
        fresh = True  # nothing has been done since this task began
        owned = True  # not while it is handed on
        with self._lock:
            self._missed = False
            demand = self._demand
        try:
            while True:
                allowance = demand if demand < budget else budget
                taken = self._turn(allowance)
                if taken == CLOSED:
                    break
                if executor is not None and taken:
                    spins = True
                with self._lock:
                    if self._demand != MAX_DEMAND:  # unbounded demand is not accounted for
                        self._demand -= taken
                    demand = self._demand
                    more = self._missed or (demand and taken == allowance)
                    if not (more or spins):
                        self._busy = False
                        break
                    self._missed = False
                if not more:
                    self._spin()
                    spins = False
                elif executor is None:
                    if trampoline.others():
                        trampoline.later(self._run)
                        return
                    if self._spent:
                        self._spent = False
                        if self._home is not None:
                            owned = False
                            if not self._submit(resubmitted=True):
                                return
                            owned = True
                else:
                    budget -= taken or 1
                    if self._spent:  # a batch that ended with the task before is not counted twice
                        self._spent = False
                        budget = budget if fresh and not taken else 0
                    fresh = False
                    if budget <= 0:
                        owned = False
                        if not self._submit(resubmitted=True):
                            return
                        owned = True
                        budget, fresh = self.batch, True
        except BaseException:
            if owned:
                with self._lock:
                    self._busy = False  # not held by a thread that is on its way out
            raise
        self._left()

    def _spin(self) -> None:
        """Give way a few times, before the last look: the other side of a boundary is often about to leave a note.

        To come back costs a submission and the waking of a thread. This takes microseconds, and waits for nothing.
        A drain that lingered in vain does not for a while: on a pool with much to do, others need the thread.
        """
        if self._spins_to_skip:
            self._spins_to_skip -= 1
            return
        for _ in range(primitives.LINGER):
            primitives.pause()
            if self._missed:  # a look without the lock, that decides nothing but how long to linger
                return
        self._spins_to_skip = 8

    def _submit(self, *, resubmitted: bool) -> bool:
        """Hand the owner's work to the executor. True: it ran the task on this very thread, so go on here."""
        return self._hand_over(Task(self, resubmitted=resubmitted), resubmitted=resubmitted)

    def _hand_over(self, task: Task, *, resubmitted: bool) -> bool:
        executor = self._executor or self._home
        assert executor is not None
        if trampoline.here.refusing is executor:
            task.refuse(RejectedError(f"{executor_name(executor)} drops its tasks, and would not run a stream's"))
            return False
        try:
            future = handed_over(executor, task)
        except BaseException as error:
            if task.started:  # it ran right here, and this came out of it: not a refusal
                raise
            if is_ending(error) and (not resubmitted or going_on(self._still_to_come())):
                if not resubmitted:
                    task()
                return resubmitted
            refused = RejectedError(f"{executor_name(executor)} refused to run a stream's task: {error}")
            refused.__cause__ = error
            task.refuse(refused)
            if goes_up(error):
                raise
            return False
        task.submitter = 0
        future.add_done_callback(task.settled)
        return task.returned


class Task:
    """One submission of a drain, which knows whether it ever ran."""

    __slots__ = ("drain", "returned", "started", "submitter")

    def __init__(self, drain: Drain, *, resubmitted: bool) -> None:
        self.drain: Drain = drain
        self.started: bool = False  # written by the thread that runs the task, read once the future is done
        # The thread that is inside `submit`, from within the drain; 0 otherwise.
        self.submitter: int = primitives.get_ident() if resubmitted else 0
        self.returned: bool = False  # written and read by that thread only

    def run(self) -> None:
        """What there is to do."""
        self.drain._run()

    def refuse(self, error: RejectedError) -> None:
        """It will not be run."""
        self.drain._rejected(error)

    def __call__(self) -> None:
        """The executor runs it."""
        self.started = True
        if self.submitter == primitives.get_ident():
            # An executor that runs tasks where they are submitted: the drain is further down this very stack,
            # so it loops there instead of recursing here (3.3).
            self.returned = True
            return
        context = self.drain._context
        if context is None:
            contained(self.run)
        else:
            contained(context.copy().run, self.run)

    def _reject(self, error: RejectedError) -> None:
        """On whichever thread noticed; in the context that the task would have run in."""
        context = self.drain._context
        if context is None:
            self.refuse(error)
        else:
            context.copy().run(self.refuse, error)

    def settled(self, future: Future[Any]) -> None:
        """The future is done: if the task never ran, that has to be signalled; if it raised, reported."""
        if future.cancelled() or future.exception() is not None:
            contained(self._failed, future)

    def _failed(self, future: Future[Any]) -> None:
        if future.cancelled():
            if not self.started:
                # The executor may hold a lock of its own meanwhile, and a submission would wait for it for ever.
                here, executor = trampoline.here, self.drain._executor or self.drain._home
                before, here.refusing = here.refusing, executor
                try:
                    self._reject(RejectedError("a stream's task was cancelled in the executor's queue"))
                finally:
                    here.refusing = before
            return
        error = future.exception()
        assert error is not None
        if self.started:
            if not goes_up(error):  # else it has been signalled, and has gone up where it was raised
                hooks.error_dropped("a stream's task raised in its executor", error)
        else:
            refused = RejectedError(f"the executor could not run a stream's task: {error}")
            refused.__cause__ = error
            self._reject(refused)
