"""What stands in for what starts work, and for the clock: `Thread`'s methods, `ThreadPoolExecutor`, `time`.

The classes of the standard library that are written in Python, `Future`, `Queue`, `Barrier`, `Timer`, need no
stand-in: they take their locks from `threading` when they are made, and find the ones of `instrumented` there.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures._base import LOGGER
from concurrent.futures.thread import BrokenThreadPool
from types import FrameType
from typing import Any, Final, Self

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._schedule import carriers
from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Aborted, Task
from reactive_runtime.explore._standins import instrumented

__all__ = [
    "AcquiredFutures",
    "Date",
    "DateTime",
    "Local",
    "Pool",
    "get_ident",
    "hash_of_future",
    "monotonic",
    "now_ns",
    "pause",
    "sleep",
    "standing",
    "start_new_thread",
    "time_of_day",
    "time_of_day_ns",
]

EPOCH: Final = 1_000_000_000.0
"""The time of day at which every run begins."""

IDENTS: Final = 1_000_000
"""What is added to the number of a task thread to get an identity."""

real_start: Callable[[primitives.Thread], None] = primitives.Thread.start
real_join: Callable[[primitives.Thread, float | None], None] = primitives.Thread.join
real_is_alive: Callable[[primitives.Thread], bool] = primitives.Thread.is_alive
real_monotonic: Callable[[], float] = time.monotonic
real_time: Callable[[], float] = time.time
real_time_ns: Callable[[], int] = time.time_ns
real_datetime: Any = datetime.datetime
real_date: Any = datetime.date
real_sleep: Callable[[float], None] = time.sleep


def _scheduler() -> Scheduler | None:
    return instrumented.active


# -- threads --------------------------------------------------------------------------------------------------


def start_new_thread(function: Callable[..., object], args: tuple[Any, ...], kwargs: Any = None) -> int:
    """`_thread.start_new_thread`: a task thread. No thread can join it, and none waits for its end."""
    scheduler = _scheduler()
    if scheduler is None or not scheduler.active or scheduler.quiet or real_ident() != scheduler.current.ident:
        return carriers.start_new_thread(function, args, kwargs or {})
    me = scheduler.current
    if scheduler.aborting:
        raise Aborted
    thread = scheduler.spawn("Thread-", lambda: function(*args, **(kwargs or {})), daemon=True)
    if scheduler.tracking:
        me.chain = hash((me.chain, 2))
    return thread.ident


def start(self: primitives.Thread) -> None:
    """`Thread.start`: a task thread."""
    me = instrumented.caller()
    scheduler = _scheduler()
    if me is None or scheduler is None:
        _refuse_while_quiet(scheduler)
        real_start(self)
        return
    if scheduler.aborting:
        raise Aborted
    if "_explored_task" in self.__dict__:
        raise RuntimeError("threads can only be started once")
    if (target := self.__dict__.get("_target")) is not None:
        self.__dict__["_target"] = scheduler.shown(target, sys._getframe(1))
    thread = scheduler.spawn(_name(self), lambda: _live(self, scheduler.current), self.daemon)
    thread.object = self
    self.__dict__.update(_explored_task=thread, _ident=thread.ident, _native_id=thread.carrier.native_id)
    started = self.__dict__.get("_started")
    if started is not None:
        started._flag = True
    if scheduler.tracking:
        me.chain = hash((me.chain, 2))
        if isinstance(started, instrumented.Location):
            scheduler.note(me, started, True)


def _refuse_while_quiet(scheduler: Scheduler | None) -> None:
    if scheduler is not None and scheduler.active and scheduler.quiet and not instrumented.foreign():
        raise ExploreError(
            "an invariant (at_end, at_each_step, outcome) has begun a thread or handed work to one: it must only look;"
            " do it in an actor"
        )


def _name(thread: primitives.Thread) -> str:
    """The name of a thread, with the function of a timer that has no name of its own."""
    if isinstance(thread, threading.Timer) and thread.name.startswith("Thread-"):
        function = getattr(thread.function, "__name__", type(thread.function).__name__)
        return f"Thread-timer ({function})"
    return thread.name


def _live(thread: primitives.Thread, me: Task) -> None:
    state = thread.__dict__
    state.update(_ident=me.ident, _native_id=me.carrier.native_id)
    try:
        thread.run()
    except Aborted:
        raise
    except SystemExit:
        pass  # as in a thread that is not explored
    except BaseException as error:
        hook = threading.excepthook
        if hook is instrumented.running().excepthook:
            raise
        arguments: Any = (type(error), error, error.__traceback__, thread)
        hook(threading.ExceptHookArgs(arguments))


def excepthook() -> Any:
    """What gets the exceptions of threads, as it is now."""
    return threading.excepthook


def put_back(hook: Any) -> None:
    """After a run: what gets them is what it was before."""
    threading.excepthook = hook


def join(self: primitives.Thread, timeout: float | None = None) -> None:
    """`Thread.join`."""
    me = instrumented.caller()
    scheduler = _scheduler()
    other: Task | None = self.__dict__.get("_explored_task")
    if other is None and me is not None and scheduler is not None:
        started: Any = self.__dict__.get("_started")
        known = started is not None and started.is_set()  # a point, at which another thread may start it
        other = self.__dict__.get("_explored_task")
        if other is None and started is not None and not known:
            raise RuntimeError("cannot join thread before it is started")
    if me is None or scheduler is None or other is None:
        if other is None:
            real_join(self, timeout)
        return
    if other is me:
        raise RuntimeError("cannot join current thread")
    if other.ended or (timeout is not None and timeout <= 0):
        me.location, me.what = None, "join"
        scheduler.step(me)
    else:
        other.joiners.append(me)
        me.location, me.what = None, "join"
        scheduler.wait(me, instrumented.until(scheduler, timeout))
        if not other.ended and me in other.joiners:
            other.joiners.remove(me)
    if scheduler.tracking:
        _seen_to_live(scheduler, me, other)
    if other.ended and scheduler.races:
        scheduler.join(me, other.vc)


def _seen_to_live(scheduler: Scheduler, me: Task, other: Task) -> None:
    """`me` knows that `other` was started, and whether it has ended; if so it comes after all that it did."""
    started = None if other.object is None else other.object.__dict__.get("_started")
    if isinstance(started, instrumented.Location):
        scheduler.note(me, started, False)
    me.chain = hash((me.chain, other.chain)) if other.ended else hash((me.chain, 5))
    if scheduler.observer is not None:
        scheduler.observer.noted(me, other, False)


def is_alive(self: primitives.Thread) -> bool:
    """`Thread.is_alive`."""
    other: Task | None = self.__dict__.get("_explored_task")
    started = self.__dict__.get("_started")
    if other is None and not isinstance(started, instrumented.Location):
        return real_is_alive(self)
    me = instrumented.caller()
    scheduler = _scheduler()
    if me is None or scheduler is None:
        return other is not None and not other.ended
    me.location, me.writes, me.what = started if other is None else None, False, "is_alive"
    scheduler.step(me)
    other = self.__dict__.get("_explored_task")
    if other is None:
        instrumented.met(scheduler, me, self.__dict__["_started"], writes=False)
        return False
    alive = not other.ended
    if scheduler.tracking:
        _seen_to_live(scheduler, me, other)
    scheduler.only_looked(me, sys._getframe(1))
    return alive


def get_ident() -> int:
    """`threading.get_ident`, where task threads share an OS thread."""
    me = instrumented.caller()
    return real_ident() if me is None else IDENTS + me.index


class Local:
    """Stands in for `threading.local`, and for what derives from it, where threads of the program share an OS thread.

    They do so one after the other as well: that of a run may have been one of the run before.
    """

    _stands_for: type = threading.local

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        made = object.__new__(cls)
        object.__setattr__(made, "_given", (arguments, keywords))  # never changed
        # By the ident of a thread that is none of a run's; each reads and writes its own entry.
        object.__setattr__(made, "_outside", {})
        _part(made, new=True)  # for this thread Python calls `__init__`
        return made

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":  # `super()` in a method of the class that this stands for asks for it
            return type(self)._stands_for
        mine = _part(self)
        if name == "__dict__":
            return mine
        if name in mine and not _is_set_by_class(self, name):
            return mine[name]
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if _is_set_by_class(self, name):
            object.__setattr__(self, name, value)
        else:
            _part(self)[name] = value

    def __delattr__(self, name: str) -> None:
        mine = _part(self)
        if name not in mine:
            raise AttributeError(f"this thread's part of a thread-local has no attribute {name!r}")
        del mine[name]


def _part(local: Local, *, new: bool = False) -> dict[str, Any]:
    """What the calling thread has of a thread-local."""
    me = None if instrumented.foreign() else instrumented.caller()
    if me is None or me is instrumented.running().main:
        parts, key, keeps = object.__getattribute__(local, "_outside"), real_ident(), None
    else:
        parts, key, keeps = me.parts, id(local), local
    known: tuple[Any, dict[str, Any]] | None = parts.get(key)
    if known is not None:
        return known[1]
    mine: dict[str, Any] = {}
    parts[key] = (keeps, mine)  # with the object itself: its id is not another's while this is there
    if not new:
        arguments, keywords = object.__getattribute__(local, "_given")
        try:
            type(local).__init__(local, *arguments, **keywords)
        except BaseException:
            del parts[key]  # as of a real one: the next access begins anew
            raise
    return mine


def _is_set_by_class(local: Local, name: str) -> bool:
    """Whether its class says what an assignment to that attribute does, as a property does."""
    return hasattr(type(getattr(type(local), name, None)), "__set__")


def local_like(there: Any) -> Local | None:
    """A stand-in for a thread-local that a module has made; None: there can't be one.

    It has the methods and defaults of the classes that the other one is of, and what this thread has there already.
    What the other one was made with is not known: where its `__init__` needs arguments, it has no stand-in.
    """
    kind = type(there)
    bases = kind.__mro__[:-2]  # all but `threading.local` and `object`
    names: dict[str, Any] = {}
    for base in reversed(bases):
        names.update({name: value for name, value in vars(base).items() if name not in ("__dict__", "__weakref__")})
    if "__slots__" in names:
        return None
    try:
        if "__init__" in names:
            inspect.signature(names["__init__"]).bind(there)
    except TypeError:
        return None
    made: Local = Local.__new__(type(kind.__name__, (Local,), {**names, "_stands_for": kind}))
    made.__dict__.update(there.__dict__)
    return made


# -- the clock ------------------------------------------------------------------------------------------------


def _now(frame: FrameType) -> float:
    """Virtual seconds since the run began, read from `frame`: a thread that does so in a loop moves them."""
    scheduler = _scheduler()
    return 0.0 if scheduler is None else scheduler.time(frame)


def monotonic() -> float:
    """Virtual seconds since the run began."""
    return real_monotonic() if instrumented.foreign() else _now(sys._getframe(1))


def now_ns() -> int:
    """The same, in nanoseconds."""
    return int((real_monotonic() if instrumented.foreign() else _now(sys._getframe(1))) * 1e9)


def standing() -> float:
    """The same for classes of the standard library, whose readings do not move it."""
    scheduler = _scheduler()
    return real_monotonic() if scheduler is None or instrumented.foreign() else scheduler.clock


def time_of_day() -> float:
    """Virtual seconds, as of a day long ago."""
    return real_time() if instrumented.foreign() else EPOCH + _now(sys._getframe(1))


def time_of_day_ns() -> int:
    """The same, in nanoseconds."""
    return real_time_ns() if instrumented.foreign() else int(EPOCH) * 10**9 + int(_now(sys._getframe(1)) * 1e9)


class _RealInstances(type):
    """An instance of what it stands for is one of it."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _REAL[cls]) if cls in _REAL else type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _REAL[cls]) if cls in _REAL else type.__subclasscheck__(cls, subclass)


