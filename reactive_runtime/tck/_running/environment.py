"""One trial of one check: it notes signals and calls, waits for them, and reports what is wrong.

`run` starts a thread for the *body* of the check, and is itself the *watch*: in turns, it looks whether a call of the
implementation hangs (`call_timeout`). Then the trial names it, and leaves the thread behind. A *verification* has many.

Every signal takes the one lock of the trial, adds a note, and wakes the threads that wait. A breach that a publisher's
thread finds is a *fault*: it fails the check on the thread of its body.

A failure names the rule that was broken, which may be another one than the check is about: in every check the
subscribers of the kit find an element without demand, or a signal after the end.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from unittest import SkipTest

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.tck._running.busy_calls import Place, raised_in, stack_of
from reactive_runtime.tck._running.collector import COLLECTOR
from reactive_runtime.tck._running.copies import CAME_BACK, Original, forks
from reactive_runtime.tck._running.failures import (
    COROUTINE,
    FACTORY,
    KIT,
    ConformanceError,
    FactoryError,
    NotVerified,
    Over,
    described,
    outside,
    shown,
)
from reactive_runtime.tck._running.settings import Settings

__all__ = ["CALLS", "FEW", "LONG_ENOUGH", "TOO_MANY", "TURN", "Calls", "TestEnvironment", "started"]

Moment = tuple[float, float]
"""A time in seconds, and the sum of the seconds by which turns of the watch had come late until then."""

T = TypeVar("T")

KEPT = 40
"""A failure shows so many of the last signals."""

LONG_ENOUGH = 2.0
"""Seconds that a check of many elements may take."""

TURN = 0.05
"""Seconds of one turn: a thread of the kit that waits for 1 s waits for 20 turns."""

LONGEST = 3
"""The timeout of a call grows to at most so many times its value if the turns of the watch come late."""

BRIEF = 0.05
"""A failure mentions a call that has lasted for more seconds than this."""

FACTORY_TIMES = 5
"""A factory may take so many times `call_timeout`: it may compute, or fill a buffer, and breaks no rule by that."""

ENDLESS_TIMES = 5
"""A call may signal an endless stream for so many times the sum of `default_timeout` and `call_timeout`."""

FEW = 10_000
"""A factory that is slow for more elements than this may make all of them beforehand."""

TOO_MANY = "max_elements_from_publisher, or --max-elements, says how many elements a publisher can have"

KNOWN_TO_SPIN = 2
"""If so many calls of one name computed without end, the next ones count as hanging after a fifth of `call_timeout`."""

LEFT = 0.4
"""After a failure, a call computes without end if it has done so, and not signalled, for this share of its timeout."""

ENDING = 0.2
"""Seconds that the trial waits for such a call to end, after it has raised `Over` in its thread."""


@dataclass(frozen=True, slots=True)
class Note:
    """One signal or call."""

    thread: str
    text: str


@dataclass(frozen=True, slots=True)
class _Call:
    """A call into the implementation that is under way. It breaks `rule` if it does not return."""

    text: str
    thread: str
    since: Moment
    rule: str
    place: Place


def started(act: Callable[[], object], name: str) -> threading.Thread:
    """Start a thread that runs `act`; `Over` ends it silently."""

    def run() -> None:
        with contextlib.suppress(Over):
            act()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class Calls:
    """Hears of each call into the implementation; does nothing. The child of the command replaces `CALLS`, to report.

    The call breaks `rule` if it does not return; `rule` is empty for a call of a factory.
    """

    def begins(self, text: str, rule: str) -> None:
        """A call into the implementation begins."""

    def is_inside(self, text: str, rule: str) -> None:
        """A call has returned, and the call `text` is still under way; no call is if `text` is empty."""


CALLS = Calls()


class TestEnvironment:
    """The state of one check. `lock` owns each field that changes, unless its comment names another owner."""

    def __init__(self, rule: str, settings: Settings) -> None:
        self.rule = rule
        self.settings = settings
        self.lock: threading.Condition = threading.Condition(threading.RLock())
        self._notes: deque[Note] = deque(maxlen=KEPT)  # lock
        self._noted = 0  # lock; notes so far, with those that are no longer kept
        self._fault: ConformanceError | None = None  # lock; the first, or the first that breaks a rule
        self._calls: dict[int, _Call] = {}  # lock; the calls under way, by the identity of a token
        self._last_signal: Moment = (0.0, 0.0)  # lock
        self._signalled: dict[int, Moment] = {}  # lock; the last signal on each thread
        self._late = 0.0  # lock; seconds by which the turns of the watch came late
        self._names = 0  # lock; the number of names given
        self._subscribers: weakref.WeakSet[Any] = weakref.WeakSet()  # lock
        self.elements = MAX_DEMAND  # of the publisher of this trial; set before the factory runs
        self.depth = MAX_DEMAND  # how deep on_next may run inside on_next (3.3); likewise
        self.over: bool = False  # lock for writing; becomes True once, and any thread may read it
        self._original = Original()
        self._here = threading.local()  # in_vain: the timeout of the last wait of this thread, if that came in vain
        self.hung: dict[str, str] = {}  # failures of factories that hung, by name, in all trials of the verification
        self.spins: dict[str, int] = {}  # lock; calls that computed without end, by name; of all trials likewise
        self.asked = 0  # elements that the last factory was called for; its caller writes, the watch reads later
        self.when = "in an earlier check"  # a phrase for later checks, if a factory hangs; set before the trial begins
        self.factory_timeout: float = FACTORY_TIMES * settings.call_timeout  # likewise
        self._left_behind = False  # lock; whether a call hung: then the body makes no further one
        self._endless = False  # lock; whether a call signalled without end: its next signal ends its thread
        self._loop_of = ""  # the thread that waits for the trial, if it runs an event loop; set before the body runs

    # -- noting ------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Note a signal or a call of this thread.

        Raises:
            Over: A call signals without end, and the check has failed by that.
        """
        self._original.only()
        with self.lock:
            if self._endless:
                raise Over
            self._notes.append(Note(threading.current_thread().name, text))
            self._noted += 1
            self._last_signal = self._signalled[threading.get_ident()] = self._now()
            self.lock.notify_all()

    def name(self, kind: str) -> str:
        """A name for one more `kind`."""
        with self.lock:
            self._names += 1
            return f"{kind} {self._names}"

    def follow(self, subscriber: Any) -> None:
        """Cancel the subscription of this subscriber when the trial is over. The trial holds it by a weak reference."""
        with self.lock:
            self._subscribers.add(subscriber)

    def signals(self) -> str:
        """The notes as text."""
        with self.lock:
            notes, left_out = list(self._notes), self._noted - len(self._notes)
            times = [(call, self._passed(call.since)) for call in self._calls.values()]
            running = [
                line
                for call, passed in times
                if passed > BRIEF
                for line in (
                    f"  still inside {call.text} after {passed:.2f} s, on {call.thread}",
                    *(f"    {place}" for place in stack_of(call.place.thread, KIT)),
                )
            ]
        if self._loop_of:
            blocked = f"  the event loop of {self._loop_of} stands still until the check is over"
            running.append(f"{blocked}: if it is needed, call the kit on another thread, as with asyncio.to_thread")
        if not notes:
            return "\n".join(["  signals: none", *running])
        width = max(len(note.thread) for note in notes)
        head = f"  signals, in order{f' (the last {KEPT} of {left_out + KEPT})' if left_out else ''}:"
        lines = [f"    {note.thread:<{width}}  {note.text}" for note in notes]
        return "\n".join([head, *lines, *running])

    # -- judging -----------------------------------------------------------------------------------------------

    def failure(self, seen: str, rule: str = "", *, observed: bool = False, missing: bool = False) -> ConformanceError:
        """Make a failure that names `rule`, or else the check's own. `ConformanceError` explains the two flags."""
        return ConformanceError(self._named(rule), seen, self.signals(), observed=observed, missing=missing)

    def fail(self, seen: str, rule: str = "") -> NoReturn:
        """End the check: it failed. From its body."""
        raise self.failure(seen, rule)

    def skip(self, why: str) -> NoReturn:
        """End the check: it does not apply."""
        raise NotVerified(f"rule {self.rule}: {why}")

    def check(self, holds: object, seen: str, rule: str = "") -> None:
        """Fail with `seen` unless it `holds`."""
        self.verify()
        if not holds:
            self.fail(seen, rule)

    def due(self, came: object, seen: str, rule: str = "") -> None:
        """Fail with `seen`, and the time that this thread waited, unless the signals that were due `came`."""
        self.verify()
        if not came:
            raise self.failure(f"{seen}{self._waited()}", rule, missing=True)

    def _waited(self) -> str:
        """The timeout that this thread has waited for in vain, and its setting; empty if it did not."""
        limit: float | None = getattr(self._here, "in_vain", None)
        if limit is None:
            return ""
        sets = f" ({self.settings.source})" if limit == self.settings.default_timeout else ""
        return f"; waited {limit:g} s for it{sets}"

    def fault(self, seen: str, rule: str = "", *, must: bool = True) -> None:
        """Note a fault, from any thread; the first one fails the check.

        `must` is False for a fault that is none in other checks. A later fault with `must` takes its place.
        """
        with self.lock:
            first = self._fault is None or (must and not self._fault.observed)
            if first and not self.over:
                self._fault = self.failure(seen, rule, observed=must, missing=not must)
            self.lock.notify_all()

    @property
    def faulty(self) -> bool:
        """Whether a fault was found."""
        with self.lock:
            return self._fault is not None

    @property
    def decided(self) -> bool:
        """Whether a rule was broken: no later signal changes the verdict."""
        with self.lock:
            return self._fault is not None and self._fault.observed

    def verify(self) -> None:
        """Raise the first fault there was."""
        with self.lock:
            fault = self._fault
        if fault is not None:
            raise fault

    # -- waiting -----------------------------------------------------------------------------------------------

    def happens(self, condition: Callable[[], object], timeout: float | None = None) -> bool:
        """Wait until `condition` holds, which runs with the lock; True if it does in time (`default_timeout`)."""
        timeout = self.settings.default_timeout if timeout is None else timeout
        with self.lock:
            in_time = self._waits(lambda: self._fault is not None or condition(), timeout)
            self._here.in_vain = None if in_time else timeout
            self.verify()
            return bool(condition())

    def happens_quietly(self, condition: Callable[[], object], timeout: float) -> None:
        """Wait for `condition`, at most `timeout`, on a thread of the implementation. Raises nothing."""
        with self.lock:
            self._waits(condition, timeout)

    def _waits(self, condition: Callable[[], object], timeout: float) -> bool:
        """Wait for `condition`, with the lock; False after as many turns as the timeout has.

        A late turn counts as one in time, however late: on a busy machine the implementation is as late.
        """
        left = timeout
        while not condition():
            if left <= 0:
                return False
            began = time.monotonic()
            self.lock.wait(min(left, TURN))
            left -= min(time.monotonic() - began, TURN)
        return True

    def _now(self) -> Moment:
        """This moment, for `_passed`. With the lock."""
        return time.monotonic(), self._late

    def _passed(self, since: Moment) -> float:
        """The seconds since then, less those by which the turns of the watch came late. With the lock.

        A third of all seconds at least (`LONGEST`): the implementation itself may delay the turns of the watch.
        """
        began, late = since
        passed = time.monotonic() - began
        return max(passed - (self._late - late), passed / LONGEST)

    def wake(self) -> None:
        """Wake the threads that wait: they look again."""
        self._original.only()
        with self.lock:
            self.lock.notify_all()

    def expect(self, condition: Callable[[], object], seen: str, rule: str = "") -> None:
        """Wait for `condition`; fail with `seen` if it does not hold in time."""
        self.due(self.happens(condition), seen, rule)

    def silence(self, count: Callable[[], int]) -> int:
        """Wait until `count` grows, or for `default_no_signals_timeout`; return by how much it grew."""
        before = count()
        self.happens(lambda: count() > before, self.settings.default_no_signals_timeout)
        self._here.in_vain = None  # nothing was due
        with self.lock:
            return count() - before

    def collected(self, reference: weakref.ref[Any], seen: str) -> None:
        """Fail with `seen` unless the object of `reference` is collected within `publisher_reference_gc_timeout`.

        The time begins with the last signal: a stream that hears a cancel late may go on until then (3.12).
        """
        limit = self.settings.publisher_reference_gc_timeout
        with self.lock:
            since = self._now()
        while True:
            with self.lock:
                late = self._passed(max(since, self._last_signal)) > limit
            COLLECTOR.collect()
            if reference() is None:
                return
            if late:
                self.check(False, f"{seen}; waited {limit:g} s for it (publisher_reference_gc_timeout)")
            self.happens(lambda: False, self.settings.default_poll_timeout)

    # -- calling out -------------------------------------------------------------------------------------------

    def call(self, text: str, function: Callable[..., T], /, *arguments: Any, rule: str = "") -> T:
        """Call into the implementation; its errors fail the check, by `rule`. After a call has hung: raise `Over`."""
        observed = rule not in ("", FACTORY)
        with self.lock:
            if self._left_behind:
                raise Over
        self._here.in_vain = None
        if rule == FACTORY and (seen := self.hung.get(_name(text))):
            raise self.failure(seen, rule)
        before = forks()
        try:
            with self.calling(text, rule):
                result = function(*arguments)
        except (ConformanceError, SkipTest, Over):
            raise
        except FactoryError as error:
            raise self.failure(str(error), rule, observed=observed) from error.__cause__
        except BaseException as error:
            seen = f"{text} raised {described(error)}{self._too_many(rule)}"
            raise self.failure(seen, rule, observed=observed) from outside(error)
        if inspect.iscoroutine(result):
            result.close()
            raise self.failure(f"{text} {COROUTINE}", rule, observed=observed)
        if rule == FACTORY and self._original.copied_since(before):
            raise self.failure(f"{text} {CAME_BACK}", rule)
        if rule == FACTORY and _is_called_on_instances(result):
            raise self.failure(f"{text} returned a class, {shown(result)}, where an instance of it is needed", rule)
        return result

    def _too_many(self, rule: str) -> str:
        """A hint for a factory that makes all elements of a long stream beforehand; empty if the stream was short."""
        return f"; {TOO_MANY}" if rule == FACTORY and self.asked > FEW else ""

    def call_inside(self, text: str, function: Callable[..., object], /, *arguments: Any, rule: str = "") -> None:
        """As `call`, inside a signal or on another thread than the body's: notes a fault where `call` fails."""
        try:
            self.call(text, function, *arguments, rule=rule)
        except ConformanceError as failure:
            self.fault(failure.seen, failure.rule)

    def refuses_none(self, text: str, function: Callable[[Any], object]) -> None:
        """Fail unless `function(None)`, called `text`, raises TypeError."""
        with self.calling(text):
            try:
                function(None)
            except TypeError:
                return
            except BaseException as error:
                self.fail(f"{text} raised {type(error).__name__}, where TypeError is due")
        self.fail(f"{text} did not raise TypeError")

    def elsewhere(self, act: Callable[[], object]) -> None:
        """Run `act`, which uses `call`, on a new thread, wait for it, and raise its error."""
        raised: list[BaseException] = []  # written by the thread, read when it has ended

        def run() -> None:
            try:
                act()
            except BaseException as error:
                raised.append(error)

        started(run, "tck-elsewhere").join()  # if a call does not return, the watch finds it
        if raised:
            raise raised[0]

    @contextlib.contextmanager
    def calling(self, text: str, rule: str = "") -> Iterator[None]:
        """A block in which this thread runs code of the implementation: the watch may find that it hangs."""
        token, place = object(), Place()
        CALLS.begins(text, self._named(rule))
        with self.lock:
            self._calls[id(token)] = _Call(text, threading.current_thread().name, self._now(), rule, place)
        try:
            yield
        finally:
            self._original.only()
            with self.lock:
                del self._calls[id(token)]
                around = next(reversed(self._calls.values()), None)
            if around is None:
                CALLS.is_inside("", "")
            else:
                CALLS.is_inside(around.text, self._named(around.rule))

    def _named(self, rule: str) -> str:
        """The rule that a failure names: `rule`, or the check's own; none for a factory."""
        return "" if rule == FACTORY else rule or self.rule

    # -- the watch ---------------------------------------------------------------------------------------------

    def run(self, body: Callable[[], object]) -> None:
        """Run the body of a check; raise its error, or a failure if one of its calls does not return."""
        asyncio: Any = sys.modules.get("asyncio")
        if asyncio is not None and asyncio._get_running_loop() is not None:
            self._loop_of = threading.current_thread().name
        outcome: list[BaseException] = []  # written by the thread, read when it has ended
        thread = threading.Thread(target=self._guarded, args=(body, outcome), name="tck", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                began = time.monotonic()
                thread.join(self.settings.default_poll_timeout)
                late = time.monotonic() - began - max(self.settings.default_poll_timeout, TURN)
                with self.lock:
                    self._late += max(0.0, late)
                if (hanging := self._hanging()) is not None and thread.is_alive():
                    with self.lock:
                        self._left_behind = True
                    if not any(isinstance(item, ConformanceError) for item in outcome):  # else it hangs in cleaning up
                        outcome = [self._judged(hanging)]  # an earlier breach may be the cause
                    break
        finally:
            self._close()
        if any(isinstance(item, ConformanceError) for item in outcome):
            self._end_what_spins()
        if outcome:
            raise outcome[0]

    def _guarded(self, body: Callable[[], object], outcome: list[BaseException]) -> None:
        try:
            body()
            self.verify()
            if self._original.copied:
                raise self.failure(f"the code under test {CAME_BACK}", FACTORY)
            self._cancel_all()
        except BaseException as error:
            outcome.append(self._judged(error))
            with contextlib.suppress(Exception, Over):
                self._cancel_all()

    def _judged(self, error: BaseException) -> BaseException:
        """The error of a check whose body raised `error`; an observed breach goes before it."""
        with self.lock:
            fault = self._fault
        if fault is not None and (fault.observed or not isinstance(error, ConformanceError)):
            return fault
        if isinstance(error, ConformanceError | SkipTest):
            return error
        if isinstance(error, Over):
            return self.failure("it signals without end")
        failure = self.failure(f"the check was left by {described(error)}", FACTORY)  # by a member of the verification
        failure.__cause__ = error
        return failure

    def _hanging(self) -> ConformanceError | None:
        with self.lock:
            if (call := self._that_hangs()) is not None:
                factory = call.rule == FACTORY
                limit, sets = self._limit(call)
                seen = f"{call.text} has not returned within {limit:g} s (on {call.thread}; {sets})"
                if factory and self.asked <= FEW:
                    self.hung[_name(call.text)] = f"{seen}, {self.when}"
                seen += self._too_many(call.rule)
                return self.failure(seen, call.rule, observed=call.rule not in ("", FACTORY))
            limit = ENDLESS_TIMES * (self.settings.default_timeout + self.settings.call_timeout)
            for call in self._calls.values():
                if self._passed(call.since) > limit and self._without_bound():
                    self._endless = True
                    times = f"{ENDLESS_TIMES} times default_timeout and call_timeout"
                    seen = f"{call.text} went on signalling for {limit:g} s (on {call.thread}; {times}),"
                    return self.failure(f"{seen} and what the check waits for did not come")
        return None

    def _innermost(self) -> list[_Call]:
        """The innermost call of each thread: an outer one can't return before it."""
        return list({call.place.thread: call for call in self._calls.values()}.values())

    def _that_hangs(self) -> _Call | None:
        """A late call. One that computes, and has used half of its timeout, goes first: the others may wait for it."""
        late = self._late_calls()
        if not late:
            return None
        return next(filter(_spins, self._late_calls(0.5)), late[0])

    def _late_calls(self, share: float = 1.0) -> list[_Call]:
        """The innermost calls that have lasted for this share of their timeout since they began and the last signal."""
        since = [(call, max(call.since, self._last_signal)) for call in self._innermost()]
        return [call for call, begin in since if self._passed(begin) > share * self._limit(call)[0]]

    def _limit(self, call: _Call) -> tuple[float, str]:
        """The timeout of a call in seconds, and its setting."""
        limit = self.settings.call_timeout
        if call.rule == FACTORY:
            return self.factory_timeout, f"{FACTORY_TIMES} times call_timeout"
        if self.spins.get(_name(call.text), 0) >= KNOWN_TO_SPIN:
            return limit / 5, "a fifth of call_timeout: it did not in other checks"
        return limit, "call_timeout"

    def _end_what_spins(self) -> None:
        """End the calls that compute without end: each would slow down all other threads.

        A call that waits goes on waiting: it costs nothing, and its thread may have a lock. `note` ends a call that
        signals without end: raised elsewhere in the kit, `Over` could leave a lock held.
        """
        with self.lock:  # with it, no thread leaves a call, and no other thread gets its ident
            inner = self._innermost()
            ending = [key for key, call in self._calls.items() if call in inner and self._has_no_end(call)]
            for call in map(self._calls.__getitem__, ending):
                name = _name(call.text)
                self.spins[name] = self.spins.get(name, 0) + 1
                raised_in(call.place.thread, Over)
        until = time.monotonic() + ENDING
        while any(key in self._calls for key in ending) and time.monotonic() < until:
            time.sleep(self.settings.default_poll_timeout)  # without the lock: the thread may need it to end

    def _has_no_end(self, call: _Call) -> bool:
        """Whether it computes, and has not signalled for `LEFT` of its timeout. With the lock."""
        since = max(call.since, self._signalled.get(call.place.thread, call.since))
        return self._passed(since) > LEFT * self._limit(call)[0] and _spins(call)

    def _without_bound(self) -> bool:
        """Whether the stream is endless, and a subscriber has requested all of it."""
        subscribers = list(self._subscribers) if self.elements == MAX_DEMAND else []
        return any(getattr(item, "demand", 0) == MAX_DEMAND for item in subscribers)

    def _cancel_all(self) -> None:
        with self.lock:
            subscribers = [] if self._left_behind else list(self._subscribers)
        for subscriber in subscribers:
            subscriber.leave()

    def _close(self) -> None:
        with self.lock:
            self.over = True


def _spins(call: _Call) -> bool:
    return call.place.spins(time.monotonic() - call.since[0])


def _is_called_on_instances(made: object) -> bool:
    """Whether this is a class whose methods take an instance; a class with class methods may be an implementation."""
    methods = (inspect.getattr_static(made, name, None) for name in ("subscribe", "on_subscribe"))
    return isinstance(made, type) and any(inspect.isfunction(method) for method in methods)


def _name(call: str) -> str:
    """The name of the call, without its arguments."""
    return call.partition("(")[0]
