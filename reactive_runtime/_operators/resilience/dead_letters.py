"""Operators that take an error out of the flow: `on_error_complete` and `on_error_continue`.

Reactor's `onErrorContinue` reaches upstream: it asks the operators before it to skip an element, and only some of them
can. So a reader cannot tell which errors it catches. Here a function makes the part of the flow whose errors
`on_error_continue` catches, and each element goes through this part on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from reactive_runtime._core.drains.combinator import Elements
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import operator_of, raised_over
from reactive_runtime._core.failures.error_carrier import carried
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.queues.emit_result import EmitResult
from reactive_runtime._core.runtime.arguments import PREFETCH, When, at_least, check_callable, failures
from reactive_runtime._core.sources.flow_source import IterableSource
from reactive_runtime._core.sources.naming import instead, is_publisher
from reactive_runtime._operators.concurrent.flattening import ConcatMap, FlatMap
from reactive_runtime._operators.error_handling import Again
from reactive_runtime._operators.flow_base import FlowBase, as_flow, combinator_flow, flow_of
from reactive_runtime._spec import Publisher
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["DeadLetter", "DeadLetterOperators", "SupportsEmit"]

T_co = TypeVar("T_co", covariant=True)
T_in = TypeVar("T_in", contravariant=True)
R = TypeVar("R")


class SupportsEmit(Protocol[T_in]):
    """A hot source that takes elements: the processors of `reactive_runtime.hot` do."""

    def emit(self, element: T_in, /) -> EmitResult: ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An element that `on_error_continue` has taken out of a flow, and why.

    Args:
        element: The element, as it came to `on_error_continue`.
        error: The error that its part of the flow ended with.
        operator: The operator that raised the error, as `explain` draws it; empty if it is not known, as for an error
            of another library's publisher. A note on the error names the line of the operator.
        attempts: How often the part has begun with the element: 1, or more with a `retry` in the part; 0 if the part
            failed before it requested the element.
    """

    element: Any
    error: Exception
    operator: str
    attempts: int


class DeadLetterOperators(FlowBase[T_co]):
    """Operators that take an error out of the flow: it completes, or goes on with the next element."""

    __slots__ = ()

    def on_error_complete(self, *, when: When = Exception) -> Flow[T_co]:
        """The source; if it fails, the flow completes instead.

        Args:
            when: Which errors: a class of exceptions, a tuple of classes, or a function of the error. Any other error
                ends the flow as before.

        Returns:
            A flow of the elements of the source. It completes when the source completes, or fails with one of these
            errors; the operator drops this error, and no hook gets it. If `when` raises an error, the flow fails with
            it; its `__context__` is the error of the source.

        Raises:
            TypeError: `when` is neither a class of exceptions, nor a tuple of them, nor a function.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            `when` is called on the thread on which the source fails.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 0, 2).map(lambda n: 1 // n).on_error_complete(when=ZeroDivisionError))
            [1]

        Origin:
            `onErrorComplete` of Rx.
        """
        wanted = failures("on_error_complete", when)
        return combinator_flow("on_error_complete()", lambda: _Complete(self, wanted), self)

    def on_error_continue(
        self,
        part: Callable[[Flow[T_co]], Publisher[R]],
        to: Callable[[DeadLetter], object] | SupportsEmit[DeadLetter],
        *,
        when: When = Exception,
        concurrency: int = 1,
        prefetch: int = PREFETCH,
    ) -> Flow[R]:
        """The results of `part`, run for each element alone; an element whose part fails becomes a dead letter.

        The operator catches every error of the operators in `part`, and no other: an error of the source, or of an
        operator before or after `on_error_continue`, ends the flow. A `retry` or `timeout` in `part` applies to one
        element. An operator in `part` that remembers elements (`distinct`, `batch`, `scan`) sees one only.

        Args:
            part: Takes a flow of one element, and returns the publisher of its results: a function, or a `Pipeline`.
                Called once for each element.
            to: Takes a `DeadLetter` for each element whose part fails: a function, or a hot source with `emit`. If the
                hot source refuses it (no room, no subscriber, it has ended), the hook gets the letter with its error.
            when: Which errors: a class of exceptions, a tuple of classes, or a function of the error. Others end the
                flow.
            concurrency: How many elements are under way, at most; 1 or more. 1: their results come in the order of the
                source. More: as they come, as with `flat_map`.
            prefetch: With `concurrency`: how many results of each element wait here, at most; 1 or more.

        Returns:
            A flow of the results, also of those that a part gives before it fails. The flow fails with an error of the
            source, of `when` or of `to`, with an error that the call of `part` raises, and with TypeError if `part`
            returns no publisher.

        Raises:
            TypeError: `part` cannot be called, `to` neither can be called nor has `emit`, `when` is neither a class of
                exceptions, nor a tuple of them, nor a function, or `concurrency` or `prefetch` is no int.
            ValueError: `concurrency` or `prefetch` is below 1.

        Demand:
            That of `concat_map`; with a `concurrency` above 1, that of `flat_map`.

        Cancellation:
            Passes to the source and to the parts under way. The hook gets an element that its part has not requested.

        Thread:
            `part` is called on the thread of the source, or on the one that requests, one at a time. `when` and `to`
            are called on the thread on which the part fails, one at a time.

        Example:
            >>> from reactive_runtime import Flow
            >>> letters = []
            >>> texts = Flow.just("1", "two", "3")
            >>> list(texts.on_error_continue(lambda text: text.map(int), to=letters.append))
            [1, 3]
            >>> letters[0].element, letters[0].operator, letters[0].attempts
            ('two', 'map(int)', 1)

        Origin:
            A `flatMap` with `onErrorResume` inside, as Reactor's documentation recommends it in place of its
            `onErrorContinue`; dead letter queues.
        """
        check_callable("on_error_continue", "part", part)
        put = _receiver(to)
        wanted = failures("on_error_continue", when)
        at_least("on_error_continue", "concurrency", 1, concurrency)
        at_least("on_error_continue", "prefetch", 1, prefetch)
        title = f"on_error_continue({describe(part)})"
        each = _EachAlone(title, part, put, wanted)
        if concurrency == 1:
            return combinator_flow(title, lambda: ConcatMap(self, each, delay_error=False), self)
        return combinator_flow(title, lambda: FlatMap(self, each, concurrency, prefetch, delay_error=False), self)