class DateTime(datetime.datetime, metaclass=_RealInstances):
    """Stands in for `datetime.datetime`; what it makes are real ones."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        kind = real_datetime if cls is DateTime else cls
        return real_datetime.__new__(kind, *arguments, **keywords)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        """As `datetime.now`, of the virtual time."""
        return _of(cls, real_datetime).fromtimestamp(_time_of_day(sys._getframe(1)), tz)

    @classmethod
    def utcnow(cls) -> Any:
        """As `datetime.utcnow`, of the virtual time."""
        now = real_datetime.fromtimestamp(_time_of_day(sys._getframe(1)), datetime.UTC)
        return _of(cls, real_datetime).combine(now.date(), now.time())

    @classmethod
    def today(cls) -> Any:
        """As `datetime.today`, of the virtual time."""
        return _of(cls, real_datetime).fromtimestamp(_time_of_day(sys._getframe(1)))


class Date(datetime.date, metaclass=_RealInstances):
    """Stands in for `datetime.date`; what it makes are real ones."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        return real_date.__new__(real_date if cls is Date else cls, *arguments, **keywords)

    @classmethod
    def today(cls) -> Any:
        """As `date.today`, of the virtual time."""
        return _of(cls, real_date).fromtimestamp(_time_of_day(sys._getframe(1)))


