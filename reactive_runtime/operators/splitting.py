"""One source to several flows: groups and windows, each a flow of its own, with a bounded buffer.

The source is asked for more while the next group is demanded, or a group that has a subscriber demands more. A full
buffer holds the source back, if its group has a subscriber, who will take what is in it. If it has none, it would be
full for ever: the flow then fails and says so, instead of hanging.

A group may outlive the flow that it came from. So the source has a drain of its own (`_Split` hangs on it), which ends
when the outer flow and all groups that have a subscriber are over. It deals the elements out to *boxes*, one for each
group and one for the outer flow. A box hangs on the drain of its subscriber, and leaves a note for the source's when it
can take more. That drain works when no other is owned by the same thread; so each element goes its way, and a group
that has had enough is gone, before the source is asked for the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reactive_runtime._core import primitives
from reactive_runtime._core.arguments import a_function, at_least
from reactive_runtime._core.feed import Feed
from reactive_runtime._core.gather import END, PENDING, Elements, Gather, Lane
from reactive_runtime._core.host import Host
from reactive_runtime._core.inbox import Inbox
from reactive_runtime._core.origin import Origin, Part, Plan, flow_of, gathered
from reactive_runtime._core.outbox import Outbox
from reactive_runtime._core.step import Step, describe
from reactive_runtime._core.subscription import PulledSubscription
from reactive_runtime.errors import RejectedError
from reactive_runtime.spec import MAX_DEMAND, Subscription

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["group_by", "window"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

AHEAD: Final = 256
"""Elements of the source that may be asked for ahead, where it has a thread of its own or pushes."""

BATCH: Final = 256
"""Elements that are dealt out before the source's drain looks for notes, and gives way on a pool."""


def group_by(
    source: Flow[T], key: Callable[[T], K], /, groups: int = 64, prefetch: int = 256
) -> Flow[tuple[K, Flow[T]]]:
    """A pair `(key, flow)` for each new `key(element)`; the flow has the elements with that key.

    Each group's flow is for one subscriber, and buffers up to `prefetch` elements (1 or more) until it comes. At most
    `groups` (1 or more) are open at a time: one more is an OverflowError that says so, and so is a full buffer of a
    group that has no subscriber. A group whose subscriber cancels is closed, and opened anew by its next element; what
    it had not delivered goes to the new one. All groups complete, or fail, with the source; the outer flow completes
    when what waits in groups with a subscriber is delivered. When the outer flow is cancelled, the groups that have a
    subscriber go on, and what belongs to no such group is dropped, to the hook; when all of them are over as well, the
    source is cancelled. Who subscribes to a group later than that gets a RejectedError. Origin: `groupBy` of Rx.

    >>> from reactive_runtime import Flow
    >>> flow = Flow.range(6).group_by(lambda n: n % 2)
    >>> list(flow.flat_map(lambda it: it[1].to_list().map(lambda elements: (it[0], elements))))
    [(0, [0, 2, 4]), (1, [1, 3, 5])]
    """
    a_function("group_by", "key", key)
    at_least("group_by", "groups", 1, groups)
    at_least("group_by", "prefetch", 1, prefetch)
    return gathered(
        f"group_by({describe(key)})", lambda: _Given(lambda: _GroupBy(source, key, groups, prefetch)), source
    )


def window(source: Flow[T], n: int, /) -> Flow[Flow[T]]:
    """Flows of `n` elements each (1 or more), one after the other; the last one may be shorter.

    Each is for one subscriber, and buffers what it has until it is asked. What a window has not delivered when its
    subscriber cancels is dropped, to the hook. Errors, the end and cancellation are those of `group_by`.
    Origin: `window` of Rx.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(5).window(2).concat_map(lambda window: window.to_list()))
    [[0, 1], [2, 3], [4]]
    """
    at_least("window", "n", 1, n)
    return gathered(f"window({n})", lambda: _Given(lambda: _Window(source, n)), source)


