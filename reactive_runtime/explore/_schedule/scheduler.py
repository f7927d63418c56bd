"""Runs threads one at a time: the core of the explorer.

A *task thread* is one thread of the program under exploration: an actor, a thread that it starts, a worker of a pool.
An OS thread, its *carrier*, runs it, and is kept from run to run. One task thread has the *turn*: only it runs. Before
a thread does something that another thread can observe (acquires a lock, accesses a racing field, signals), it comes to
a *point*: it says what it is about to do, and a strategy chooses the thread that goes on. So the scheduler decides the
order of all that matters. The list of these choices is the *schedule*, which can be replayed.

    ready ──chosen──▶ running ──point──▶ ready
                        ├──has to wait──▶ waiting ──woken, or its time has come──▶ ready
                        ├──gives way──▶ resting ──another has, or all have, done a step──▶ ready
                        └──returns──▶ ended            (`task_states`)

Ownership: every field of the scheduler and of its threads belongs to the holder of the turn. The turn changes
hands through a real lock of each carrier, so a holder sees what the one before it wrote. A second real thread, the
watchdog, reads the fields marked *watch*. If the thread with the turn hangs, the watchdog takes the scheduler over: it
ends the run, leaves the threads of the run behind, and wakes the main thread, which raises ExploreError.

Time is virtual. The clock stands still while any thread has something to do, and then moves to the next deadline. A
thread that only goes round a loop, and changes nothing, has nothing to do. A thread that reads the clock again and
again moves it (`Scheduler.time`).

On a busy machine a thread may be preempted for longer than another one waits. So time may pass *early*, `early` times
in a run, and `longest_pause` seconds each time at most: a strategy may choose a thread that waits with a timeout, while
others could go on. Then the clock moves to its deadline. Where a thread reads the clock, a strategy may choose that it
has paused since its last step.

Schedules are fair: a thread ranks below the others (`task_states`) after it gives way, goes round a loop without a
change, or does many steps in a row. The scheduler prefers a ready thread that has done no step for long (`STARVED`).
"""

from __future__ import annotations

import contextlib
import gc
import heapq
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, NoReturn

from reactive_runtime.explore._schedule.carriers import Carrier, ThreadCarriers
from reactive_runtime.explore._schedule.ordering import Ordering
from reactive_runtime.explore._schedule.task import READING, WAITING, Aborted, Stop, Task, choice

__all__ = ["Scheduler"]

PATIENCE: Final = 60.0
"""Virtual seconds from the start of the actors. Once only daemons are left, a timer that is due later wakes none."""

LEAST: Final = 25
"""The lower bound of two numbers of steps that halve with each use: `STARVED`, and the `allowance` of a thread."""

STARVED: Final = 1_000
"""After so many steps the scheduler prefers the ready threads that have done none of them, and halves the number."""

CALM: Final = 20
"""The clock moves when each thread that can go on has gone round loops so often, and no thread has changed anything."""

FOREVER: Final = 1_000
"""When each has done so as often as this, the run is a livelock."""

LATE: Final = 2
"""So many readings of a thread at one place may be late: of a loop, the first two."""

READINGS: Final = 100
"""A thread may read the clock so often at one place before further readings move it."""


