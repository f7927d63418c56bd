"""Finds why a flow is stalled: follows the waits from its subscriber upstream, to the part that all others wait for."""

from __future__ import annotations

from collections.abc import Sized
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from reactive_runtime._core.drains.combinator import Combinator
from reactive_runtime._core.queues.multicaster import Reader
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime._core.queues.subscriber_buffer import SubscriberBuffer
from reactive_runtime._core.runtime import eventloop
from reactive_runtime._core.sources.naming import a_kind
from reactive_runtime._core.sources.pollable import IterablePollable
from reactive_runtime._core.sources.task_source import TaskSource
from reactive_runtime._operators.backpressure import Gated, _Pausable
from reactive_runtime._operators.concurrent.by_key import _ByKey
from reactive_runtime._operators.concurrent.calling import _Calls
from reactive_runtime._operators.concurrent.coroutines import Coroutines
from reactive_runtime._operators.groups.group_buffer import GroupBuffer
from reactive_runtime._operators.groups.group_source import Split
from reactive_runtime._operators.resilience.bulkheads import _InBulkhead
from reactive_runtime._operators.sinks.loops import _Awaiting, _Waiting
from reactive_runtime._operators.sinks.waiting import Wait
from reactive_runtime.live._history import Look
from reactive_runtime.live._model import IDLE, MOVES, shown_demand
from reactive_runtime.live._reading import Node, executor_text, operators_of, subscriber_of, tree
from reactive_runtime.live._threads import ThreadLook

__all__ = ["Causes"]

Found = tuple[str, str]
"""The kind of a cause, and its text."""

_MOVING: Final = (MOVES, "")
_UNKNOWN: Final = "unknown"
_UNASKED: Final = "unasked"
"""An upstream that its operator has not asked: a cause only if the operator waits for no other part."""

_IN_POOL: Final = frozenset(("_worker", "_get_many"))
_PLAIN: Final = (int, float, str, bytes, bool)
SHOWN: Final = 3
"""Threads and coroutines that a text names."""