class _Box(Feed):
    """Feeds one subscriber with what the source's drain has for it."""

    __slots__ = (
        "_ahead",
        "_error",
        "_gone",
        "_host",
        "_items",
        "_left",
        "_lock",
        "_noted",
        "_over",
        "_short",
        "_split",
        "_told",
        "_traceback",
        "capacity",
    )

    waits = True

    def __init__(self, split: _Split, capacity: int) -> None:
        self._split = split
        self.capacity = capacity
        self._lock = primitives.Lock()
        self._items: deque[Any] = deque()  # _lock; len <= capacity
        self._left: list[Any] = []  # _lock; what waited when the subscriber cancelled
        self._over = False  # _lock; there will be no more
        self._error: BaseException | None = None  # _lock; and this is why
        self._traceback: TracebackType | None = None  # _lock; of that error, as it came
        self._host: Host | None = None  # _lock; set once, by attach
        self._ahead: int | None = None  # _lock; how many may wait, whatever is demanded; None: what is demanded
        self._short = False  # _lock; it could take no more, and the source's drain has not heard that it can
        self._noted = False  # _lock; the source's drain is about to be woken, when the subscriber's has been left
        self._told: tuple[list[Any], Any] | None = None  # _lock; see Feed.tell
        self._gone = False  # _lock; the subscriber wants no more

    # -- the source's drain ------------------------------------------------------------------------------------

    def put(self, element: Any) -> bool:
        """Take `element`; False: there is no room, or no need. The subscriber is not woken: see `wake`."""
        with self._lock:
            if self._over or self._gone:
                return False
            self._short = len(self._items) >= self.capacity
            if not self._short:
                self._items.append(element)
            return not self._short

    def end(self, error: BaseException | None = None) -> None:
        """There will be no more."""
        with self._lock:
            if not (self._over or self._gone):
                self._over, self._error = True, error
                self._traceback = None if error is None else error.__traceback__

    def wake(self) -> None:
        """Let the subscriber see to what has come. May call it, on this thread."""
        with self._lock:
            host, told, self._told = self._host, self._told, None
        if host is None:
            return
        if told is not None:
            waiting, who = told
            with host._lock:
                waiting.append(who)
        host._add(0)

    def wants(self) -> bool:
        """Whether one more element could be delivered, or may wait. Where not, it will wake the source's drain."""
        with self._lock:
            waiting, host, ahead = len(self._items), self._host, self._ahead
            if self._over or self._gone:
                return False
            self._short = True  # until it is known, so that no note is missed
        if waiting >= self.capacity or host is None:
            return False
        if ahead is not None:
            wanted = waiting < ahead
        else:
            with host._lock:
                wanted = host._demand > waiting
        if wanted:
            with self._lock:
                self._short = False
        return wanted

    def lag(self) -> int:
        """How many elements wait; where any do, the source's drain will be woken when one is taken."""
        with self._lock:
            self._short = self._short or bool(self._items)
            return len(self._items)

    def gone(self) -> bool:
        """Whether the subscriber has cancelled, or has had all."""
        with self._lock:
            return self._gone

    def left(self) -> list[Any]:
        """What waited when the subscriber cancelled: once."""
        with self._lock:
            left, self._left = self._left, []
        return left

    def take_out(self) -> list[Any]:
        """All that waits."""
        with self._lock:
            items = list(self._items)
            self._items.clear()
        return items

    # -- the feed: the owner of the subscriber's drain ---------------------------------------------------------

    def ask_ahead(self, n: int | None) -> None:
        """Let so many wait, at most, whatever is demanded. Called before `attach`."""
        with self._lock:
            self._ahead = n

    def attach(self, host: Host) -> None:
        with self._lock:
            self._host = host

    def connect(self) -> None:
        self._rouse(owned=False)

    def open(self) -> Iterator[Any]:
        return self

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._lock:
            if not self._items:
                if not self._over:
                    return PENDING
                if self._error is not None:
                    raise self._error
                raise StopIteration
            element = self._items.popleft()
            short, self._short = self._short, False
        if short:
            self._rouse()
        return element

    def relays(self) -> bool:
        with self._lock:
            return self._ahead is None

    def want(self, n: int) -> None:
        with self._lock:
            short, self._short = self._short, False
        if short:
            self._rouse()

    def tell(self, told: list[Any], who: Any) -> bool:
        with self._lock:
            if self._items or self._over:
                return False
            self._told = told, who
            return True

    def exhausted(self) -> bool:
        with self._lock:
            return self._over and not self._items

    def close(self) -> None:
        with self._lock:
            self._gone = True
            self._left = list(self._items)
            self._items.clear()
            host, error, traceback = self._host, self._error, self._traceback
        if error is not None and host is not None:
            host._raised = error, traceback
        if self._split.departed(self):
            self._rouse()

    def _rouse(self, *, owned: bool = True) -> None:
        """Have the source's drain look at this. `owned`: called by the owner of the subscriber's drain."""
        with self._lock:
            host = self._host
        if self._split.note():
            return
        if host is None or host._stop:  # it will make no more calls
            self._split.wake()
            return
        with self._lock:
            noted, self._noted = self._noted, True
        if not noted:
            host._later(self._wake)
        if not owned:
            host._add(0)

    def _wake(self) -> None:
        with self._lock:
            self._noted = False
        self._split.wake()


