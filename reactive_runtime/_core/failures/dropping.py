"""The hook for signals that can't be delivered: nothing is lost silently.

An error after the end, a subscriber that raised, an element that was accepted and will never be handed on, an iterator
whose `close` failed: the thread that notices calls the hook with each of them once. The default hook logs it under
`reactive_runtime`: errors at ERROR with their traceback, discarded elements at DEBUG.

Public as `reactive_runtime.hooks`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from reactive_runtime._core.failures import exits
from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.shown import shown

__all__ = ["Dropped", "Handler", "captured", "log_dropped", "raised", "set_handler"]

logger: Final = logging.getLogger("reactive_runtime")


@dataclass(frozen=True, slots=True)
class Dropped:
    """One signal that could not be delivered.

    Args:
        reason: What happened, and where, in words.
        error: The error, where an error was dropped.
        element: The element, where an element was dropped; elements are never None (2.13).
        wanted: True where an operator dropped the element because that is what it is for: sampling, conflating, a
            buffer that drops. False: the element is lost, by a cancel, an error, or a breach.
    """

    reason: str
    error: BaseException | None = None
    element: Any = None
    wanted: bool = False


Handler = Callable[[Dropped], object]


def log_dropped(dropped: Dropped) -> None:
    """The default handler: it logs what was dropped, under `reactive_runtime`.

    Args:
        dropped: An error is logged at ERROR with its traceback, an element at DEBUG.
    """
    if dropped.error is not None:
        logger.error("%s: %r", dropped.reason, dropped.error, exc_info=dropped.error)
    elif logger.isEnabledFor(logging.DEBUG):
        what = "dropped, as is wanted" if dropped.wanted else "discarded"
        logger.debug("%s: element %r %s", dropped.reason, dropped.element, what)


_lock = primitives.Lock()
active_handler: Handler = log_dropped  # written under _lock; read without it: a reader sees the old one or the new


def set_handler(handler: Handler | None) -> Handler:
    """Send what is dropped to `handler` from now on, and return the one before.

    There is one handler for the process.

    Args:
        handler: Called once with each signal that is dropped. None: the default, `log_dropped`.

    Returns:
        The handler before.

    Raises:
        TypeError: `handler` cannot be called, or is a coroutine function, which no thread awaits.

    Thread:
        `handler` is called on the thread that noticed, whichever that is, without any lock held. What it raises is
        logged.

    Example:
        >>> from reactive_runtime.hooks import set_handler
        >>> drops = []
        >>> before = set_handler(drops.append)
        >>> _ = set_handler(before)
    """
    global active_handler  # one for the process, as logging's root is
    if handler is not None and not callable(handler):
        raise TypeError(f"set_handler: handler must be callable, not {shown(handler)}")
    if inspect.iscoroutinefunction(handler):
        raise TypeError("set_handler: handler is a coroutine function, which is not awaited: give a plain function")
    with _lock:
        before, active_handler = active_handler, handler or log_dropped
    return before


@contextmanager
def captured() -> Iterator[list[Dropped]]:
    """Collect what is dropped while the block runs, on all threads; for tests.

    Blocks may overlap, on several threads: the one that began last collects, and the handler from before all of them
    is back when the last has ended.

    Yields:
        A list, to which each `Dropped` is added.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.hooks import captured
        >>> with captured() as drops:
        ...     handle = Flow.range(3).subscribe(lambda n: 1 / 0)
        >>> [type(drop.error).__name__ for drop in drops]
        ['SubscriberError']
    """
    collector = _Collector()
    collector.before = set_handler(collector)
    try:
        yield collector.drops
    finally:
        collector.end()


class _Collector:
    """The handler of one block of `captured`. After it, it stands for the handler before, where it is still set."""

    def __init__(self) -> None:
        self.drops: list[Dropped] = []  # _own
        self.before: Handler = log_dropped  # written once, when the handler is set
        self._own = primitives.Lock()
        self._over = False  # _own; read without it by the end of another block, which may find it just before

    def __call__(self, dropped: Dropped) -> None:
        with self._own:
            if not self._over:
                self.drops.append(dropped)
                return
        self.before(dropped)

    def end(self) -> None:
        global active_handler
        with self._own:
            self._over = True
        with _lock:
            now = active_handler
            if now is not self and isinstance(now, _Collector) and not now._over:
                return  # a block that began later still collects
            before = self.before
            while isinstance(before, _Collector) and before._over:  # it ended first, while this one collected
                before = before.before
            active_handler = before


def error_dropped(reason: str, error: BaseException) -> None:
    """Report an error that has nowhere else to go."""
    _report(Dropped(reason, error=error))


def letter_dropped(reason: str, letter: object, error: BaseException) -> None:
    """Report a dead letter that its receiver did not take, with the error that made it one."""
    _report(Dropped(reason, error=error, element=letter))


def raised(reason: str, error: BaseException) -> None:
    """Report an error of a user's code, where no signal can follow. For the `except` that caught it.

    An error that goes on up to the user's own call (see `failures.exits`) is raised again instead.
    """
    if exits.goes_up(error):
        raise error
    error_dropped(reason, error)


Listeners = tuple[Callable[[Any], object], ...]
"""The listeners to a discarded element, beside the hook: each `do_on_discard` downstream of it, the nearest first."""

UNDELIVERED: Final = "a stream ended before it was delivered"
"""The reason for most elements."""

Held = list[tuple[object, Listeners]]
"""Elements that were held back when their stream ended, and the listeners of each."""


def element_dropped(reason: str, element: object, heard: Listeners = (), *, wanted: bool = False) -> None:
    """Report an element that was accepted and will not be delivered, to the hook and to `heard`.

    `wanted`: an operator dropped it, which it is there to do. A flow, alone or in a list or tuple, is abandoned.
    """
    dropped = Dropped(reason, element=element, wanted=wanted)
    if not heard and not isinstance(element, _may_hold_flows):  # most are
        _report(dropped)
        return
    flows = element if isinstance(element, tuple | list) else (element,)
    exits.each(
        [
            *(partial(_heard, listen, element) for listen in heard),
            partial(_report, dropped),
            *(partial(abandon, flow) for flow in flows if isinstance(flow, _flow_type)),
        ]
    )


_flow_type: type[Any] | tuple[()] = ()  # written once, before there is a flow
_may_hold_flows: tuple[type[Any], ...] = (tuple, list)  # written once, before there is a flow
_abandoned: Callable[[Any], object]


def flows_are(flow_type: type[Any], abandoned: Callable[[Any], object]) -> None:
    """Call `abandoned` with each dropped flow, after the report. Called once, by the module that defines flows."""
    global _flow_type, _may_hold_flows, _abandoned
    _flow_type, _abandoned = flow_type, abandoned
    _may_hold_flows = (tuple, list, flow_type)


def abandon(flow: object) -> None:
    """No subscriber comes through this flow: have its sources drop what they hold for one."""
    _abandoned(flow)


def elements_dropped(reason: str, elements: Iterable[object], heard: Listeners = (), *, wanted: bool = False) -> None:
    """`element_dropped` for each of them."""
    if not heard and _none_listens():  # a slow subscriber of a hot source leaves hundreds behind
        elements = [element for element in elements if isinstance(element, _may_hold_flows)]
    calls = [partial(element_dropped, reason, element, heard, wanted=wanted) for element in elements]
    if calls:
        exits.each(calls)


def _none_listens() -> bool:
    """Whether no one hears of an element that is dropped: it is logged at a level that is switched off."""
    return active_handler is log_dropped and not counts_drops and not logger.isEnabledFor(logging.DEBUG)


def held_dropped(held: Held, reason: str = UNDELIVERED) -> None:
    """`element_dropped` for each element that was held back."""
    if held:
        exits.each([partial(element_dropped, reason, element, heard) for element, heard in held])


def _heard(listen: Callable[[Any], object], element: object) -> None:
    try:
        listen(element)
    except BaseException as error:
        raised(f"do_on_discard raised on {shown(element)}", error)


_downstream: Final[ContextVar[Listeners]] = ContextVar("discards", default=())

U = TypeVar("U")


def subscribed(heard: Listeners, subscribe: Callable[[U], object], subscriber: U) -> None:
    """`subscribe(subscriber)`, for an upstream whose discarded elements go to the listeners `heard`.

    The context of this one call has them: the subscription that is made inside takes them (`listening_downstream`),
    also where another library's publisher stands in between.
    """
    if heard:
        _downstream.set(heard)
    subscribe(subscriber)


def listening_downstream() -> Listeners:
    """Take the listeners that `subscribed` hands to a subscription that is just being made."""
    heard = _downstream.get()
    if heard:
        _downstream.set(())  # they are for this flow, and not for flows that its functions subscribe to
    return heard


_on_retry: Final[ContextVar[Callable[[], object] | None]] = ContextVar("retries", default=None)


def listen_to_retries(listener: Callable[[], object]) -> None:
    """Have flows that are subscribed to in this context call `listener` before each attempt after the first."""
    _on_retry.set(listener)


counts_retries: Callable[[Context], object] | None = None
"""Called with the context of each stream that begins once more. Written once, by telemetry, under a lock of its own."""

counts_drops: Callable[[Dropped], object] | None = None
"""Called with each signal that the hook gets, before it. Written as `counts_retries` is."""


def retried(context: Context) -> None:
    """A stream in `context` begins once more."""
    if counts_retries:
        counts_retries(context)
    listener = context.get(_on_retry)
    if listener is not None:
        listener()


def _report(dropped: Dropped) -> None:
    if counts_drops:
        counts_drops(dropped)
    try:
        active_handler(dropped)
    except BaseException as error:
        if exits.goes_up(error):
            raise
        logger.error("the handler of dropped signals raised on %s", dropped, exc_info=error)