def _receiver(to: Any) -> Callable[[DeadLetter], object]:
    put: Callable[[DeadLetter], object] = to
    emit = getattr(to, "emit", None)
    if callable(emit) and not isinstance(to, type):
        put = emit
    elif not callable(to):
        raise TypeError(f"on_error_continue: to must be a function, or a hot source with emit, not {instead(to)}")
    return check_callable("on_error_continue", "to", put)


class _EachAlone:
    """The function that makes the flow of each element."""

    def __init__(
        self,
        title: str,
        part: Callable[[Any], Publisher[Any]],
        put: Callable[[DeadLetter], object],
        when: Callable[[Exception], object],
    ) -> None:
        self._title = title
        self._part = part
        self._put = put
        self._when = when

    def __call__(self, element: Any) -> Any:
        attempts = _Attempts(element)
        publisher = self._part(flow_of(IterableSource("element()", attempts.begun, synchronous=True)))
        if not is_publisher(publisher):
            return publisher  # `ConcatMap` and `FlatMap` raise the TypeError
        flow = as_flow(self._title, "the part", publisher)
        return combinator_flow(self._title, lambda: _Continue(flow, attempts, self._put, self._when), flow)

    def __repr__(self) -> str:
        return describe(self._part)


class _Attempts:
    """An element, and how often a flow of it has begun."""

    __slots__ = ("element", "number")

    def __init__(self, element: Any) -> None:
        self.element = element
        self.number = 0  # the thread that runs the part writes it; one at a time, and read when the part is over

    def begun(self) -> Iterator[Any]:
        """The supplier of the source. An attempt begins when the element is asked for."""
        self.number += 1
        yield self.element


class _Complete(Again):
    def __init__(self, source: FlowBase[Any], when: Callable[[Exception], object]) -> None:
        super().__init__(source)
        self.when = when

    def elements(self) -> Elements:
        failure = yield from self.run(self.source)
        if failure is not None and not self.asked(self.when, failure):
            raise carried(failure)


class _Continue(Again):
    """The part of one element."""

    def __init__(
        self,
        source: FlowBase[Any],
        attempts: _Attempts,
        put: Callable[[DeadLetter], object],
        when: Callable[[Exception], object],
    ) -> None:
        super().__init__(source)
        self.attempts = attempts
        self.put = put
        self.when = when
        self.written = False  # the element has gone to `to`

    def elements(self) -> Elements:
        failure = yield from self.run(self.source)
        if failure is not None:
            try:
                self.write(failure)
            finally:
                failure = None  # a reference cycle: the traceback of the error has this frame

    def write(self, failure: Exception) -> None:
        """Give the letter to its receiver, or raise the error."""
        if not self.asked(self.when, failure):
            raise carried(failure)
        self.written = True
        letter = DeadLetter(self.attempts.element, failure, operator_of(failure), self.attempts.number)
        try:
            result = self.call(self.put, letter)
        except BaseException as error:
            raised_over(error, failure)
            raise
        if isinstance(result, EmitResult) and result is not EmitResult.OK:
            reason = f"{self.title}: the hot source did not take {shown(letter)}: {result.value}"
            dropping.letter_dropped(reason, letter, failure)

    def closed(self) -> None:
        super().closed()
        if not (self.attempts.number or self.written):
            self.discard(self.attempts.element)