class Causes:
    """Finds the causes of stalls in one look."""

    def __init__(self, seen: Look, still: float) -> None:
        """`still`: a part that has stood still for less counts as moving."""
        self._still = still
        self._threads = seen.threads
        self._drains = seen.drains
        self._runs: dict[int, ThreadLook] = {}
        for thread in seen.threads.values():
            for part in thread.works_for:
                self._runs.setdefault(id(part), thread)
        self._asked: set[int] = set()  # drains whose cause this call looks for: waits may go in a circle

    def thread_of(self, part: Any) -> ThreadLook | None:
        """The thread that runs a drain, or an operator's call."""
        return self._runs.get(id(part))

    def of(self, root: Node) -> Found:
        """The cause of a stalled flow; MOVES: the part that its subscriber waits for moves."""
        try:
            kind, text = self._of(root)
        except (AttributeError, RuntimeError):
            return _UNKNOWN, "it has just changed"
        return ("demand" if kind == _UNASKED else kind), text

    # -- one drain ---------------------------------------------------------------------------------------------

    def _of(self, node: Node) -> Found:
        if node.seconds < self._still:
            return _MOVING
        if not node.begins:
            return self._pollable(node)
        drain = node.drain
        if id(drain) in self._asked:
            return "nested", "a circle of waits, back to this flow"
        self._asked.add(id(drain))
        try:
            return self._drain(node)
        finally:
            self._asked.discard(id(drain))

    def _of_now(self, drain: Any) -> Found:
        """The cause in another drain, which another flow waits for: treat all its parts as still."""
        node = tree(drain)
        for part in node.parts():
            part.seconds = self._still
        kind, text = self._of(node)
        return ("demand" if kind == _UNASKED else kind), text

    def _drain(self, node: Node) -> Found:
        drain = node.drain
        running = self.thread_of(drain)
        moves = any(part.seconds < self._still for part in node.on_its_drain())
        moves = moves or (running is not None and running.seconds < self._still)
        if running is not None:
            return _MOVING if moves else self._thread(running, node)
        executor = drain.executor or drain.home
        if executor is not None and moves and drain._demand:
            return _MOVING
        if executor is not None and (drain._busy or drain._scheduled) and not drain._over:
            return self._pool(executor, f"to run {operators_of(node)}")
        if isinstance(drain, _Waiting) and drain._busy:
            return self._loop_body(drain)
        if isinstance(drain, _Awaiting) and drain._busy:
            found = self._event_loop(drain.event_loop, "the event loop of `async for`")
            return found or ("demand", "no demand: the coroutine of `async for` has not asked for the next element")
        if not drain._demand and not isinstance(drain, _Waiting | _Awaiting) and not isinstance(node.pollable, Split):
            return self._no_demand(node)  # that of groups asks for what the groups demand
        return self._pollable(node)

    def _no_demand(self, node: Node) -> Found:
        if node.depth:
            return _UNASKED, f"no demand has come to {operators_of(node)} from the part below it"
        return (
            "demand",
            f"no demand from {subscriber_of(node.drain)}: it has had all that it requested of `{operators_of(node)}`,"
            " and has requested no more",
        )

    def _loop_body(self, drain: _Waiting) -> Found:
        thread = self._threads.get(drain._wait.thread)
        if thread is None:
            return "demand", "no demand: the thread of the `for` loop has ended, or asks now"
        where = thread.lock()
        at = thread.place()
        if where is not None:
            return "lock", f"the body of the `for` loop waits for {where}, in {at}, on thread {thread.name}"
        return (
            "demand",
            f"no demand: the body of the `for` loop has not come back for an element: {at}, on {thread.name}",
        )

    # -- what a drain drains -----------------------------------------------------------------------------------

    def _pollable(self, node: Node) -> Found:
        pollable = node.pollable
        if isinstance(pollable, PrefetchQueue):
            return self._queue(node, pollable)
        if isinstance(pollable, Reader):
            return self._reader(node, pollable)
        if isinstance(pollable, GroupBuffer):
            return self._group(node, pollable)
        if isinstance(pollable, Combinator):
            return self._combinator(node, pollable)
        if isinstance(pollable, TaskSource):
            thread = self.thread_of(pollable)
            if thread is not None:
                return self._thread(thread, node)
            return self._pool(pollable._executor, f"to run {operators_of(node)}")
        if isinstance(pollable, SubscriberBuffer):
            return "push", "the program that pushes elements to it"
        if isinstance(pollable, IterablePollable):
            return _UNASKED, f"no demand has come to {operators_of(node)} from the part below it"
        return _UNKNOWN, f"{operators_of(node)}, and no thread is at work on it"

    def _queue(self, node: Node, queue: PrefetchQueue) -> Found:
        upstream = queue._upstream
        if upstream is None:
            return "upstream", f"{_publisher_of(queue)} has not called on_subscribe"
        thread = self.thread_of(upstream)
        if thread is not None and thread.called is not None:
            return self._thread(thread, node)
        if node.above:
            return self._of(node.above[0])
        if queue._room <= 0:
            return _UNASKED, f"no demand has come to the publisher above {operators_of(node)}"
        who = "a publisher" if node.foreign is None else f"the publisher with {a_kind(node.foreign)}"
        return (
            "upstream",
            f"no element from {who}: {shown_demand(queue._room)} of the elements requested of it have not come, and"
            " it has not ended (lost demand?)",
        )

    def _reader(self, node: Node, reader: Reader) -> Found:
        multicaster = reader._multicaster
        slow = min(list(multicaster._readers), key=lambda each: each._position, default=None)
        if slow is not None and slow is not reader and slow._position < reader._position and slow._drain is not None:
            kind, text = self._of_now(slow._drain)
            return kind, f"the shared source waits for its slowest subscriber, {subscriber_of(slow._drain)}: {text}"
        if node.above:
            return self._of(node.above[0])
        if multicaster._upstream is None:
            return "push", "the program that pushes elements to it"
        return "upstream", f"no element from the publisher with {a_kind(node.foreign)}, which is shared"

    def _group(self, node: Node, buffer: GroupBuffer) -> Found:
        full = self._full_group(buffer._split)
        if full is not None and full[1] is not buffer:
            return "key", full[0]
        if node.above:
            return self._of(node.above[0])
        return _UNKNOWN, "the source of its groups, which has just changed"

    def _full_group(self, split: Split) -> tuple[str, GroupBuffer] | None:
        """The group that holds the source of all groups back."""
        if split.in_hand is None:
            return None
        for buffer, group in list(split.buffers.items()):
            if len(buffer._items) < buffer.capacity:
                continue
            key = repr(group.key) if type(group.key) in _PLAIN else a_kind(group.key)
            others = f"{len(split.buffers) - 1} other groups wait behind it"
            text = f"`{split.title}`: the group of the key {key} is full, {len(buffer._items)} elements wait; {others}"
            drain: Any = buffer._drain
            if drain is None:
                return f"{text}: it has no subscriber", buffer
            kind, why = self._of_now(drain)
            return (text if kind == _UNKNOWN else f"{text}: {why}"), buffer
        return None

    def _combinator(self, node: Node, combinator: Combinator) -> Found:
        title = combinator.title
        if isinstance(combinator, _Pausable) and combinator.valve._paused:
            return "valve", f"the valve of `{title}` is paused"
        if isinstance(combinator, Gated) and combinator.valve._paused:
            return "valve", "the scope of the flow is paused"
        if isinstance(combinator, Split) and (full := self._full_group(combinator)) is not None:
            return "key", full[0]
        if isinstance(combinator, Coroutines) and combinator.flying:
            return self._coroutines(combinator)
        if isinstance(combinator, _Calls | _ByKey) and _calls_of(combinator):
            thread = self.thread_of(combinator)
            if thread is not None:
                return self._thread(thread, node)
            return self._pool(combinator.workers, f"to run the calls of `{title}`")
        found = [self._of(above) for above in node.above]
        if _MOVING in found:
            return _MOVING
        for kind, text in found:
            if kind not in IDLE and kind != _UNASKED:
                return kind, text
        if combinator.timers:
            return "timer", f"a timer of `{title}`"
        if isinstance(combinator, _InBulkhead) and combinator.ticket is not None and not found:
            return "queue", f"`{title}` waits for room: {combinator.bulkhead._limit} subscriptions are under way"
        idle = [cause for cause in found if cause[0] in IDLE]
        return next(iter(idle or found), (_UNKNOWN, f"`{title}`, which has no upstream open"))

    # -- threads, pools and event loops ------------------------------------------------------------------------

    def _thread(self, thread: ThreadLook, node: Node) -> Found:
        drain, steps = node.drain, node.steps
        combinator = node.pollable if isinstance(node.pollable, Combinator) else None
        operator = thread.operator(steps)
        if not operator and combinator is not None:
            operator = combinator.title
        by = f"`{operator}`" if operator else f"`{operators_of(node)}`"
        where = f"{thread.place()}, on thread {thread.name}"
        if thread.queued_by is not None and thread.called is not None:
            return "queue", self._full_queue(thread)
        if drain.stopped and node.begins:
            return "cancel", f"it was cancelled, and this has not returned: {where}"
        if thread.waits_in_sink:
            return "nested", f"the user's function in {by}, {where}, waits in a sink for {self._waited_for(thread)}"
        lock = thread.lock()
        if lock is not None:
            return "lock", f"{by} waits for {lock}, in {where}"
        if thread.called is None:
            return "function", f"{by}, whose thread {thread.name} is at work in the package, or in code in C: {where}"
        return "function", f"the user's function in {by}: {where}"

    def _full_queue(self, thread: ThreadLook) -> str:
        putting = thread.queued_by
        assert putting is not None
        queue: Any = getattr(putting._put, "__self__", None)
        most = getattr(queue, "maxsize", None)
        size = f", which has room for {most}" if type(most) is int and most > 0 else ""
        return f"the queue of `to_queue`, {a_kind(queue)}{size}, is full: no thread takes an element out of it"

    def _waited_for(self, thread: ThreadLook) -> str:
        """The flow that a thread waits for in a sink, and why that flow does not move."""
        for drain in self._drains:
            waiter = getattr(drain, "waiter", None)
            if (
                isinstance(waiter, Wait)
                and waiter.thread == thread.ident
                and not waiter._over
                and id(drain) not in self._asked
            ):
                return f"`{operators_of(tree(drain))}`: {self._of_now(drain)[1]}"
        return "a flow that has just ended"

    def _pool(self, executor: Any, what: str) -> Found:
        name = executor_text(executor)
        idents = _idents(executor)
        if idents is None:
            return "executor", f"{name} has not run the task that it was given, {what}"
        alive = [self._threads[ident] for ident in idents if ident in self._threads]
        if not alive:
            return "executor", f"{name} is dead: it has no thread left that could run the task, {what}"
        busy = [thread for thread in alive if _is_busy(thread)]
        most = getattr(executor, "_max_workers", len(alive))
        if len(busy) < most:
            return _UNKNOWN, f"{name}, which has a thread free, {what}"
        for thread in busy:
            if thread.waits_in_sink:
                waits = self._waited_for(thread)
                return (
                    "nested",
                    f"{name} is full, {what}: {thread.place()}, on {thread.name}, waits in a sink for {waits}",
                )
        shown = "; ".join(f"{thread.place()}, on {thread.name}" for thread in busy[:SHOWN])
        waiting = _waiting_in(executor)
        more = "" if waiting is None else f", {waiting} task{'s' * (waiting != 1)} wait"
        return "pool", f"{name} is full, {what}: all {len(busy)} threads are busy{more}: {shown}"

    def _coroutines(self, combinator: Coroutines) -> Found:
        title = f"`{combinator.title}`"
        if combinator.loop is not None:
            found = self._event_loop(combinator.loop, f"the event loop of {title}")
            if found is not None:
                return found
        at = []
        for flight in list(combinator.flying)[:SHOWN]:
            task = getattr(flight.task, "task", None)
            frame = None if task is None else _await_of(task)
            if frame is not None:
                at.append(f"{frame.f_code.co_name} at {frame.f_code.co_filename}:{frame.f_lineno}")
        return "coroutine", f"{len(combinator.flying)} coroutines of {title}: {'; '.join(at) or 'not begun'}"

    def _event_loop(self, loop: Any, name: str) -> Found | None:
        """The cause, if a function blocks the event loop."""
        ident = getattr(loop, "_thread_id", None)
        thread = self._threads.get(ident) if isinstance(ident, int) else None
        if thread is None:
            closed = bool(getattr(loop, "_closed", False))
            return ("loop", f"{name} is closed") if closed or loop is not eventloop._loop else None
        if thread.frame is None or thread.frame.f_code.co_name in ("select", "_run_once", "run_forever"):
            return None
        return "loop", f"{name} is stuck: {thread.place()} keeps its thread, {thread.name}"


