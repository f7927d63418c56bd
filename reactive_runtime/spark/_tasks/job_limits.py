"""`JobLimits`: how many calls all tasks of a job make, at once and in each second."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

from reactive_runtime._core.runtime.arguments import at_least, check_callable, is_coroutine_function, seconds_of
from reactive_runtime._support.public_names import at_home
from reactive_runtime.spark._tasks.link import Address, Linked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobLimits"]

P = ParamSpec("P")
R = TypeVar("R")

_WHAT: Final = "JobLimits"


class JobLimits:
    """A rate, and a bound of concurrency, for the calls of all tasks together, however many there are.

    The operators of a flow bound what one task does: `rate_limit`, `concurrency`. Here the driver keeps the count. Each
    call asks it first, and waits on its own thread. A call that is repeated asks again. Tasks do not wait for each
    other, and what a task held is free when it ends, in whichever way, or its worker dies.

    Args:
        spark: The session.
        rate: How many calls may begin in each `per` seconds, evenly spaced; above 0. None: any number.
        per: In how many seconds; above 0.
        concurrency: How many calls there are at once, 1 or more. None: any number.
        port: Where the driver listens; its tasks connect to `spark.driver.host` there. 0: any that is free.

    Raises:
        TypeError: An argument is no number.
        ValueError: An argument is too small, or there is neither a `rate` nor a `concurrency`.
        RuntimeError: The session is one of Spark Connect, whose tasks can't reach this process.
        SparkError: The driver can't listen there.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        rate: float | None = None,
        per: float = 1.0,
        concurrency: int | None = None,
        port: int = 0,
    ) -> None:
        if rate is None and concurrency is None:
            raise ValueError(f"{_WHAT}: give a rate, a concurrency, or both")
        if rate is not None:
            if isinstance(rate, bool) or not isinstance(rate, int | float):
                raise TypeError(f"{_WHAT}: rate must be a number of calls, not {type(rate).__name__}")
            if not 0 < rate < math.inf:
                raise ValueError(f"{_WHAT}: rate must be a number of calls above 0, not {rate}")
        if concurrency is not None:
            at_least(_WHAT, "concurrency", 1, concurrency)
        from reactive_runtime.spark._tasks.coordinator import Permits, address_of  # what only the driver needs

        permits = Permits(rate, seconds_of(_WHAT, "per", per, positive=True), concurrency)
        self._link = Linked(_WHAT, address_of(_WHAT, spark, permits, port))

    def limited(self, fn: Callable[P, R]) -> Callable[P, R]:
        """The same function, each call of which waits for its turn in the job.

        Args:
            fn: A function, or a coroutine function.

        Returns:
            A function of the same arguments, a coroutine function where `fn` is one.

        Raises:
            TypeError: `fn` can't be called.

        Thread:
            It waits on the thread that calls it, a coroutine on its event loop. Where the driver is gone, or the task
            ends meanwhile, it raises SparkError.
        """
        check_callable(f"{_WHAT}.limited", "fn", fn, awaited=True)
        if is_coroutine_function(fn):
            return cast("Callable[P, R]", self._awaiting(cast("Callable[P, Coroutine[Any, Any, Any]]", fn)))

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._permit() as granted:
                granted.result()
                return fn(*args, **kwargs)

        return _named_as(fn, call)

    def _awaiting(self, fn: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._permit() as granted:
                import asyncio

                await asyncio.wrap_future(granted)
                return await fn(*args, **kwargs)

        return _named_as(fn, call)

    @contextmanager
    def _permit(self) -> Iterator[Any]:
        """A future that is done when the call may begin; the permit is given back at the end."""
        link = self._link.linked()
        number, granted = link.ask()
        try:
            yield granted
        finally:
            link.done(number)

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self._link.address,)


def _named_as(fn: Callable[..., Any], call: Callable[P, R]) -> Callable[P, R]:
    """`call`, which errors and `explain` name as `fn`."""
    return functools.update_wrapper(call, fn)


def _arrived(address: Address) -> JobLimits:
    """The same, in a task."""
    made = JobLimits.__new__(JobLimits)
    made._link = Linked(_WHAT, address)
    return made


at_home("reactive_runtime.spark", JobLimits)