class Scheduler(Ordering):
    """Runs one schedule after another."""

    __slots__ = (
        "aborting",
        "active",
        "always",
        "carriers",
        "choose",
        "choose_early",
        "clock",
        "collecting",
        "current",
        "due",
        "early",
        "escaped",
        "excepthook",
        "few",
        "files",
        "hooked",
        "horizon",
        "lasting",
        "limit",
        "longest_pause",
        "look_at",
        "looked",
        "made",
        "main",
        "placed",
        "quiet",
        "races",
        "releases",
        "run",
        "schedule",
        "settling",
        "shown",
        "spare",
        "stands",
        "starving",
        "step_log",
        "stop",
        "streak",
        "timed",
        "tracer",
        "tracking",
        "tried",
        "version",
        "watching",
    )

    def __init__(self, carriers: ThreadCarriers | None = None, limit: int = 20_000) -> None:
        super().__init__()
        self.excepthook: Any = None  # `threading.excepthook`, as it was before the run
        self.carriers: ThreadCarriers = carriers or ThreadCarriers()
        self.limit: int = limit
        self.hooked: frozenset[str] = frozenset()  # files whose loops call `came_round` themselves
        self.due: int = 0  # from this step on, each step calls `_checked`
        self.files: Any = None  # hears when a file is read or written
        self.placed: Callable[[Task], object] | None = None  # hears of each thread, if there are processes
        self.look_at: int = 0  # the step at which `_checked` looks for threads that starve
        self.starving: int = STARVED  # steps between two such looks
        self.looked: int = 0  # the length of the schedule at the last look
        self.choose: Callable[[list[Task], Task], Task] = lambda ready, me: ready[0]
        self.choose_early: Callable[[list[Task], Task], Task] = self.choose  # asked where time may pass early
        self.always: Callable[[], object] | None = None
        self.shown: Callable[[Any, FrameType], Any] = lambda called, _: (
            called
        )  # takes what a thread is to call, and its frame
        self.step_log: Any = None  # gets every step, when a run is to be shown
        self.watching: bool = False  # whether accesses are watched for races: while the actors run
        self.races: bool = False  # whether vector clocks are kept
        self.tracking: bool = False  # whether chains are kept, for partial-order reduction
        self.tried: bool = False  # whether a thread has tried a lock without waiting; sets `releases` for later runs
        self.releases: bool = False  # whether the release of a lock is a point
        self.few: int = 1  # the strategy chooses if more threads than this are ready; 0: at each step
        self.version: int = 0  # changes when there are more points: then a search forgets what it has seen
        self.active: bool = False  # watch; whether a run is under way
        self.aborting: bool = False  # whether the threads of the run unwind
        self.collecting: bool = False  # whether the main thread collects the garbage of a run, after it
        self.settling: bool = False  # the main thread waits for the others to come to rest
        self.tracer: Any = None  # makes points of lines or instructions
        self.quiet: int = 0  # > 0: an invariant looks at the state, and nothing is a point
        self.run: int = 0  # watch; the number of the run
        self.current: Task = None  # type: ignore[assignment]  # watch; the holder of the turn
        self.schedule: list[int] = []  # the index of the thread that did each step
        self.streak: int = 0  # steps in a row of the current thread, while others could go on
        self.made: int = 0  # the number of conditions that the run has made
        self.escaped: list[str] = []  # accesses by threads that are not controlled, which append; of all runs
        self.lasting: list[Any] = []  # stand-ins that outlive a run: locks at the top of modules
        self.clock: float = 0.0  # virtual seconds
        self.horizon: float = 0.0  # see `PATIENCE`
        self.early: int = 0  # how often time may pass early, in the runs that follow
        self.longest_pause: float = 1.0  # virtual seconds that pass early at once, at most
        self.spare: int = 0  # of these, how often in this run from now on; while the actors run
        self.timed: bool = False  # whether it could have, in any run
        self.stands: tuple[Task, Task] = (choice(READING, "the clock"), choice(READING + 1, "the clock"))
        self.stands[1].state = WAITING  # as that of a thread whose wait ends early
        self.stop: Stop | None = None
        self.main: Task = None  # type: ignore[assignment]  # watch

    # -- a run -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a run. The calling thread becomes task thread 0, the main thread."""
        self.run += 1
        self.steps: int = 0
        self.made = self.streak = 0
        self.starving, self.looked = STARVED, 0
        self.due, self.look_at = 0, STARVED
        self.clock = 0.0
        self.forget_states()
        self.schedule = []
        self.stop = None
        self.aborting = self.settling = False
        self.placed = None
        self.spare = 0
        self.watching = False
        self.main = main = self._thread("main", lambda: None, self.carriers.main())
        main.started = True
        main.vc = [1]
        self.current = main
        for item in self.lasting:
            item.forget()
        self.active = True

    def settle(self) -> None:
        """On the main thread: let the others run until they have ended, or nothing will happen any more."""
        main = self.main
        self.block(main)
        self.settling = True
        self.spare = self.early
        self.horizon = self.clock + PATIENCE
        with contextlib.suppress(Aborted):
            if self.ready or self.resting or self._idle():
                chosen = self._next(main)
                if chosen is not main:
                    self.current = chosen
                    chosen.go()
                    main.wait()
        self.current = main
        self.settling = False
        self.spare = 0
        if self.stop is not None:
            self._unwind()
        self.wake(main)

    def end(self) -> None:
        """On the main thread: end the run, and unwind the threads that are left, such as daemons."""
        self.watching = False
        if any(not thread.ended for thread in self.threads if thread is not self.main):
            self._unwind()
        self.active = False

    def forget(self) -> None:
        """After the last run: drop the threads, with their targets and what these hold."""
        self.current = self.main
        self.forget_states()
        self.always = self.stop = None

    def collect(self, generation: int = 2) -> None:
        """On the main thread, between two runs: collect garbage, up to that generation."""
        self.collecting = True
        try:
            gc.collect(generation)
        finally:
            self.collecting = False

    def _unwind(self) -> None:
        """On the main thread: unwind the threads that are left, one after the other."""
        self.aborting = True
        self.current = nxt = self._to_unwind()
        if nxt is not self.main:
            nxt.go()
            self.main.wait()
            self.current = self.main

    def _to_unwind(self) -> Task:
        for thread in self.threads:
            if not thread.ended and thread is not self.main:
                if thread.started:
                    return thread
                self.finish(thread)
        return self.main

    def has_others(self) -> bool:
        """Whether a thread lives beside the one that has the turn, and the main one."""
        return any(not task.ended for task in self.threads if task is not self.main and task is not self.current)

    def abort(self, stop: Stop) -> NoReturn:
        """End the run for a reason. On the thread with the turn; does not return."""
        if self.stop is None:
            self.stop = stop
        self.aborting = True
        raise Aborted

    # -- threads -----------------------------------------------------------------------------------------------

    def _thread(self, name: str, target: Callable[[], object], carrier: Carrier, daemon: bool = False) -> Task:
        thread = Task(len(self.threads), name, target, carrier, daemon)
        self.enter(thread)
        return thread

    def spawn(self, name: str, target: Callable[[], object], daemon: bool = False) -> Task:
        """Make a thread that is ready to run. The current thread goes on."""
        carrier = self.carriers.carrier(len(self.threads) - 1, self)
        if self.tracer is not None:
            target = self.tracer.traced(target)
        if name.startswith("Thread-"):  # numbered by a counter that goes on from run to run
            first, _, function = name.partition(" ")
            name = f"{'timer' if first == 'Thread-timer' else 'thread'} {len(self.threads)} {function}".rstrip()
        thread = self._thread(name, target, carrier, daemon)
        parent = self.current
        parent.children += 1
        parent.acts += 1
        thread.parent = parent.index
        thread.number = parent.children
        thread.chain = hash((parent.chain, parent.children))
        if self.observer is not None:
            self.observer.began(thread)
        if self.races:
            thread.vc = vc = parent.vc.copy()
            vc.extend([0] * (thread.index + 1 - len(vc)))
            vc[thread.index] = 1
            parent.vc = parent.vc.copy()
            parent.vc[parent.index] += 1
        carrier.thread = thread
        if self.placed is not None:
            self.placed(thread)
        return thread

    def body(self, me: Task) -> Task:
        """The life of a thread, on its carrier, which holds the turn; returns the task that gets it next."""
        if not self.aborting:
            me.started = True
            self.schedule.append(me.index)
            if self.tracking:
                me.chain = hash((me.chain, 1))
            if self.step_log is not None:
                self.step_log.step(me)
            try:
                me.target()
            except (Aborted, SystemExit):
                pass  # a thread that calls `sys.exit` just ends
            except BaseException as error:
                if not self.aborting:
                    self.stop = self.stop or Stop(
                        "raised", f"{me.name} raised {type(error).__name__}: {self.text_of(error)}", me, error
                    )
                    self.aborting = True
        return self._after(me)

    def text_of(self, error: BaseException) -> str:
        """The text of an exception. Its `__str__` may be code of the program: no step of it is a point."""
        with self.undisturbed():
            try:
                return str(error)
            except Exception as second:
                return f"(its __str__ raised {type(second).__name__})"

    def _after(self, me: Task) -> Task:
        if self.aborting:
            self.finish(me)
        else:
            if self.always is not None:
                self._look(me, ended=True)
            self.finish(me)
            me.acts += 1
            if self.observer is not None:
                self.observer.noted(me, me, True)
            if me.joiners:
                for joiner in me.joiners:
                    self.wake(joiner)
                me.joiners.clear()
            if not self.aborting:
                try:
                    if self.ready or self.resting or self._idle():
                        chosen = self._next(me)
                        self.current = chosen
                        return chosen
                except Aborted:
                    pass
        self.current = nxt = self._to_unwind()
        return nxt

    def _next(self, me: Task) -> Task:
        ready = self.ready
        if self.timers and self.spare:
            return self._next_or_early(me)
        if not self.ranked:
            return ready[0] if len(ready) <= self.few else self.choose(ready, me)
        self.rank()
        chosen = ready[0] if len(ready) <= self.few else self.choose(ready, me)
        self.chosen(chosen)
        return chosen

    def soon(self) -> list[Task]:
        """The threads whose waits may end early."""
        return self.due_by(self.clock + self.longest_pause)

    def _next_or_early(self, me: Task) -> Task:
        """As `_next`; a thread that waits with a timeout may be chosen too: then its time has come."""
        if self.ranked:
            self.rank()
        ready, soon = self.ready, self.soon()
        if soon:
            self.timed = True
            able = [*ready, *soon]
            chosen = able[0] if len(able) <= self.few else self.choose_early(able, me)
        else:
            chosen = ready[0] if len(ready) <= self.few else self.choose(ready, me)
        if chosen.state is WAITING:
            assert chosen.deadline is not None
            self.spare -= 1
            self._pass(chosen.deadline)
            chosen.early = "its time is over"
        if self.ranked:
            self.chosen(chosen)
        return chosen

    # -- points ------------------------------------------------------------------------------------------------

    def step(self, me: Task) -> None:
        """A point of `me`, which has the turn and said what it is about to do. Returns when `me` is chosen."""
        if self.aborting:
            self.pass_through(me)
            return
        self.steps += 1
        if self.steps >= self.due:
            self._checked(me)
        ready = self.ready
        if len(ready) > self.few or self.ranked or (self.timers and self.spare):
            chosen = self._next(me) if self.ranked or self.timers else self.choose(ready, me)
            if chosen is not me:
                self.streak = 0
                self.current = chosen
                chosen.go()
                me.wait()
                if self.aborting:
                    raise Aborted
            else:
                self.streak += 1
                if self.streak > me.allowance and (len(ready) > 1 or self.resting):
                    me.allowance = max(LEAST, me.allowance // 2)
                    self._give_way(me, briefly=False)
        self.schedule.append(me.index)
        if self.step_log is not None:
            self.step_log.step(me)

    def wait(self, me: Task, deadline: float | None = None) -> None:
        """Take `me` out of the choice until another thread wakes it, or the clock has come to `deadline`."""
        if self.aborting:
            raise Aborted
        self._count(me)
        self.block(me)
        me.waited += 1
        me.timed_out = False
        me.deadline = None
        if deadline is not None:
            self.arm(me, deadline)
        if self.ready or self.resting or self._idle():
            chosen = self._next(me)
            if chosen is not me:
                self.current = chosen
                chosen.go()
                me.wait()
        if self.aborting:
            raise Aborted
        me.deadline = me.until = None
        self.schedule.append(me.index)
        if self.step_log is not None:
            self.step_log.step(me)
        me.early = ""

    def _count(self, me: Task) -> None:
        """Count a step, and check what is due at it."""
        self.steps += 1
        if self.steps >= self.due:
            self._checked(me)

    def _checked(self, me: Task) -> None:
        """Check the limit of steps, prefer threads that starve, and let the invariant look."""
        if self.steps > self.limit:
            self.abort(Stop("limit", f"the run did not end within {self.limit} steps", me))
        if self.steps >= self.look_at:
            done = {me.index, *self.schedule[self.looked :]}
            starved = [task for task in self.ready if task.index not in done]
            if starved:
                self._for_all()
                self.prefer(starved)
            self.looked = len(self.schedule)
            self.starving = max(LEAST, self.starving // 2)
            self.look_at = self.steps + self.starving
        if self.always is not None:
            self._look(me)
        else:
            self.due = min(self.limit + 1, self.look_at)

    # -- threads that give way ---------------------------------------------------------------------------------

    def pause(self, me: Task, where: Any, frame: FrameType | None) -> None:
        """`me` gives way at `where`, until another thread has done a step; if it repeats itself, until all have."""
        if self.aborting:
            self.step(me)
            return
        again = me.repeats(where, frame)
        if again:
            self._for_all()
            self._stands_still(me)
        if len(self.ready) == 1 and not self.resting:
            self.step(me)
            return
        self._count(me)
        if again:
            me.waited += 1
        self._give_way(me, briefly=not again)
        self._goes_on(me)

    def came_round(self, me: Task, where: Any, frame: FrameType) -> None:
        """`me` has come round a loop, at `where`. If it has changed nothing meanwhile, all others do a step first."""
        if not self.aborting and me.repeats(where, frame):
            self._for_all()
            self._stands_still(me)
            if len(self.ready) > 1 or self.resting:
                me.location, me.writes, me.what = None, False, where if type(where) is int else "round again"
                self._count(me)
                self._give_way(me, briefly=False)
                self._goes_on(me)
                if self.tracking:
                    me.chain = hash((me.chain, 4))

    def only_looked(self, me: Task, frame: FrameType | None) -> None:
        """`me`, called from `frame`, has read a state that others change. In a file without hooks it is a turn."""
        if frame is not None and frame.f_code.co_filename not in self.hooked:
            self.came_round(me, (id(frame.f_code), frame.f_lasti), frame)

    def _goes_on(self, me: Task) -> None:
        """Add the step of `me` to the schedule and to the log."""
        self.schedule.append(me.index)
        if self.step_log is not None:
            self.step_log.step(me)

    def _stands_still(self, me: Task) -> None:
        """`me` has gone round and changed nothing. If all do so, the clock moves; without a timer it is a livelock."""
        acts = sum(task.acts for task in self.threads)
        if me.still_at != acts:
            me.still_at, me.still = acts, 0
        me.still += 1
        if me.still < CALM:
            return
        able = [*self.ready, *self.resting]
        least = min(task.still if task.still_at == acts else 0 for task in able)
        if least >= CALM and self._tick():
            return
        if least >= FOREVER and self.hooked and self.tracer is None:
            names = " and ".join(task.name for task in sorted(able, key=lambda task: task.index))
            self.abort(Stop("livelock", f"nothing changes any more, and {names} wait{'s'[len(able) > 1 :]} for it", me))

    def _for_all(self) -> None:
        """Tell the search that this step depends on those of all threads."""
        if self.observer is not None:
            self.observer.concerns_all()

    def _give_way(self, me: Task, *, briefly: bool) -> None:
        """Let others go on, and `me` when all of them have done a step; `briefly`: when any has."""
        self._for_all()
        self.streak = 0
        me.priority = -float(self.steps)
        self.outranked(me, briefly=briefly)
        chosen = self._next(me)
        if chosen is not me:
            self.current = chosen
            chosen.go()
            me.wait()
        if self.aborting:
            raise Aborted

    def _idle(self) -> bool:
        """No thread can go on: move the clock, or end `settle` if only daemons are left; else it is a deadlock."""
        if self.observer is not None:
            self.observer.idle()
        if self._tick():
            return True
        if self.settling and self._unfinished() is None:
            self.wake(self.main)
            return True
        main = self.main if self.settling else None
        waiting = [
            thread
            for thread in self.threads
            if thread.started and not thread.ended and thread is not main and not thread.daemon
        ]
        names = ", ".join(f"{item.name} ({item.what})" for item in waiting)
        if self.step_log is not None:
            self.step_log.stuck()
        return self.abort(Stop("deadlock", f"no thread can go on: {names}"))

    def _tick(self) -> bool:
        """Move the clock to the next deadline, and wake all threads that are due. False: there is no deadline."""
        timers = self.timers
        while timers and (timers[0][3].ended or timers[0][3].deadline != timers[0][0]):
            heapq.heappop(timers)  # it was woken before
        if not timers or (self.settling and timers[0][0] > self.horizon and self._unfinished() is None):
            return False
        self._pass(timers[0][0])
        return True

    def _pass(self, now: float) -> None:
        """Move the clock to `now`, and wake all threads that are due by then."""
        self.clock = now = max(now, self.clock)
        timers = self.timers
        while timers and timers[0][0] <= now:
            deadline, _, _, thread = heapq.heappop(timers)
            if thread.ended or thread.deadline != deadline:
                continue  # it was woken before
            thread.timed_out = True
            if self.tracking:
                thread.chain = hash((thread.chain, deadline))
            self.wake(thread)

    def time(self, frame: FrameType, *, early: bool = True) -> float:
        """The clock, read from `frame`. A thread that reads it at one place again and again moves it faster and faster.

        Reading `READINGS` + k of a place moves it by k³ microseconds, or to the next deadline. It passes a second after
        45 such readings and an hour after 350, and a loop that waits for a second or more ends at most a tenth late.
        `early`: at the first readings the thread may have paused since its last step.
        """
        if not self.active or self.quiet or self.aborting:
            return self.clock
        me = self.current
        place = (frame.f_code, frame.f_lasti)
        count = me.readings[place] = me.readings.get(place, 0) + 1
        if early and self.spare and count <= LATE:
            self._read_late(me)
        if count > READINGS:
            self._for_all()
            now = self.clock + (count - READINGS) ** 3 * 1e-6
            timers = self.timers
            while timers and (timers[0][3].ended or timers[0][3].deadline != timers[0][0]):
                heapq.heappop(timers)
            if not (timers and timers[0][0] <= now and self._tick()):
                self.clock = now
            elif len(self.ready) > 1 or self.resting:
                me.location, me.writes, me.what = None, False, "clock"
                self.step(me)
        if self.tracking:
            me.chain = hash((me.chain, self.clock))
        return self.clock

    def _read_late(self, me: Task) -> None:
        """`me` reads the clock: a strategy chooses whether it has paused since its last step."""
        self.timed = True
        chosen = self.choose_early([*self.stands], me)
        self.schedule.append(chosen.index)
        me.location, me.writes, me.what = None, False, "reads the clock"
        if chosen is self.stands[1]:
            self.spare -= 1
            me.early = f"{self.longest_pause:g} s later"
            self._for_all()
            self._pass(self.clock + self.longest_pause)
        if self.tracking:
            me.chain = hash((me.chain, chosen.index))
        if self.step_log is not None:
            self.step_log.step(me, chosen.index)
        me.early = ""

    def _unfinished(self) -> Task | None:
        """A thread that the run waits for: one that has not ended, and is no daemon."""
        for thread in self.threads:
            if not thread.ended and not thread.daemon and thread is not self.main:
                return thread
        return None

    def _look(self, me: Task, *, ended: bool = False) -> None:
        """Run the invariant, on the thread with the turn. No step of it is a point."""
        assert self.always is not None
        try:
            with self.undisturbed():
                self.always()
        except Exception as error:
            self.stop = self.stop or Stop("invariant", self.text_of(error) or type(error).__name__, me, error)
            self.aborting = True
            if not ended:
                raise Aborted from None

    def undisturbed(self) -> _Undisturbed:
        """A block in which no step is a point."""
        return _Undisturbed(self)

    def pass_through(self, me: Task) -> None:
        """A point of a thread that unwinds: it goes on, so that its `finally` can run, for at most 1,000 points."""
        me.rights += 1
        if me.rights > 1_000:
            raise Aborted


class _Undisturbed:
    """See `Scheduler.undisturbed`. A class of its own, since lines of contextlib may be points."""

    __slots__ = ("_scheduler", "_watching")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._watching = False

    def __enter__(self) -> None:
        scheduler = self._scheduler
        self._watching, scheduler.watching = scheduler.watching, False
        scheduler.quiet += 1

    def __exit__(self, *_: object) -> None:
        scheduler = self._scheduler
        scheduler.quiet -= 1
        scheduler.watching = self._watching