def _of(cls: Any, real: Any) -> Any:
    """The class that makes the instances: that of the program, if it has derived one."""
    return real if cls in _REAL else cls


_REAL: Final[dict[Any, Any]] = {DateTime: real_datetime, Date: real_date}
for _stand_in, _real in _REAL.items():  # so `pickle` finds it under the name of what it stands for
    _stand_in.__module__, _stand_in.__qualname__ = "datetime", _real.__qualname__


def _time_of_day(frame: FrameType) -> float:
    return real_time() if instrumented.foreign() else EPOCH + _now(frame)


def sleep(seconds: float) -> None:
    """Virtual sleep: the others go on, and where none can, the clock moves."""
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    if instrumented.foreign():
        real_sleep(seconds)
        return
    me = instrumented.caller()
    scheduler = _scheduler()
    if me is None or scheduler is None:
        return
    me.location, me.what = None, "sleep"
    if seconds == 0:
        _give_way(scheduler, me, sys._getframe(1))
    else:
        scheduler.wait(me, scheduler.clock + seconds)
        if scheduler.tracking:
            me.chain = hash((me.chain, 1))  # as `ahead` says


def pause() -> None:
    """Give way."""
    if instrumented.foreign():
        return
    me = instrumented.caller()
    scheduler = _scheduler()
    if me is not None and scheduler is not None:
        _give_way(scheduler, me, sys._getframe(1))


