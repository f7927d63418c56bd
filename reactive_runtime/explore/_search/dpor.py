"""The search by races: of all schedules that differ only in the order of independent steps, one is run.

A step is what a thread does from one point to the next. Two steps are *dependent* when they are of one thread, or
access the same location and one of them changes it. Schedules that order all dependent steps alike are equivalent (a
Mazurkiewicz trace): every thread sees the same in them, and does the same.

The search runs a schedule to its end, and looks for its races: two dependent steps of two threads, not ordered by
anything in between. For each it notes, at the place of the first of them, another schedule: all that does not come
after the first, then the second. These are kept as a tree of what is to be run from there (a *wakeup tree*). What has
been run from a place is *asleep* in what is run from there later, until something dependent happens: what it leads to
is known. A run in which all that could go on is asleep is ended, and counted apart (`cut`); that happens only where a
tree did not foresee it.

What can't be reordered one by one is dependent on everything: a step after which a run has failed, a thread that gives
way, the clock that a thread moves by reading it. Where no thread can go on and the clock moves, what comes comes after
all that was. Where operations can't be distinguished, at lines and instructions, or where an invariant looks at each
state, all steps are dependent: nothing is saved.

Time that passes early (`Scheduler`) is a step of its own, on which all others depend, and one that need not come. So it
is a branch of each state in which it may come.

A lock that another thread has does not race with its release, which can come only first, but with its acquisition.

Source sets say which branches are needed, as in the first algorithm of the paper; the trees only say how to go on, so
that a run is seldom cut.

Origin: source sets and wakeup trees of Abdulla, Aronis, Jonsson and Sagonas (Optimal dynamic partial order reduction,
2014); dynamic partial order reduction of Flanagan and Godefroid (2005); sleep sets of Godefroid (1996).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import CUT, READING, WAITING, Stop, Task, parts_of
from reactive_runtime.explore._standins.conditions import Semaphore
from reactive_runtime.explore._standins.instrumented import Location, Lock

__all__ = ["DPOR"]

_READINGS: Final = (READING, READING + 1)
"""The choices of a thread that reads the clock."""

_ANYTHING: Final = -1
"""The name of a location that is not known again in another run."""

_Access = tuple[Any, bool, bool]
"""A location, whether it is changed, and whether a thread that waits for it could have had it before."""

_Names = frozenset[tuple[int, bool]]
"""What a step accesses, by names that are the same in each run, and whether it changes it."""

_Tree = list[Any]
"""What is to be run, in order: `[label, tree]` each."""


class _Node:
    """A choice: the state before a step, and the step that is taken there in the runs of now."""

    __slots__ = ("ahead", "for_all", "label", "names", "ready", "sleep", "tree")

    def __init__(self) -> None:
        self.tree: _Tree = []  # what is to be run from here; the first is being run
        self.label: int = 0  # of that
        self.sleep: dict[int, tuple[int, _Names, bool]] = {}  # what has been run, by label: see `_kept_asleep`
        self.ahead: int = 0  # the chain of the thread after what it said it would do
        # Of the run of now:
        self.ready: list[int] = []  # labels of the threads that could go on
        self.names: _Names = frozenset()
        self.for_all: bool = False  # the step depends on all others


class _Event:
    """A step of the run of now. In `clock`, by thread, how many of its steps come before."""

    __slots__ = (
        "accesses", "after_idle", "clock", "data", "for_all", "label", "location", "node", "number", "taken", "thread",
        "what",
    )  # fmt: skip

    def __init__(self, thread: int, label: int, node: _Node | None, location: Any, what: Any) -> None:
        self.thread = thread
        self.label = label
        self.node = node
        self.location = location
        self.what = what
        self.accesses: list[_Access] = []
        self.for_all = False
        self.data = 0  # the number of what the thread chose, where it chose among what it has itself to do
        self.taken = isinstance(location, Lock) and location.owner is not None  # before this step
        self.after_idle = False
        self.number = 0
        self.clock: list[int] = []


class DPOR:
    """One schedule of each class of equivalent ones, until there is none left."""

    name = "dpor"

    def __init__(self) -> None:
        self.bound: int | None = None
        self.complete: int | None = None
        self.exhausted: bool = False
        """Whether there is no schedule left."""
        self.cut: int = 0
        """Runs that were ended, since they led to nothing new."""
        self._scheduler: Scheduler
        self._version = -1
        self._restart()

    def _restart(self) -> None:
        self.exhausted = False
        self.cut = 0
        self._stack: list[_Node] = []
        self._ran = False
        self._forget_run()

    def _forget_run(self) -> None:
        self._at = 0  # of the stack, in the run
        self._follow: _Tree = []  # what is to be run beyond the stack
        self._events: list[_Event] = []
        self._now: _Event | None = None
        self._born: dict[int, int] = {}  # by thread: events before it was made
        self._labels: dict[int, int] = {0: 1}  # by thread
        self._made: dict[int, int] = {}  # by thread: what it has made
        self._waiting: list[tuple[int, list[tuple[int, int, Any, bool, Any]]]] = []
        self._late: dict[int, list[tuple[int, int]]] = {}  # by number of events: whose time came when none could go on
        self._idle = False

    # -- a run -------------------------------------------------------------------------------------------------

    def begin(self, scheduler: Scheduler) -> bool:
        """Take the next branch; False when there is none left."""
        self._scheduler = scheduler
        if scheduler.version != self._version:  # there are more points than before
            self._version = scheduler.version
            self._restart()
        self.end(scheduler)
        if self.exhausted:
            return False
        self._ran = True
        first = self._stack[-1].tree[0][1] if self._stack else []
        self._forget_run()
        self._follow = first
        self._from = max(0, len(self._stack) - 1)
        scheduler.observer = self
        return True

    def end(self, scheduler: Scheduler) -> None:
        """Learn from the run."""
        if self._ran:
            self._ran = False
            self.exhausted = not self._next(scheduler)

    def choose(self, ready: list[Task], me: Task) -> Task:
        """Follow the branch, then the thread that ran, or the first, of those that are not asleep."""
        scheduler = self._scheduler
        data = ready[0].ident == -1
        at = self._at
        if at < len(self._stack):
            node = self._stack[at]
            chosen = self._found(ready, me, node.label)
            if chosen is None:
                scheduler.abort(Stop("diverged", f"step {at + 1}: a thread should go on, and can't"))
        else:
            node = _Node()
            if self._stack:
                self._kept_asleep(self._stack[-1], node, ready, me)
            chosen = self._chosen(node, ready, me, data)
            if chosen is None:
                self.cut += 1
                scheduler.abort(Stop(CUT, "equivalent to a schedule that has run"))
            self._stack.append(node)
        self._at = at + 1
        node.ready = [self._branch(task, me) for task in ready]
        node.ahead = scheduler.ahead(chosen)
        node.for_all = not scheduler.tracking or scheduler.ranked
        thread = me if data else chosen
        self._now = event = _Event(thread.index, node.label, node, chosen.location, chosen.what)
        event.for_all = node.for_all or chosen.state is WAITING
        event.data = chosen.index if data else 0
        event.after_idle, self._idle = self._idle, False
        self._events.append(event)
        return chosen

    def _chosen(self, node: _Node, ready: list[Task], me: Task, data: bool) -> Task | None:
        """The first branch of a state that no run has come to."""
        follow, self._follow = self._follow, []
        tracking = self._scheduler.tracking
        labels = {self._branch(task, me): task for task in ready}
        branches = [branch for branch in follow if branch[0] in labels and branch[0] not in node.sleep]
        everything = data or not tracking or any(branch[0] not in labels for branch in follow)
        if everything or not follow:
            preferred = sorted(ready, key=lambda task: (task.state is WAITING, task is not me, task.index))
            known = {branch[0] for branch in branches}
            for task in preferred:
                label = self._branch(task, me)
                if label not in node.sleep and label not in known:
                    branches.append([label, []])
                    if not everything:
                        break
        if not branches:
            return None
        known = {branch[0] for branch in branches}
        early = [label for label, task in labels.items() if task.state is WAITING and label not in known]
        branches.extend([label, []] for label in early)
        node.tree = branches
        node.label = branches[0][0]
        self._follow = branches[0][1]
        return labels[node.label]

    def _found(self, ready: list[Task], me: Task, label: int) -> Task | None:
        return next((task for task in ready if self._branch(task, me) == label), None)

    def _branch(self, task: Task, me: Task) -> int:
        """The label of a thread; another one where its wait would end early."""
        label = self._label(task, me)
        return hash((label, 5)) if task.state is WAITING and task.ident != -1 else label

    def _label(self, task: Task, me: Task) -> int:
        """A number for a thread: the same in every run that is equivalent; for a choice of `me`, one of that."""
        if task.ident == -1:
            return hash((self._label(me, me), task.index))
        label = self._labels.get(task.index)
        if label is None:
            parent = self._label(self._scheduler.threads[task.parent], me)
            label = self._labels[task.index] = hash((parent, task.number))
        return label

    def _kept_asleep(self, before: _Node, node: _Node, ready: list[Task], me: Task) -> None:
        """What was asleep before the last step, and does not depend on it, is asleep after it."""
        if not before.sleep:
            return
        assert self._now is not None
        for_all, names = self._now.for_all, self._names(self._now)
        if for_all:
            return
        for task in ready:
            label = self._branch(task, me)
            known = before.sleep.get(label)
            if known is None or label == before.label:
                continue
            ahead, others, alone = known
            if not alone and self._scheduler.ahead(task) == ahead and not _compete(others, names):
                node.sleep[label] = known

    # -- told by the scheduler ---------------------------------------------------------------------------------

    def began(self, thread: Task) -> None:
        """See `Observer`."""
        self._born[thread.index] = len(self._events)

    def noted(self, me: Task, location: Any, writes: bool) -> None:
        """See `Observer`."""
        if self._now is None or self._scheduler.aborting:
            return
        free = True
        if isinstance(location, Lock):
            free = location.owner is me if writes else location.owner is None
            free = free and not (self._now.taken and location is self._now.location)  # its owner tries it again
        elif isinstance(location, Semaphore):
            free = location.free
        self._now.accesses.append((location, writes, free))

    def concerns_all(self) -> None:
        """See `Observer`."""
        if self._now is not None:
            self._now.for_all = True

    def idle(self) -> None:
        """See `Observer`."""
        scheduler = self._scheduler
        if scheduler.aborting:
            return
        waiting = [
            (task.index, self._label(task, task), task.location, task.writes, task.what)
            for task in scheduler.threads
            if task.state is WAITING and task.location is not None
        ]
        self._waiting.append((len(self._events), waiting))
        if scheduler.spare:  # it could have been before the last steps of the others, which came to their end
            self._late[len(self._events)] = [(task.index, self._branch(task, task)) for task in scheduler.soon()]
        self._idle = True

    def named(self) -> int:
        """See `Observer`."""
        me = self._scheduler.current
        self._made[me.index] = made = self._made.get(me.index, 0) + 1
        return hash((self._label(me, me), made, 7)) or 1

    # -- after a run -------------------------------------------------------------------------------------------

    def _names(self, event: _Event) -> _Names:
        """What a step has accessed beyond what it had said; with it what it had said, where that has a name."""
        names = []
        for location, writes, _ in event.accesses:
            if isinstance(location, Task):
                names.append((hash((self._label(location, location), 9)), writes))
            elif isinstance(location, Location):
                names.append((location.name or id(location), writes))
            elif location is not event.location and location not in parts_of(event.location):
                names.append((_ANYTHING, True))
        return frozenset(names)

    def _next(self, scheduler: Scheduler) -> bool:
        """Note what the races of the last run ask for, and move on to the next branch."""
        stop, events = scheduler.stop, self._events
        if stop is not None and stop.thread is not None and events:  # the last step ended the run for all
            events[-1].for_all = True
        cut = stop is not None and stop.kind == CUT
        if scheduler.tracking:
            self._races(events, failed=bool(stop is not None and stop.thread is not None and not cut))
        stack = self._stack
        del stack[self._at :]
        for at, (node, event) in enumerate(zip(stack, events, strict=False)):
            following = events[at + 1].data if at + 1 < len(events) else 0
            node.for_all = event.for_all or following in _READINGS  # a step that leads to one goes with it
        for node, event in zip(stack[self._from :], events[self._from :], strict=False):
            node.names = self._names(event)
        while stack:
            node = stack[-1]
            node.tree.pop(0)
            if node.label in node.ready and scheduler.tracking and not self._is_choice(len(stack) - 1):
                node.sleep[node.label] = (node.ahead, node.names, node.for_all)
            while node.tree and node.tree[0][0] in node.sleep:
                node.tree.pop(0)
            if node.tree:
                node.label = node.tree[0][0]
                return True
            stack.pop()
        return False

    def _is_choice(self, at: int) -> bool:
        """Whether a thread chose among what it has itself to do."""
        event = self._events[at]
        return event.label != self._labels.get(event.thread)

    # More complex than other functions: one pass over the steps keeps five clocks in step, for each schedule anew.
    def _races(self, events: list[_Event], *, failed: bool) -> None:  # noqa: C901
        """Order the steps of the run, and note for each race what would reverse it."""
        last: dict[int, int] = {}  # by thread
        history: dict[Any, list[tuple[int, bool, bool]]] = {}
        waiting = dict(self._waiting)
        idle: list[int] = []  # the clock of all that was when no thread could go on
        races: list[tuple[int, _Event, int]] = []
        alone = -1  # the last step that all depend on
        for at in range(len(events) + 1):
            if at in waiting and at > self._from:
                for thread, label, location, writes, what in waiting[at]:
                    before = self._before(thread, last, idle)
                    event = _Event(thread, label, None, location, what)
                    found = self._competing(history, event, location, writes, before, self._mine(thread, last))
                    clock = before
                    for other in found:
                        clock = _joined(clock, events[other].clock)
                    event.clock = clock
                    races.extend((other, event, at) for other in found)
            if at > self._from:
                races.extend(self._too_late(at, last, idle))
            if at == len(events):
                break
            event = events[at]
            thread = event.thread
            if event.after_idle:
                idle = []
                for other in last.values():
                    idle = _joined(idle, events[other].clock)
            before = self._before(thread, last, idle)
            mine = self._mine(thread, last)
            racing: list[int] = []
            clock = before
            if alone >= 0 and not self._knows(before, alone):
                racing.append(alone)
                clock = _joined(clock, events[alone].clock)
            if event.for_all:
                for other in last.values():
                    if not self._knows(before, other):
                        racing.append(other)
                        clock = _joined(clock, events[other].clock)
            for location, writes, _ in event.accesses:
                found = self._competing(history, event, location, writes, before, mine)
                racing.extend(other for other in found if other not in racing)
                clock = self._ordered(history, location, writes, clock)
            for location, writes, free in event.accesses:
                history.setdefault(location, []).append((at, writes, free))
            event.number = events[last[thread]].number + 1 if thread in last else 1
            clock = [*clock, *[0] * (thread + 1 - len(clock))]
            clock[thread] = event.number
            event.clock = clock
            last[thread] = at
            if event.for_all:
                alone = at
            if at >= self._from:
                races.extend((other, event, at) for other in racing if self._could(other, event, mine))
        for other, event, end in races:
            self._reverse(other, event, end)
        if failed and events and events[-1].node is not None:
            # The threads that could have gone on instead of the one that failed did not get to their steps.
            node = events[-1].node
            assert node is not None
            for label in node.ready:
                if label not in node.sleep and all(label != branch[0] for branch in node.tree):
                    node.tree.append([label, []])

    def _too_late(self, at: int, last: dict[int, int], idle: list[int]) -> Iterator[tuple[int, _Event, int]]:
        """The races of the waits that the clock ended, with the last step of each other thread."""
        for thread, label in self._late.get(at, ()):
            event = _Event(thread, label, None, None, "time")
            before = self._before(thread, last, idle)
            mine = self._mine(thread, last)
            found = [
                other
                for index, other in last.items()
                if index != thread
                and not self._knows(before, other)
                and self._was_soon(label, max(other, mine + 1), at)
            ]
            event.clock = before
            for other in found:
                event.clock = _joined(event.clock, self._events[other].clock)
            yield from ((other, event, at) for other in found)

    def _was_soon(self, label: int, at: int, end: int) -> bool:
        """Whether a wait, which is over at the step `end`, could have ended early at the step `at`."""
        if at >= end:
            return True
        while self._events[at].data:
            at -= 1
        node = self._events[at].node
        return node is None or label in node.ready

    def _mine(self, thread: int, last: dict[int, int]) -> int:
        """The step after which a thread had come to what it does next."""
        return last[thread] if thread in last else self._born.get(thread, 0) - 1

    def _before(self, thread: int, last: dict[int, int], idle: list[int]) -> list[int]:
        """What comes before the next step of a thread because of what it has done, and what made it."""
        events = self._events
        if thread in last:
            clock = events[last[thread]].clock
        else:
            born = self._born.get(thread, 0)
            clock = events[born - 1].clock if born > 0 else []
        return _joined(clock, idle) if idle else clock

    def _knows(self, clock: list[int], at: int) -> bool:
        event = self._events[at]
        return event.thread < len(clock) and clock[event.thread] >= event.number

    def _competing(
        self,
        history: dict[Any, list[tuple[int, bool, bool]]],
        event: _Event,
        location: Any,
        writes: bool,
        before: list[int],
        mine: int,
    ) -> list[int]:
        """The last steps that an access depends on, and that could come after it."""
        found: list[int] = []
        for at, wrote, free in reversed(history.get(location, ())):
            if not wrote and not writes:
                continue
            if self._knows(before, at):
                if wrote:
                    break
                continue
            if not self._could(at, event, mine):
                continue
            if mine > at and not free and event.what == "acquire" and location is event.location:
                continue
            if at not in found:
                found.append(at)
            if wrote:
                break
        return found

    def _could(self, at: int, event: _Event, mine: int) -> bool:
        """Whether the thread of `event`, if it had come to it, could go on at the place of a step."""
        while self._events[at].data:
            at -= 1
        node = self._events[at].node
        return mine >= at or node is None or self._thread_label(event) in node.ready

    def _thread_label(self, event: _Event) -> int:
        """The label that has to be ready for a step: of its thread, or of the early end of a wait."""
        return self._labels.get(event.thread, event.label) if event.data else event.label

    def _ordered(
        self, history: dict[Any, list[tuple[int, bool, bool]]], location: Any, writes: bool, clock: list[int]
    ) -> list[int]:
        """`clock`, and what an access comes after."""
        for at, wrote, _ in reversed(history.get(location, ())):
            if wrote or writes:
                clock = _joined(clock, self._events[at].clock)
            if wrote:
                break
        return clock

    def _reverse(self, at: int, event: _Event, end: int) -> None:
        """Note at the place of a step: all that does not come after it, then `event`."""
        events = self._events
        while events[at].data:  # no other thread goes on between a step and the choice that it leads to
            at -= 1
        first = events[at]
        node = first.node
        if node is None:
            return
        thread, number = first.thread, first.number
        rest: list[_Event] = []
        later: list[_Event] = []
        for index in range(at + 1, len(events)):
            other = events[index]
            if other is event:
                continue
            if not (thread < len(other.clock) and other.clock[thread] >= number):
                (rest if index < end else later).append(other)
            elif index < end and other.thread == event.thread:
                return  # its thread has come to it only behind the step that led to the choice
        maker = self._born.get(event.thread, 0) - 1
        if at <= maker < end and events[maker] not in rest:
            return  # that step has made its thread
        rest.append(event)
        if self._is_known(node, rest):
            return
        _insert_events(node.tree, rest, later, start=1)

    def _is_known(self, node: _Node, rest: list[_Event]) -> bool:
        """Whether something that is asleep at a node could as well come first."""
        for label in node.sleep:
            at = next((at for at, event in enumerate(rest) if event.label == label), -1)
            if at >= 0 and not any(_precedes(other, rest[at]) for other in rest[:at]):
                return True
        return False


def _precedes(first: _Event, second: _Event) -> bool:
    thread = first.thread
    return thread < len(second.clock) and second.clock[thread] >= first.number


def _insert_events(tree: _Tree, rest: list[_Event], later: list[_Event], start: int = 0) -> None:
    """Have `tree` run what `rest` asks for, and then `later`: after a branch that could as well come first, or last."""
    while rest:
        for branch in tree[start:]:
            at = next((at for at, event in enumerate(rest) if event.label == branch[0]), -1)
            if at >= 0 and not any(_precedes(other, rest[at]) for other in rest[:at]):
                break
        else:
            for event in [*rest, *later]:
                tree.append([event.label, tree := []])
            return
        rest = [*rest[:at], *rest[at + 1 :]]
        tree, start = branch[1], 0


def _joined(one: list[int], other: list[int]) -> list[int]:
    """What comes before either."""
    if len(one) < len(other):
        one, other = other, one
    return [*map(max, one, other), *one[len(other) :]]


def _compete(one: _Names, other: _Names) -> bool:
    """Whether two steps access the same, and one of them changes it."""
    if (_ANYTHING, True) in one or (_ANYTHING, True) in other:
        return True
    return any((name, True) in other or (writes and (name, False) in other) for name, writes in one)