class _Group:
    """One of the flows."""

    def __init__(self, split: _Split, key: Any, capacity: int) -> None:
        self.key = key
        self.box = _Box(split, capacity)
        self._lock = primitives.Lock()
        self._taken = False  # _lock; it has a subscriber
        self._refusal: str | None = None  # _lock; why it will have none
        self.size = 0  # the owner of the source's drain; of a window, how many elements were for it

    def take(self, prefetch: int | None) -> Feed:
        """The feed of the one subscriber."""
        with self._lock:
            refusal = self._refusal
            self._taken = True
            self._refusal = refusal or "a group, or a window, is for one subscriber, and has it already"
        if refusal is None:
            self.box.ask_ahead(prefetch)
            return self.box
        refused = Outbox(1)
        refused.end(RejectedError(refusal))
        return refused

    def abandon(self, refusal: str) -> bool:
        """It will have no subscriber. False: it has one."""
        with self._lock:
            if not self._taken:
                self._refusal = self._refusal or refusal
            return not self._taken

    def taken(self) -> bool:
        """Whether it has a subscriber."""
        with self._lock:
            return self._taken

    def flow(self, title: str) -> Flow[Any]:
        """What goes downstream."""
        return flow_of(_Taken(title, self.take))


@dataclass(frozen=True, slots=True)
class _Taken(Origin[Any]):
    """The elements of a group."""

    title: str
    take: Callable[[int | None], Feed]
    executor: Executor | None = None

    def plan(self) -> Plan:
        return Plan(self.take, (), self.executor, pulls=False)

    def on(self, executor: Executor) -> _Taken:
        return self if self.executor else replace(self, executor=executor)

    def parts(self, above: list[Part], steps: Sequence[Step[Any, Any]]) -> list[Part]:
        return [Part(" ".join((self.title, *map(str, steps))), self.executor)]


class _Given(Gather):
    """The outer flow: the groups, as they begin. Its source has a drain of its own."""

    hears = True
    calls = False

    def __init__(self, make: Callable[[], _Split]) -> None:
        super().__init__()
        self.make = make
        self.split: _Split | None = None

    def elements(self) -> Elements:
        split = self.split = self.make()
        split.title, split.place, split.apart = self.title, self.place, True
        executor = self.sources_on or self.host._executor
        drain = self.host._context.copy().run(PulledSubscription, _End(split), split, (), executor)
        split.heard = self.heard  # it has no subscriber: who hears of its discards is downstream of this one
        self.host._later(drain.start)
        lane = self.lane(flow_of(_Taken("", lambda prefetch: split.outer)), made=True)
        seen = 0
        while (group := lane.poll()) is not END:
            if group is PENDING:
                if split.doubts():
                    passed = seen if self.host.demanded else split.gave()  # what is not demanded is not waited for
                    self.host._later(partial(_pass_on, self.host, partial(split.assure, passed)))
                yield PENDING
            else:
                yield split.given(group)
                seen += 1

    def want(self, n: int) -> None:
        if self.split is not None:
            self.split.want_groups(n)


def _pass_on(host: Host, assure: Callable[[], object]) -> None:
    """Nobody owns the drain now; call `assure` when this holds for the drains behind it too, across each boundary."""
    subscriber = host._subscriber if isinstance(host, PulledSubscription) else None  # of the owner; None once closed
    if type(subscriber) is Inbox:
        behind = subscriber._drain
        behind._later(partial(_pass_on, behind, assure))
        behind._add(0)
    else:
        assure()