def _give_way(scheduler: Scheduler, me: Task, frame: FrameType) -> None:
    me.location, me.what = None, "give way"
    scheduler.pause(me, (id(frame.f_code), frame.f_lasti), frame)
    if scheduler.tracking:
        me.chain = hash((me.chain, 3))


# -- pools ----------------------------------------------------------------------------------------------------


class AcquiredFutures:
    """Stands in for what `wait` and `as_completed` hold futures by.

    They are acquired in the order they were made, not of their addresses.
    """

    def __init__(self, futures: Iterable[Future[Any]]) -> None:
        self._futures = sorted(futures, key=lambda future: getattr(future._condition, "number", 0))

    def __enter__(self) -> None:
        for future in self._futures:
            future._condition.acquire()

    def __exit__(self, *_: object) -> None:
        for future in self._futures:
            future._condition.release()


def hash_of_future(future: Future[Any]) -> int:
    """`Future.__hash__`: a set of futures, as `wait` goes through one, has the same order in every run."""
    number: int = getattr(future._condition, "number", 0)
    return number or object.__hash__(future)


class Pool(ThreadPoolExecutor):
    """Stands in for `ThreadPoolExecutor`: at most `max_workers` task threads, each as long as there are tasks."""

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        if max_workers is None:
            max_workers = 4
        if max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._max_workers = max_workers
        self._thread_name_prefix = thread_name_prefix or "pool"
        self._dash = "_" if thread_name_prefix else "-"
        self._named = False  # whether no other pool of the run has that name
        self._initializer: Any = initializer
        self._initargs = initargs
        self._broken: Any = False  # or why the pool is of no use any more
        self._at = instrumented.Location()
        self._tasks: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = deque()
        self._busy: set[int] = set()  # numbers of the workers that have a thread
        self._shutdown = False
        self._waiting: list[Task] = []  # inside of shutdown(wait=True)

    def _enter(self, what: str) -> tuple[Scheduler | None, Task | None]:
        me = instrumented.caller()
        scheduler = _scheduler()
        if me is None or scheduler is None:
            return None, None
        if scheduler.aborting:
            raise Aborted
        instrumented.point(scheduler, me, self._at, what)
        instrumented.met(scheduler, me, self._at)
        me.acts += 1
        return scheduler, me

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As `ThreadPoolExecutor.submit`: a point of choice, and a new thread where fewer than the most are busy."""
        scheduler, me = self._enter("submit")
        if self._broken:
            raise BrokenThreadPool(self._broken)
        if self._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if scheduler is None or me is None:
            _refuse_while_quiet(_scheduler())
            raise RuntimeError("this pool belongs to a run that has ended")
        future: Future[Any] = Future()
        self._tasks.append((future, scheduler.shown(fn, sys._getframe(1)), args, kwargs))
        if len(self._busy) < self._max_workers:
            number = next(free for free in itertools.count() if free not in self._busy)
            self._busy.add(number)
            if not self._named:  # of two pools without a name the second is pool2
                self._named = True
                taken = {task.name for task in scheduler.threads}
                prefixes = (f"{self._thread_name_prefix}{n if n > 1 else ''}" for n in itertools.count(1))
                self._thread_name_prefix = next(prefix for prefix in prefixes if f"{prefix}{self._dash}0" not in taken)
            scheduler.spawn(f"{self._thread_name_prefix}{self._dash}{number}", lambda: self._work(number))
        instrumented.left(scheduler, me, self._at)
        return future

    def _work(self, number: int) -> None:
        """The life of a worker."""
        try:
            if not self._is_ready():
                return
            running = instrumented.running()
            instrumented.met(running, running.current, self._at)
            while self._tasks:
                future, fn, args, kwargs = self._tasks.popleft()
                if future.set_running_or_notify_cancel():
                    try:
                        result = fn(*args, **kwargs)
                    except Aborted:
                        raise
                    except BaseException as error:
                        future.set_exception(error)
                    else:
                        future.set_result(result)
                del future, fn, args, kwargs
                self._enter("next task")
        finally:
            self._busy.discard(number)
            scheduler = _scheduler()
            if scheduler is not None and not scheduler.aborting:
                instrumented.left(scheduler, scheduler.current, self._at)
                if not self._busy:
                    for item in self._waiting:
                        scheduler.wake(item)
                    self._waiting.clear()

    def _is_ready(self) -> bool:
        """Run the initializer in a worker. If it fails, the pool is of no use any more, as the original is."""
        try:
            if self._initializer is not None:
                self._initializer(*self._initargs)
        except Aborted:
            raise
        except BaseException:
            LOGGER.critical("Exception in initializer:", exc_info=True)
            self._enter("initializer failed")
            self._broken = "A thread initializer failed, the thread pool is not usable anymore"
            while self._tasks:
                self._tasks.popleft()[0].set_exception(BrokenThreadPool(self._broken))
            return False
        return True

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `ThreadPoolExecutor.shutdown`: a point of choice, and a wait for the threads that are busy."""
        scheduler, me = self._enter("shutdown") if _running() else (None, None)
        self._shutdown = True
        if cancel_futures:
            while self._tasks:
                self._tasks.popleft()[0].cancel()
        if scheduler is None or me is None:
            return
        if wait and self._busy:
            self._waiting.append(me)
            me.location, me.what = self._at, "shutdown"
            scheduler.wait(me)
        instrumented.met(scheduler, me, self._at)

    def __exit__(self, *_: object) -> None:
        self.shutdown(wait=True)


def _running() -> bool:
    scheduler = _scheduler()
    return scheduler is not None and scheduler.active and not scheduler.quiet and not scheduler.aborting
