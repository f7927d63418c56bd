"""`AckedFlow`: operators for elements with acknowledgement, whose functions take the values."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Generic, Literal, TypeVar, overload

from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime.arguments import PREFETCH, When, check_callable, failures, is_coroutine_function
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import as_flow
from reactive_runtime._spec import Publisher
from reactive_runtime.connect._elements.acked import Acked
from reactive_runtime.connect._elements.acked_inner import attempted, inner_of
from reactive_runtime.connect._elements.acked_steps import (
    Acknowledge,
    Check,
    Do,
    Filter,
    Join,
    Map,
    awaited,
    called,
    key_of,
    refuse,
)

__all__ = ["AckedFlow"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class AckedFlow(Generic[T_co]):
    """A flow of elements with acknowledgement: functions take and give values, and each claim goes along.

    An element is acknowledged when it reaches `acknowledge()`, or when a `filter` drops it. It is refused, with the
    error, when a function fails with it; and with a `NotHandledError` when the flow ends, or is cancelled, while it is
    under way. It is immutable: each method returns another one.

    Args:
        source: A publisher of `Acked` elements. The flow fails with TypeError at any other.

    Raises:
        TypeError: `source` is no publisher.

    Demand:
        That of the operators. The source gets no more demand than that, so no more elements are open at once than the
        operators hold.

    Cancellation:
        Elements under way are refused.

    Thread:
        An element is settled on the thread on which it is handled, dropped, or fails.

    Example:
        >>> from reactive_runtime import Flow
        >>> orders = Flow.just(1, 2).map(lambda n: Acked(n, lambda error: print(n, "refused" if error else "done")))
        >>> list(AckedFlow(orders).map(lambda n: n * 10).acknowledge())
        1 done
        2 done
        [10, 20]

    Origin:
        `SourceWithContext` of Akka, whose context is what is to be committed.
    """

    __slots__ = ("_flow",)

    def __init__(self, source: Publisher[Acked[T_co]]) -> None:
        self._flow: Flow[Any] = as_flow("AckedFlow", "source", source)._then(Check("AckedFlow"))

    @classmethod
    def _of(cls, flow: Flow[Any]) -> AckedFlow[Any]:
        made: AckedFlow[Any] = AckedFlow.__new__(AckedFlow)
        made._flow = flow
        return made

    def map(self, fn: Callable[[T_co], R]) -> AckedFlow[R]:
        """`Flow.map`: the result has the claim of the element.

        Args:
            fn: Called once for each value. A result of None is a TypeError (2.13).

        Returns:
            The results. If `fn` raises an error, the element is refused with it, and the flow fails.

        Raises:
            TypeError: `fn` cannot be called.
        """
        return self._of(self._flow._then(Map(check_callable("map", "fn", fn))))

    def filter(self, predicate: Callable[[T_co], object]) -> AckedFlow[T_co]:
        """`Flow.filter`: an element that is dropped is acknowledged; nothing is left to do with it.

        Args:
            predicate: Called once for each value. A false answer drops the element.

        Returns:
            The elements that pass.

        Raises:
            TypeError: `predicate` cannot be called.
        """
        return self._of(self._flow._then(Filter(check_callable("filter", "predicate", predicate))))

    def batch(self, n: int) -> AckedFlow[list[T_co]]:
        """`Flow.batch`: a list is settled together; to settle it settles each of its elements.

        Args:
            n: How many elements a list has; the last may have fewer; 1 or more.

        Returns:
            The lists of values.

        Raises:
            TypeError: `n` is no int.
            ValueError: `n` is below 1.
        """
        return self._of(self._flow.batch(n)._then(Join()))

    def buffer_timeout(self, n: int, seconds: float, *, clock: Any = None) -> AckedFlow[list[T_co]]:
        """`Flow.buffer_timeout`: as `batch`, and a list is given on after so many seconds, however short it is.

        Args:
            n: How many elements a list has, at most; 1 or more.
            seconds: How long a list waits, from its first element; above 0.
            clock: An executor with a clock. None: the clock of this context.

        Returns:
            The lists of values.

        Raises:
            TypeError: `n` is no int, `seconds` is no number, or `clock` has no clock.
            ValueError: `n` is below 1, or `seconds` is not above 0 and finite.
        """
        return self._of(self._flow.buffer_timeout(n, seconds, clock=clock)._then(Join()))

    @overload
    def flat_map(self, fn: Callable[[T_co], Coroutine[Any, Any, R]], *, concurrency: int = ...) -> AckedFlow[R]: ...

    @overload
    def flat_map(self, fn: Callable[[T_co], Publisher[R]], *, concurrency: int = ...) -> AckedFlow[R]: ...

    def flat_map(self, fn: Callable[[T_co], Any], *, concurrency: int = 16) -> AckedFlow[Any]:
        """`Flow.flat_map`: the element is settled when its publisher has completed and all of its elements are settled.

        Args:
            fn: Called once for each value. Returns a publisher; or a coroutine function, whose results are the
                elements.
            concurrency: How many publishers, or coroutines, are under way, at most; 1 or more. 1: their elements come
                in the order of the source.

        Returns:
            The elements of all publishers. If a publisher fails, the element that it was made for is refused, and the
            flow fails.

        Raises:
            TypeError: `fn` cannot be called, or `concurrency` is no int.
            ValueError: `concurrency` is below 1.
        """
        check_callable("flat_map", "fn", fn, awaited=True)
        if is_coroutine_function(fn):
            return self._of(self._flow.flat_map(awaited(fn), concurrency=concurrency))
        return self._of(self._flow.flat_map(partial(inner_of, fn), concurrency=concurrency))

    def map_parallel(
        self,
        fn: Callable[[T_co], Any],
        executor: Executor | None = None,
        *,
        concurrency: int | Literal["auto"] = 16,
        ordered: bool = True,
    ) -> AckedFlow[Any]:
        """`Flow.map_parallel`: calls side by side; each result has the claim of its element.

        Args:
            fn: Called once for each value, on `executor`; or a coroutine function, without one.
            executor: A `concurrent.futures.Executor` of threads: a claim can't go to another process.
            concurrency: How many calls are in flight, or done and waiting, at most; 1 or more, or "auto".
            ordered: True: results come in the order of the source. False: as they are done.

        Returns:
            The results. If a call fails, its element is refused, and the flow fails.

        Raises:
            TypeError: `fn` cannot be called, `executor` is none of threads, or `concurrency` is no int.
            ValueError: `concurrency` is below 1, or another string than "auto".
        """
        check_callable("map_parallel", "fn", fn, awaited=True)
        call: Any = awaited(fn) if is_coroutine_function(fn) else partial(called, fn)
        flow = self._flow.map_parallel(call, executor, concurrency=concurrency, ordered=ordered)
        return self._of(flow)

    def map_by_key(
        self,
        fn: Callable[[T_co], R],
        key: Callable[[T_co], Hashable],
        executor: Executor,
        *,
        concurrency: int = 16,
        prefetch: int = PREFETCH,
    ) -> AckedFlow[R]:
        """`Flow.map_by_key`: calls in order for each key, side by side for several keys.

        Args:
            fn: Called once for each value, on `executor`.
            key: Called once for each value.
            executor: A `concurrent.futures.Executor` of threads.
            concurrency: How many calls are in flight, at most; 1 or more.
            prefetch: How many elements wait here, at most; 1 or more.

        Returns:
            The results. If a call fails, its element is refused, and the flow fails.

        Raises:
            TypeError: `fn` or `key` cannot be called, `executor` is none of threads, or a number is no int.
            ValueError: A number is below 1.
        """
        check_callable("map_by_key", "fn", fn)
        check_callable("map_by_key", "key", key)
        flow = self._flow.map_by_key(
            partial(called, fn), partial(key_of, key), executor, concurrency=concurrency, prefetch=prefetch
        )
        return self._of(flow)

    def publish_on(self, executor: Executor, *, prefetch: int = PREFETCH) -> AckedFlow[T_co]:
        """`Flow.publish_on`: what comes after runs on `executor`.

        Args:
            executor: Any `concurrent.futures.Executor` of threads.
            prefetch: How many elements may wait in the boundary; 1 or more.

        Returns:
            The same elements, on `executor`.

        Raises:
            TypeError: `executor` is no executor, or one of processes, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.
        """
        return self._of(self._flow.publish_on(executor, prefetch=prefetch))

    def on_error_continue(
        self,
        part: Callable[[AckedFlow[T_co]], AckedFlow[R]],
        to: Callable[[Any], object],
        *,
        when: When = Exception,
        concurrency: int = 1,
    ) -> AckedFlow[R]:
        """`Flow.on_error_continue`: an element whose part of the flow fails becomes a dead letter, and is acknowledged.

        A `retry` in the part begins anew with the same element, which is refused only if the last attempt fails.

        Args:
            part: Takes an `AckedFlow` of one element, and returns the `AckedFlow` of its results. Called once for each
                element.
            to: Takes the `DeadLetter` of each element whose part fails. When it has returned, the element is
                acknowledged: so it should have the letter in safety then. If it raises an error, the element is
                refused with it, and the flow fails.
            when: Which errors: a class of exceptions, a tuple of classes, or a function of the error. With any other
                the element is refused, and the flow fails.
            concurrency: How many elements are under way, at most; 1 or more. 1: results come in the order of the
                source.

        Returns:
            The results.

        Raises:
            TypeError: `part` or `to` cannot be called, `when` is neither a class of exceptions, nor a tuple of them,
                nor a function, or `concurrency` is no int.
            ValueError: `concurrency` is below 1.
        """
        check_callable("on_error_continue", "part", part)
        check_callable("on_error_continue", "to", to)
        wanted = failures("on_error_continue", when)
        one = partial(attempted, partial(_part_of, part), to, wanted)
        flow = self._flow.concat_map(one) if concurrency == 1 else self._flow.flat_map(one, concurrency=concurrency)
        return self._of(flow)

    def through(self, fn: Callable[[Flow[Acked[T_co]]], Flow[Acked[R]]]) -> AckedFlow[R]:
        """Any other operators, on the flow of `Acked` elements: `delay`, `rate_limit`, `retry`, `window`.

        An operator that drops elements by a rule of its own (`sample`, `distinct`) settles none of them: they stay
        open. An operator that drops elements because it has to (a full buffer, a cancel) has them refused.

        Args:
            fn: Takes the flow, and returns one of `Acked` elements. It is called at once, and only once.

        Returns:
            The elements of the flow that `fn` returns. The flow fails with TypeError at an element that is not `Acked`.

        Raises:
            TypeError: `fn` cannot be called, or returns no `Flow`.
        """
        flow = check_callable("through", "fn", fn)(self._flow)
        if not isinstance(flow, Flow):
            raise TypeError(f"through: {describe(fn)} must return a Flow, not {type(flow).__name__}")
        return self._of(flow._then(Check(f"through({describe(fn)})")))

    def acknowledge(self) -> Flow[T_co]:
        """Acknowledge each element that comes here: what had to be done with it has been done before.

        Returns:
            A flow of the values, to count, to log, or just to `run()`. It fails with an error that the source raises at
            an acknowledgement.
        """
        return self.elements()._then(Acknowledge())

    def elements(self) -> Flow[Acked[T_co]]:
        """The `Acked` elements, for a subscriber that acknowledges or refuses each itself.

        Returns:
            The flow. Elements under way are refused where it fails or is cancelled; those that the subscriber has are
            its own to settle.
        """
        return self._flow.do_on_discard(refuse)

    def for_each(self, fn: Callable[[T_co], object], *, timeout: float | None = None) -> None:
        """Call `fn` with each value, acknowledge the element when `fn` has returned, and wait for the end.

        Args:
            fn: Called once for each value. Its result is not used.
            timeout: How many seconds to wait, at most. None: for as long as it takes.

        Raises:
            TypeError: `fn` cannot be called.
            TimeoutError: The time is over. The flow has been cancelled.
            Exception: A copy of the error that the flow fails with. An element with which `fn` fails is refused.
        """
        check_callable("for_each", "fn", fn)
        self._of(self._flow._then(Do(fn))).acknowledge().run(timeout=timeout)


def _part_of(part: Callable[[AckedFlow[Any]], AckedFlow[Any]], flow: Flow[Acked[Any]]) -> Flow[Any]:
    result = part(AckedFlow._of(flow))
    if not isinstance(result, AckedFlow):
        raise TypeError(f"on_error_continue: {describe(part)} must return an AckedFlow, not {type(result).__name__}")
    return result.elements()