class _End:
    """Is told when the source's drain has ended."""

    def __init__(self, split: _Split) -> None:
        self.split = split

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Nothing is demanded here: the boxes have their own demand."""

    def on_next(self, element: Any, /) -> None:
        raise AssertionError("nothing was demanded")

    def on_error(self, error: BaseException, /) -> None:
        self.split.finish(error)

    def on_complete(self) -> None:
        self.split.finish(None)


class _Split(Gather):
    """Deals the elements of the source out to groups. Hangs on a drain that has no subscriber of its own."""

    def __init__(self, source: Flow[Any]) -> None:
        super().__init__()
        self.source = source
        self.outer = _Box(self, MAX_DEMAND)
        self._lock = primitives.Lock()
        self._wanted = 0  # _lock; groups that are demanded, and not given
        self._gave = 0  # _lock; groups that are given
        self._departed: list[_Box] = []  # _lock; subscribers that have cancelled, and were not looked at
        self._shut = False  # _lock; the drain is closed
        self._asked = False  # _lock; `assure` is waited for
        self._assured = False  # _lock; and was called, and no group has been given since
        # The rest belongs to the owner of the source's drain.
        self.open_groups: dict[Any, _Group] = {}
        self.boxes: dict[_Box, _Group] = {}  # of the groups that have not gone
        self.fresh: deque[_Group] = deque()  # opened, and not yet given downstream
        # Keys and elements that are dealt out before others: what a group had not delivered when it was cancelled, and
        # one that has found no room. Of one key the oldest comes first.
        self.again: deque[tuple[Any, Any]] = deque()
        self.doubted: _Group | None = None  # it is full, and has no subscriber
        self.forsaken = False  # the outer flow is cancelled

    # -- the boxes: any thread ---------------------------------------------------------------------------------

    def note(self) -> bool:
        """Leave a note for the source's drain, where it is at work. False: it is not."""
        drain = self.host
        with drain._lock:
            drain._missed = drain._missed or drain._busy
            return drain._busy

    def wake(self) -> None:
        """Let the source's drain look at the boxes. May work it off, on this thread."""
        self.host._add(0)

    def departed(self, box: _Box) -> bool:
        """Its subscriber has cancelled, or has had all. False: there is no need to wake the source's drain."""
        with self._lock:
            shut = self._shut
            if not shut:
                self._departed.append(box)
        if shut:
            self._forget(box)
        return not shut

    def want_groups(self, n: int) -> None:
        """So many groups are demanded. Called by the owner of the outer flow's drain."""
        with self._lock:
            n -= self.outer.lag()
            more = n > self._wanted
            self._wanted = n
        if more:
            self.outer._rouse()

    def doubts(self) -> bool:
        """Whether the source's drain waits for `assure`."""
        with self._lock:
            return self._asked and not self._assured

    def gave(self) -> int:
        """How many groups the outer flow has been given."""
        with self._lock:
            return self._gave

    def assure(self, seen: int) -> None:
        """The outer flow has passed so many groups on, and those behind it have been idle since: they want no more.

        Or the outer flow had so many, and was not asked for the next: an operator takes one at a time.
        """
        with self._lock:
            self._assured = self._asked and seen == self._gave
        self.wake()

    # -- what becomes of an element ----------------------------------------------------------------------------

    def key_of(self, element: Any) -> Any:
        """What tells the group of an element."""
        return None

    def group_of(self, key: Any) -> tuple[_Group, bool]:
        """Where an element goes, and whether that is new."""
        raise NotImplementedError

    def full(self, group: _Group) -> Exception:
        """The group has no room, and will have no subscriber to make some."""
        raise NotImplementedError

    def undelivered(self, group: _Group, elements: list[Any]) -> None:
        """The group was cancelled before it had delivered them."""
        self.discard(*elements)

    def given(self, group: _Group) -> Any:
        """What goes downstream for a new group."""
        raise NotImplementedError

    def wants_more(self, group: _Group) -> bool:
        """Whether the group has use for one more element."""
        return group.taken() and group.box.wants()

    # -- the source's drain ------------------------------------------------------------------------------------

    def elements(self) -> Elements:
        lane: Lane | None = None
        dealt = 0
        while True:
            self._settle()
            if self.forsaken and not self.boxes:
                self._cancel()
                yield PENDING
                continue
            if lane is None:
                lane = self.lane(self.source, AHEAD)
            if self.again:
                moved = self._deal(*self.again.popleft())
            else:
                try:
                    news = lane.signal() if self._wanting() else lane.look()
                except Exception:
                    self._give_what_is_wanted()
                    raise
                if news is END:
                    break
                moved = news is not PENDING and self._deal(self.key_of(news), news)
            if moved:
                dealt += 1
                if dealt % BATCH:
                    continue
                self.wake()  # and give way
            yield PENDING
        yield from self._finish()

    def _wanting(self) -> bool:
        with self._lock:
            wanted = self._wanted > 0 and not self.forsaken
        return wanted or any(map(self.wants_more, self.boxes.values()))

    def _settle(self) -> None:
        """See to the boxes whose subscribers have gone, and to the groups that can be given."""
        with self._lock:
            departed, self._departed = self._departed, []
        for box in departed:
            if box is self.outer:
                self._forsake()
            else:
                self._close(box)
        while self.fresh and not self.forsaken:
            with self._lock:
                if self._wanted <= 0:
                    return
                self._wanted -= 1
                self._gave += 1
                self._assured = False
                self.outer.put(self.fresh.popleft())
            self.outer.wake()

    def _give_what_is_wanted(self) -> None:
        """The source has failed: the groups that are demanded come before its error."""
        while self.fresh and not self.forsaken and self.outer.wants():
            self.outer.put(self.fresh.popleft())
        self.outer.wake()

    def _forsake(self) -> None:
        """The outer flow is cancelled: what has no subscriber will have none."""
        self.forsaken = True
        self.fresh.clear()
        self._abandon(self.outer.left())
        self._abandon(list(self.boxes.values()))
        self._discard_again()

    def _abandon(self, groups: Iterable[_Group]) -> None:
        """Those of them that have no subscriber."""
        for group in groups:
            if group.abandon(f"{self.title}: the outer flow was cancelled"):
                self._close(group.box)

    def _discard_again(self) -> None:
        again, self.again = self.again, deque()
        self.discard(*(element for _, element in again))

    def _close(self, box: _Box) -> None:
        """Nothing more for this group."""
        group = self.boxes.pop(box, None)
        if group is not None and self.open_groups.get(group.key) is group:
            del self.open_groups[group.key]
        gone = box.gone()
        if group is not None and gone:
            self.undelivered(group, box.left())
        elif gone:
            self.discard(*box.left())
        else:
            self.discard(*box.take_out())

    def _deal(self, key: Any, element: Any) -> bool:
        """Give the element to its group; a new group waits in `fresh` until it is demanded. False: there is no room."""
        group, new = self.group_of(key)
        if new and self.forsaken:
            self.discard(element)
            return True
        if new:
            self.open_groups[group.key] = self.boxes[group.box] = group
            self.fresh.append(group)
        if self.put(group, element):
            return True
        self.again.appendleft((key, element))
        if group.box.gone():
            self._close(group.box)
            return True
        self._doubt(group)
        return False

    def put(self, group: _Group, element: Any) -> bool:
        """Put it into the group's box, if there is room."""
        if not group.box.put(element):
            return False
        group.box.wake()
        return True

    def _doubt(self, group: _Group) -> None:
        """Raise where a full group will have no subscriber: all is seen that was given, and no group is wanted."""
        with self._lock:
            hopeless = self._assured and self.doubted is group
            self._asked, self._assured = True, hopeless
        if group.taken():  # looked at last: the outer flow may have seen it just now
            return
        if hopeless:
            raise self.full(group)
        self.doubted = group
        self.outer.wake()

    def _seen(self, enough: Callable[[], bool]) -> Elements:
        """Wait until the outer flow has seen all groups that were given to it, or it is `enough`."""
        with self._lock:
            self._asked, self._assured = True, False
        while not (self.forsaken or enough()):
            self.outer.wake()
            yield PENDING
            self._settle()
            with self._lock:
                if self._assured:
                    break
        with self._lock:
            self._asked = False

    def _finish(self) -> Elements:
        """The source has ended: so do the groups, and at last the outer flow, when what waits is delivered.

        Until then a group may be cancelled, and what it has not delivered belongs to a new one.
        """
        while True:
            self._end_groups(None)
            self._settle()
            while self.again:
                if not self._deal(*self.again.popleft()):
                    yield PENDING
                self._settle()
            if self.open_groups:
                continue
            if not (self.fresh or self._undelivered()):
                yield from self._seen(lambda: bool(self.again or self.fresh))
                if not (self.again or self.fresh or self._undelivered()):
                    return
                continue
            yield PENDING

    def _undelivered(self) -> bool:
        """Whether a group may still be cancelled before it has delivered all."""
        waiting = (box.lag() for box, group in self.boxes.items() if group.taken())
        return not self.forsaken and (self.outer.lag() > 0 or any(waiting))

    def _end_groups(self, error: BaseException | None) -> None:
        groups, self.open_groups = self.open_groups, {}
        for group in groups.values():
            group.box.end(error)
            group.box.wake()

    def _cancel(self) -> None:
        drain = self.host
        assert isinstance(drain, PulledSubscription)
        drain.cancel()

    def finish(self, error: BaseException | None) -> None:
        """The drain has ended."""
        self._end_groups(error)
        self.outer.end(error)
        self.outer.wake()

    def closed(self) -> None:
        with self._lock:
            self._shut = True
            departed, self._departed = self._departed, []
        self._discard_again()
        self._abandon(self.fresh)
        for box in departed:
            self._forget(box)

    def _forget(self, box: _Box) -> None:
        """It was cancelled when there is nothing more to deal out."""
        left = box.left()
        if box is not self.outer:
            self.discard(*left)
            return
        for group in left:
            if group.abandon(f"{self.title}: the outer flow was cancelled"):
                self.discard(*group.box.take_out())


