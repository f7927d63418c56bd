"""Cold sources: on a thread of their own, on the threads that request, shared by many subscriptions."""

from collections.abc import AsyncIterator, Iterator

from reactive_runtime import Flow, Publisher
from reactive_runtime.stress import Context, scenario


@scenario(elements=2_000, live=12, tags=["smoke"])
def range_on_a_thread(context: Context) -> Publisher[int]:
    """A range, pulled on a thread of its own."""
    return Flow.range(2_000).subscribe_on(context.pool(1, "source"))


@scenario(elements=50, live=24, tags=["smoke"])
def range_on_the_callers(context: Context) -> Publisher[int]:
    """A range that runs on whichever thread requests: they all add to one demand counter."""
    return Flow.range(50)


@scenario(elements=20, live=24, workload="requests")
def requests_in_a_storm(context: Context) -> Publisher[int]:
    """Nothing but requests, far more than there are elements."""
    return Flow.range(20)


@scenario(elements=200, live=24, workload="cancels")
def cancels_in_a_storm(context: Context) -> Publisher[int]:
    """Cancels from all sides, again and again."""
    return Flow.from_supplier(context.opened(lambda: range(200))).subscribe_on(context.pool(4, "source"))


@scenario(elements=100, live=8, workload="churn")
def subscribers_come_and_go(context: Context) -> Publisher[int]:
    """Actors subscribe while others request and cancel."""
    return Flow.range(100).subscribe_on(context.pool(4, "source"))


@scenario(elements=None, live=16, workload="invalid", tags=["smoke"])
def invalid_requests(context: Context) -> Publisher[int]:
    """`request(0)` among the others: one error, and silence (3.9)."""
    return Flow.range(100)


@scenario(elements=100, live=64)
def iterable_shared_by_64(context: Context) -> Publisher[int]:
    """One iterable, 64 subscriptions on a pool of 8."""
    return Flow.from_iterable(tuple(range(100))).subscribe_on(context.pool(8, "shared"))


@scenario(elements=200, live=16)
def fused_steps(context: Context) -> Publisher[int]:
    """A generator through fused operators, run by the threads that request."""
    numbers = Flow.from_supplier(lambda: (n for n in range(1_000)))
    return numbers.map(lambda n: n + 1).filter(lambda n: n % 2).map(lambda n: n * 3).take(200)


@scenario(elements=60, live=16)
def steps_that_expand_and_gather(context: Context) -> Publisher[int]:
    """Batches and back, on the callers' threads."""
    return Flow.range(60).batch(7).flatten().enumerate().starmap(max)


@scenario(elements=1, live=32)
def a_call(context: Context) -> Publisher[int]:
    """One call, made when it is asked for."""
    return Flow.from_callable(lambda: 7).subscribe_on(context.pool(4, "source"))


@scenario(elements=50, live=8)
def a_state_that_goes_on(context: Context) -> Publisher[int]:
    """`generate`, until it is enough."""
    return Flow.generate(0, lambda n: (n, n + 1)).take(50)


@scenario(elements=None, live=16)
def a_source_that_fails(context: Context) -> Publisher[int]:
    """An iterator that raises half-way."""

    def numbers() -> Iterator[int]:
        yield from range(20)
        raise OSError("half-way")

    return Flow.from_supplier(numbers).subscribe_on(context.pool(4, "source"))


@scenario(elements=20, live=4, settles=False)
def an_async_iterator(context: Context) -> Publisher[int]:
    """`from_async`, on the event loop."""

    async def numbers() -> AsyncIterator[int]:
        for n in range(20):
            yield n

    return Flow.from_async(numbers)


@scenario(elements=0, live=32)
def nothing_at_all(context: Context) -> Publisher[int]:
    """An empty source: it completes without being asked."""
    return Flow.empty()


@scenario(elements=10, live=4)
def ticks_kept(context: Context) -> Publisher[int]:
    """A clock whose ticks wait for demand."""
    return Flow.interval(0.0005, clock=context.clock(), overflow="buffer").take(10)


@scenario(elements=None, live=4, workload="unbounded")
def ticks_dropped(context: Context) -> Publisher[int]:
    """A clock whose ticks are not waited for."""
    return Flow.merge(
        Flow.interval(0.0005, clock=context.clock(), overflow="drop").take_until(
            Flow.timer(0.01, clock=context.clock())
        ),
        Flow.empty(),
    )


@scenario(elements=100, live=8, subscribers="slow", tags=["smoke"])
def slow_subscribers(context: Context) -> Publisher[int]:
    """Subscribers that keep a thread of the pool for half a millisecond an element."""
    return Flow.from_supplier(context.opened(lambda: range(100))).subscribe_on(context.pool(4, "source"))


@scenario(elements=100, live=16, subscribers="raising", tags=["smoke"])
def raising_subscribers(context: Context) -> Publisher[int]:
    """Subscribers that raise from on_next: what is owed to them ends there (2.13)."""
    return Flow.from_supplier(context.opened(lambda: range(100))).subscribe_on(context.pool(4, "source"))
