"""A drain that pollable sources hang on.

There are two kinds: a subscription, and the `for` loop over a flow. A whole tree of operators hangs on one drain, down
to the sources, the boundaries, and the upstreams that have a drain of their own (`drains.inner_subscription`). So
everything in the tree happens in turn, without a lock.

A call on an upstream may come back with elements: `subscribe` and `request` on another drain or on another publisher.
The owner notes it (`later`), and the thread that leaves the drain makes it: the elements find the drain idle, and go on
their way at once. That thread may be inside another such call, in a user's code for long; `drains.trampoline` bounds
how deep they stand on one another. So a million subscriptions one after another need no stack (3.3).

The *home* of a drain is the executor that its sources run on: its own, or, for an upstream with a drain of its own,
that of the drain it hangs on. Such an upstream may keep a thread of the executor, and news of a clock, a switch,
another publisher or a cancel must not wait for it. So the thread that brings news takes a turn itself (`_visit`), and
leaves to the home whatever may keep a thread: sources, and calls upstream. A task for the rest does not own the drain
while it waits in the executor's queue (`_schedule`), or the next news would wait for it.

    idle ──news, on any thread──▶ owned, visited ──▶ idle, a task is scheduled ──▶ owned, at home ──▶ idle

An upstream that works for long without a result gives way at its home in the same manner, although it has begun on the
thread that asked. Then elements of its own upstreams do not take it up again: they wait for the task, and the upstreams
give way as well. Otherwise they would go on below, on the thread that the upstream gives back.

A drain *rests* when no thread owns it, and each subscription to an upstream of its own has been made. A subscription is
being made from when it is noted to when the upstream has subscribed to its own upstreams in turn: it may wait in the
list of calls, be under way on another thread, or wait for its turn on a thread or a pool. `group_by` has to know that
nothing more comes of the elements it delivered: it waits until the drains behind it rest (`rests`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.drain import BATCH, CLOSED, Drain, Task
from reactive_runtime._core.drains.ownership import owner_only, with_lock
from reactive_runtime._core.drains.pace import Pace, is_kept_long, tasks_wait
from reactive_runtime._core.drains.shared_place import SharedPlace
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.exits import contained, each
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.errors import RejectedError

__all__ = ["WORK", "Below", "DrainContext", "Waiter"]

R = TypeVar("R")

WORK: Final = 1024
"""Elements that the tree works on, delivered or not, after which it gives way."""

GAVE_WAY: Final = -1


class Waiter(Protocol):
    """It waits, on a thread of its own, for the elements of a tree of operators."""

    def begins(self, source: Any, operator: str) -> None:
        """`operator` is going to subscribe to the flow `source`. Any thread, without a lock."""
        ...

    def stands_for(self, waiter: Waiter) -> bool:
        """Whether it is that waiter, or notifies it. Any thread, without a lock."""
        ...


class Below(Protocol):
    """The prefetch queue that a drain signals to, as an upstream of another drain."""

    def drain(self) -> DrainContext:
        """The drain that takes elements out of the queue."""
        ...

    def is_here(self) -> bool:
        """Note that the upstream has subscribed to its own upstreams. False: that was noted before."""
        ...

    def room(self) -> int:
        """How many elements have been promised room, and have not come. A look, from any thread."""
        ...


class DrainContext(Drain):
    """A drain with a context, a stop sign, and a list of calls upstream."""

    __slots__ = (
        "_behind",
        "_calling",
        "_calls",
        "_coming",
        "_endings",
        "_heard",
        "_light",
        "_over",
        "_place",
        "_root",
        "_scheduled",
        "_work",
        "away",
        "begun",
        "context",
        "deferred",
        "demanded",
        "failed",
        "gave_way",
        "guest",
        "hears",
        "home",
        "stopped",
        "turns_at_most",
        "waiter",
        "work_left",
    )

    def __init__(self, executor: Executor | None = None, home: Executor | None = None) -> None:
        super().__init__(executor, owned=True)
        self.home: Executor | None = executor if home is None else home
        self.pace: Pace | None = None if self.home is None else self.pace or Pace(BATCH)
        self._work: Pace | None = None  # the owner's; made when it is needed; see `next_run`
        self.guest: bool = False  # set once, before it starts; it has a home, and any other thread may begin it
        self.hears: bool = False  # the owner's; news comes from elsewhere; an upstream may keep a thread of its home
        self.away: bool = False  # the owner's; it is not at home, and leaves there what may keep its thread
        self.deferred: bool = False  # the owner's; it has left something to its home
        self._light: list[Callable[[], object]] = []  # the owner's; calls upstream that may be made away from home
        self._scheduled = False  # lock; a task of it waits in an executor's queue, and owns nothing
        self.gave_way: bool = False  # lock; that task waits for its turn, and elements of its upstreams wait with it
        self._calling = 0  # lock; calls upstream that are being made, on the thread of its executor
        self.stopped: list[bool] = []  # appended to under lock, never emptied; a look at it may be late; see `fuse`
        self._calls: list[Callable[[], object]] | None = None  # lock; None where there are none
        self._behind: Below | None = None  # lock; it signals to this, upstream of a drain; None once closed
        self._coming = 0  # lock; subscriptions to upstreams that are being made
        self._over = False  # lock; it is closed, and the end was signalled
        self.turns_at_most: int = -1  # set once, before it starts; see `fusion.fuse`
        # The owner's: so many elements more, and a run of work is over; GAVE_WAY: the tree gave way after the last one.
        self.work_left: int = 0
        self.begun: bool = False  # the owner's; the first run of work has begun
        self._heard = dropping.listening_downstream()  # the listeners to elements discarded here and further upstream
        self.context: Context = copy_context()  # never entered itself, only its copies: two threads may need it
        self.failed: Failure | None = None  # the owner's; the last error of an upstream, or the one that ends this
        self._endings: list[Callable[[], object]] | None = []  # lock; called when all is over, None after that
        self._root: DrainContext | None = None  # set once, before it starts, and dropped at the end; see `root`
        self._place: SharedPlace | None = None  # lock; of the root of a tree; where its upstreams wait for its home
        self.waiter: Waiter | None = None  # set once, before it starts; of the thread that waits further down, if any
        self.demanded: bool = True  # the owner's; set by `pulling` alone

    def subscriber_raised(self, error: BaseException) -> None:
        """Only a subscription has a subscriber."""
        raise error

    @owner_only
    def pulling(self, pull: Callable[[], R], *, demanded: bool) -> R:
        """Call `pull`, during which an element can go on (`demanded`), or none can: then sources run without demand.

        Sources read `demanded`. It cannot be an argument: between the drain and an operator there are iterators. Owner
        only; such calls nest.
        """
        before, self.demanded = self.demanded, demanded
        try:
            return pull()
        finally:
            self.demanded = before

    def fail(self, error: Exception) -> None:
        """End the flow with `error`, from any thread; see `KillSwitch.throw`."""
        raise NotImplementedError

    def behind(self) -> Below | None:
        """The prefetch queue that it signals to, as an upstream of another drain."""
        with self.lock:
            return self._behind

    def is_too_late(self, error: BaseException) -> bool:
        """Whether `error` is a refusal, and this drain, or one behind it, wants no more. Any thread, without a lock."""
        at: DrainContext | None = self if isinstance(error, RejectedError) else None
        while at is not None and not at.stopped:
            queue = at.behind()
            if queue is None:
                return bool(at.stopped)  # it may have closed between the two looks
            at = queue.drain()
        return at is not None

    def root(self) -> DrainContext:
        """The drain at the end of the tree, below all those that an operator gave its upstreams; it may be this one."""
        return self._root or self

    def at_end(self, ending: Callable[[], object]) -> None:
        """Call `ending` when the drain has closed everything; at once, if it has."""
        with self.lock:
            over = self._endings is None
            if self._endings is not None:
                self._endings.append(ending)
        if over:
            ending()

    @owner_only
    def _release(self) -> None:
        """The owner has closed everything."""
        self._root = None
        with self.lock:
            endings, self._endings = self._endings, None
        if endings:
            each(endings)

    @owner_only
    def next_run(self) -> int:
        """How many elements the tree works on, delivered or not, before `end_run`. For the owner."""
        if self._work is None:
            if self.home is None and not trampoline.looped():
                return WORK
            self._work = Pace(WORK)
        return self._work.next_run()

    @owner_only
    def end_run(self) -> bool:
        """A run of work is over: whether the tree is to give way. For the owner."""
        return (
            self._work is None
            or self._work.end_run(self.home, self.pace)
            or (self.home is None and trampoline.wanted())
        )

    @owner_only
    def give_way(self) -> None:
        """The tree has worked for so long that PENDING is due in place of the next element. For the owner."""
        self.work_left = GAVE_WAY
        self.spend()

    @owner_only
    def works_on(self) -> bool:
        """Begin the next run of work. False: the tree gives way first. For the owner, where `work_left` is used up."""
        if self.work_left == 0 and self.begun and self.end_run():
            self.give_way()
            return False
        self.work_left, self.begun = self.next_run(), True
        return True

    @owner_only
    def gives_way(self) -> bool:
        """Whether the drain gave way instead of pulling the last element. For the owner."""
        return self.work_left == GAVE_WAY

    def heard_from(self) -> None:
        """Look around, in the flow's own context, on a thread of a clock, a pool or an event loop."""
        with self.lock:
            owner = self.claim()
        if owner:  # most find the drain at work, and need no context
            self.context.copy().run(contained, self.element_came)

    def wake(self) -> None:
        with self.lock:
            owner = self.claim()
        if owner:
            self.element_came()

    def element_came(self) -> None:
        """`_launch`, for news that a thread has brought from elsewhere. For the owner."""
        if self.hears and self.home is not None:
            self.context.copy().run(trampoline.launch, self._visit)
        else:
            self._launch()

    def end_came(self) -> None:
        """Wake the drain for a cancel, or the end of an upstream."""
        with self.lock:
            owner = self.claim()
            calling = self._calling or self._calls is not None
        if not owner:
            return
        if self.home is not None and (self.hears or (calling and self.executor is not None)):
            self.context.copy().run(trampoline.launch, self._visit)
        else:
            self._launch()

    def _visit(self) -> None:
        """Take turns on a thread that has brought news, and leave to the executor whatever may keep it. Owner only.

        Where only a call upstream is under way, leave the elements as well, and signal only an end.
        """
        with self.lock:
            self._missed = False
            demand = self._demand
        while True:
            allowance = min(demand, BATCH) if self.hears else 0
            self.away, self.deferred = True, not self.hears
            try:
                taken = self._turn(allowance)
            except BaseException:
                with self.lock:
                    self._busy = False  # not held by a thread that is on its way out
                raise
            finally:
                self.away = False
            if taken == CLOSED:
                light, self._light = self._light, []
                trampoline.work(light)  # those that subscribe find that they need not, and say that they have come
                self._left()
                return
            with self.lock:
                if self._demand != MAX_DEMAND:
                    self._demand -= taken
                demand = self._demand
                left = self.deferred or self._spent or self._calls is not None
                cut, self._cut = self._cut, False
                if (self._missed or cut or (taken and taken == allowance)) and not self._spent:
                    self._missed = False
                    continue
                light, self._light = self._light, []
                spent = self._spent
                self._missed = self._spent = False
                self._busy = left
            if left:
                self._schedule(spent=spent)
            if light:
                trampoline.work(light)
            return

    def _launch(self) -> None:
        if self.executor is None:
            if self.home is not None and not self.stopped and is_kept_long(self.home):
                self._schedule(spent=True)
                return
            trampoline.launch(self._visit if self.guest else self.run)
        elif self._is_open():
            self._schedule()
        else:
            super()._submit(resubmitted=False)

    def _is_open(self) -> bool:
        """Whether its tasks must not own it while they wait: it may be visited. For the owner."""
        with self.lock:
            return self.hears or self._calling > 0 or self._calls is not None

    def _submit(self, *, resubmitted: bool) -> bool:
        if self.executor is None or self._is_open():
            return self._schedule(resubmitted=resubmitted, spent=resubmitted)
        return super()._submit(resubmitted=resubmitted)

    def _put_in_line(self, executor: Executor, task: Task) -> Future[Any]:
        root = self._root
        if root is None or not tasks_wait(executor):
            return super()._put_in_line(executor, task)
        with root.lock:
            if root._place is None:
                root._place = SharedPlace(executor)
            place = root._place
        if place.pool is not executor:  # an operator further up has chosen another one
            return super()._put_in_line(executor, task)
        return place.submit(task)

    def _schedule(self, *, resubmitted: bool = False, spent: bool = False) -> bool:
        """Release the drain, and have a task at home come back to it; True: it came at once, on this very thread.

        `spent`: it gives way to others there.
        """
        with self.lock:
            self._busy = False
            self.gave_way = self.gave_way or spent
            needed, self._scheduled = not self._scheduled, True
        return (
            needed
            and self._hand_over(_ScheduledRun(self, resubmitted=resubmitted), resubmitted=resubmitted)
            and self._come()
        )

    @with_lock
    def waits_its_turn(self) -> bool:
        """Whether it has given way, and no thread owns it until its task runs. With the lock held."""
        return self.gave_way and not self._busy

    def _come(self) -> bool:
        """Own the drain again, or leave a note for the thread that does."""
        with self.lock:
            self._scheduled = self.gave_way = False
            return self.claim()

    def later(self, call: Callable[[], object], *, light: bool = False) -> None:
        """Make this call upstream as soon as the drain has no owner. Called by its owner.

        At home, unless it is `light`: it runs no source.
        """
        if light and self.away:
            self._light.append(call)
            return
        with self.lock:
            if self._calls is None:
                self._calls = []
            self._calls.append(call)

    def has_calls(self) -> bool:
        """Whether calls upstream are noted. For the owner."""
        with self.lock:
            return self._calls is not None or bool(self._light)

    def expect(self) -> None:
        """A subscription to an upstream is going to be made."""
        with self.lock:
            self._coming += 1

    def came(self) -> None:
        """A subscription to an upstream was made, or will not be. Any thread, without a lock.

        With its last one, the drain has come for the drain behind it. In a loop: there may be thousands.
        """
        idle: list[DrainContext] = []
        drain: DrainContext | None = self
        while drain is not None:
            with drain.lock:
                drain._coming -= 1
                if drain._coming:
                    break
                if drain._calls and (drain._over or not (drain._busy or drain._scheduled)):
                    idle.append(drain)
                queue = drain._behind
            drain = queue.drain() if queue is not None and queue.is_here() else None
        if idle:
            each([drain._left for drain in idle])

    def later_expected(self, subscribe: Callable[[], object], *, light: bool = False) -> None:
        """`later`, for a call that subscribes to an upstream before it returns."""
        self.expect()
        self.later(partial(self._make, subscribe), light=light)

    def _make(self, subscribe: Callable[[], object]) -> None:
        try:
            subscribe()
        finally:
            self.came()

    def rests(self, news: Callable[[], object] | None = None, demand: int | None = None) -> bool:
        """Whether no thread owns the drain, no upstream is being subscribed to, and it has heard of `demand`.

        If not, `news` is called once when that may have changed: on any thread, without a lock.
        """
        with self.lock:
            if self._over:
                return True
            if not (self._busy or self._scheduled or self._coming) and demand in (None, self._demand):
                return True
            if news is not None:
                if self._calls is None:
                    self._calls = []
                if news not in self._calls:
                    self._calls.append(news)
            return False

    def _end_for_good(self) -> None:
        """It is closed, and the end was signalled."""
        self.failed = None
        with self.lock:
            self._over = True

    def _left(self) -> None:
        """Make the calls that were noted."""
        if self._calls is None:  # a look without the lock: the thread that noted a call comes by here after it
            return
        with self.lock:
            calls, self._calls = self._calls, None
            if calls and self.executor is not None:
                self._calling += len(calls)
                calls = [partial(self._call, call) for call in calls]
        if calls:
            trampoline.work(calls)

    def _call(self, call: Callable[[], object]) -> None:
        try:
            call()
        finally:
            with self.lock:
                self._calling -= 1


class _ScheduledRun(Task):
    """A task that takes the drain only when it runs."""

    __slots__ = ()

    def run(self) -> None:
        assert isinstance(self.drain, DrainContext)
        if self.drain._come():
            self.drain.run()

    def refuse(self, error: RejectedError) -> None:
        assert isinstance(self.drain, DrainContext)
        if self.drain._come():
            self.drain.rejected(error)
        else:
            self.drain.fail(error)
