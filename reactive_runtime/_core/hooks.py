"""Where a signal goes that can't be delivered: nothing is lost silently.

An error after the end, a subscriber that raised, an element that was accepted and will never be handed on,
an iterator whose `close` failed: each reaches the hook once, on the thread that noticed. By default it is
logged under `reactive_runtime`: errors at ERROR with their traceback, discarded elements at DEBUG.

Public as `reactive_runtime.hooks`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from reactive_runtime._core import exits, primitives

__all__ = ["Dropped", "Handler", "captured", "log_dropped", "raised", "set_handler"]

logger: Final = logging.getLogger("reactive_runtime")


@dataclass(frozen=True, slots=True)
class Dropped:
    """One signal that could not be delivered.

    `reason` says in words what happened and where; `error` is set for errors, `element` for elements
    (elements are never `None`, 2.13).
    """

    reason: str
    error: BaseException | None = None
    element: Any = None


Handler = Callable[[Dropped], object]


def log_dropped(dropped: Dropped) -> None:
    """The default handler."""
    if dropped.error is not None:
        logger.error("%s: %r", dropped.reason, dropped.error, exc_info=dropped.error)
    elif logger.isEnabledFor(logging.DEBUG):
        logger.debug("%s: element %r discarded", dropped.reason, dropped.element)


_lock = primitives.Lock()
_handler: Handler = log_dropped  # written under _lock; read without it: a reader sees the old one or the new


def set_handler(handler: Handler | None) -> Handler:
    """Send what is dropped to `handler` from now on (`None`: the default), and return the one before.

    The handler is called on whichever thread noticed, without any lock held; what it raises is logged.
    """
    global _handler  # one for the process, as logging's root is
    with _lock:
        before, _handler = _handler, handler or log_dropped
    return before


@contextmanager
def captured() -> Iterator[list[Dropped]]:
    """Collect what is dropped while the block runs, on all threads; for tests."""
    drops: list[Dropped] = []
    lock = primitives.Lock()

    def collect(dropped: Dropped) -> None:
        with lock:
            drops.append(dropped)

    before = set_handler(collect)
    try:
        yield drops
    finally:
        set_handler(before)


def error_dropped(reason: str, error: BaseException) -> None:
    """Report an error that has nowhere else to go."""
    _report(Dropped(reason, error=error))


def raised(reason: str, error: BaseException) -> None:
    """Report what a user's code raised, in a place where no signal can follow. For the `except` that caught it.

    What goes on up to the user's own call (see `_core.exits`) is raised again instead.
    """
    if exits.goes_up(error):
        raise error
    error_dropped(reason, error)


def element_dropped(reason: str, element: object, context: Context | None = None) -> None:
    """Report an element that was accepted and will not be delivered.

    `context` is the stream's: whoever listens there (`do_on_discard`) is told as well.
    """
    dropped = Dropped(reason, element=element)
    listeners = () if context is None else context.get(_listeners, ())
    if listeners:
        exits.each([*(partial(_told, listen, element) for listen in listeners), partial(_report, dropped)])
    else:
        _report(dropped)


def elements_dropped(reason: str, elements: Iterable[object], context: Context | None = None) -> None:
    """`element_dropped` for each of them."""
    calls = [partial(element_dropped, reason, element, context) for element in elements]
    if calls:
        exits.each(calls)


def _told(listen: Callable[[Any], object], element: object) -> None:
    try:
        listen(element)
    except BaseException as error:
        raised(f"do_on_discard raised on {element!r}", error)


_listeners: Final[ContextVar[tuple[Callable[[Any], object], ...]]] = ContextVar("discards", default=())


def listen_to_discards(context: Context, listener: Callable[[Any], object]) -> None:
    """Tell `listener` of each element that is dropped by a stream in `context`, or further upstream."""
    context.run(lambda: _listeners.set((*_listeners.get(), listener)))


_on_retry: Final[ContextVar[Callable[[], object] | None]] = ContextVar("retries", default=None)


def listen_to_retries(listener: Callable[[], object]) -> None:
    """Tell `listener` of each attempt after the first, by flows that are subscribed to in this context."""
    _on_retry.set(listener)


def retried(context: Context) -> None:
    """A stream in `context` begins once more."""
    listener = context.get(_on_retry)
    if listener is not None:
        listener()


def _report(dropped: Dropped) -> None:
    try:
        _handler(dropped)
    except BaseException as error:
        if exits.goes_up(error):
            raise
        logger.error("the handler of dropped signals raised on %s", dropped, exc_info=error)