def _calls_of(combinator: _Calls | _ByKey) -> Sized:
    return combinator.flying if isinstance(combinator, _Calls) else combinator.tasks


def _publisher_of(queue: PrefetchQueue) -> str:
    publisher = getattr(queue._subscribe, "__self__", None)
    return "the publisher" if publisher is None else f"the publisher, {a_kind(publisher)},"


def _await_of(task: Any) -> Any:
    """The innermost frame of a task's coroutines."""
    coroutine, frame = task.get_coro(), None
    while coroutine is not None and (at := getattr(coroutine, "cr_frame", None)) is not None:
        frame, coroutine = at, getattr(coroutine, "cr_await", None)
    return frame


def _idents(executor: Any) -> list[int] | None:
    """The threads of an executor; None: its kind is not known here."""
    serial = getattr(executor, "_serial", None)
    if serial is not None:
        return _idents(serial.executor)
    threads = getattr(executor, "_threads", None)
    if isinstance(executor, ThreadPoolExecutor) and isinstance(threads, set):
        return [thread._ident for thread in list(threads) if thread._ident is not None]
    thread = getattr(executor, "_thread", None)
    ident = getattr(thread, "_ident", None)
    return [ident] if isinstance(ident, int) else None


def _is_busy(thread: ThreadLook) -> bool:
    frame = thread.frame
    return frame is not None and frame.f_code.co_name not in _IN_POOL


def _waiting_in(executor: Any) -> int | None:
    queue = getattr(executor, "_work_queue", None)
    if isinstance(executor, ThreadPoolExecutor) and queue is not None:
        size: int = queue.qsize()
        return size
    return None