class _GroupBy(_Split):
    def __init__(self, source: Flow[Any], key: Callable[[Any], Any], groups: int, prefetch: int) -> None:
        super().__init__(source)
        self.key = key
        self.groups = groups
        self.prefetch = prefetch

    def key_of(self, element: Any) -> Any:
        return self.call(self.key, element)

    def group_of(self, key: Any) -> tuple[_Group, bool]:
        group = self.open_groups.get(key)
        if group is not None:
            return group, False
        if len(self.open_groups) >= self.groups and not self.forsaken:
            raise self.fault(
                OverflowError(f"{self.title}: {self.groups} groups are open, and {key!r} would be one more (groups=)")
            )
        return _Group(self, key, self.prefetch), True

    def full(self, group: _Group) -> Exception:
        return self.fault(
            OverflowError(
                f"{self.title}: {self.prefetch} elements wait in group {group.key!r}, and nobody has subscribed to it:"
                " consume every group, or take fewer at a time (flat_map's concurrency at least the number of groups)"
            )
        )

    def undelivered(self, group: _Group, elements: list[Any]) -> None:
        if self.forsaken:
            self.discard(*elements)
        else:
            self.again.extendleft((group.key, element) for element in reversed(elements))

    def given(self, group: _Group) -> Any:
        return group.key, group.flow(f"group({group.key!r})")


class _Window(_Split):
    def __init__(self, source: Flow[Any], n: int) -> None:
        super().__init__(source)
        self.n = n
        self.current: _Group | None = None
        self.number = 0

    def group_of(self, key: Any) -> tuple[_Group, bool]:
        current = self.current
        if current is not None and current.size < self.n:
            return current, False
        self.number += 1
        self.current = _Group(self, self.number, self.n)
        return self.current, True

    def put(self, group: _Group, element: Any) -> bool:
        if not group.box.put(element):
            self.discard(element)  # it was cancelled
        group.size += 1
        if group.size == self.n:  # it needs the source no more
            self.open_groups.pop(group.key, None)
            self.boxes.pop(group.box, None)
            group.box.end()
        group.box.wake()
        return True

    def wants_more(self, group: _Group) -> bool:
        return group is self.current and group.size < self.n and group.taken() and not group.box.gone()

    def given(self, group: _Group) -> Any:
        return group.flow(f"window({group.key})")
