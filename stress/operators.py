"""Asynchronous operators: several sources, tasks on a pool, coroutines, timers."""

import asyncio

from reactive_runtime import Flow, Publisher
from reactive_runtime.stress import Context, scenario


@scenario(elements=200, live=4, ascending=False, tags=["smoke"])
def merged(context: Context) -> Publisher[int]:
    """Two sources on two threads, as they come."""
    source = Flow.from_supplier(context.opened(lambda: range(100)))
    return Flow.merge(*(source.subscribe_on(context.pool(2, name)) for name in "AB"), prefetch=4)


@scenario(elements=200, live=4)
def merged_in_order(context: Context) -> Publisher[int]:
    """Two sources on two threads, smallest first."""
    odd, even = (Flow.range(first, 200, 2).subscribe_on(context.pool(2, str(first))) for first in (1, 0))
    return Flow.merge_comparing(odd, even, prefetch=4)


@scenario(elements=100, live=4)
def zipped(context: Context) -> Publisher[int]:
    """Two sources on two threads, in pairs."""
    a, b = (Flow.range(100).subscribe_on(context.pool(2, name)) for name in "AB")
    return Flow.zip(a, b, prefetch=4).starmap(max)


@scenario(elements=None, live=4, ascending=False)
def the_latest_of_two(context: Context) -> Publisher[int]:
    """`combine_latest`: whichever has news."""
    a, b = (Flow.range(50).subscribe_on(context.pool(2, name)) for name in "AB")
    return Flow.combine_latest(a, b, prefetch=4).starmap(max)


@scenario(elements=100, live=4, ascending=False)
def one_after_the_other(context: Context) -> Publisher[int]:
    """`concat`: unmet demand goes over to the next."""
    return Flow.concat(*(Flow.range(50).subscribe_on(context.pool(2, name)) for name in "AB"))


@scenario(elements=200, live=4, ascending=False, tags=["smoke"])
def flat_map_on_a_pool(context: Context) -> Publisher[int]:
    """Up to four publishers at once, on a pool."""
    inner = Flow.from_supplier(context.opened(lambda: range(4)))
    return Flow.range(50).flat_map(lambda n: inner.subscribe_on(context.pool(4, "inner")), concurrency=4, prefetch=2)


@scenario(elements=100, live=4, ascending=False)
def flat_map_of_calls(context: Context) -> Publisher[int]:
    """Up to eight calls at once."""
    return Flow.range(100).flat_map(
        lambda n: Flow.from_callable(lambda: n).subscribe_on(context.pool(4, "inner")), concurrency=8
    )


@scenario(elements=100, live=4)
def flat_map_in_order(context: Context) -> Publisher[int]:
    """Up to four publishers at once, their elements in order."""
    return Flow.range(100).flat_map_sequential(
        lambda n: Flow.just(n).subscribe_on(context.pool(4, "inner")), concurrency=4, prefetch=2
    )


@scenario(elements=100, live=4)
def concat_map_on_a_pool(context: Context) -> Publisher[int]:
    """One publisher after the other."""
    return Flow.range(50).concat_map(lambda n: Flow.range(2 * n, 2 * n + 2).subscribe_on(context.pool(4, "inner")))


@scenario(elements=None, live=4)
def switched(context: Context) -> Publisher[int]:
    """Each publisher takes the place of the one before it."""
    source = Flow.range(50).subscribe_on(context.pool(2, "A"))
    return source.switch_map(lambda n: Flow.range(100 * n, 100 * n + 5).subscribe_on(context.pool(4, "inner")))


@scenario(elements=100, live=4, tags=["smoke"])
def tasks_in_order(context: Context) -> Publisher[int]:
    """`map_parallel` on a pool."""
    return Flow.from_supplier(context.opened(lambda: range(100))).map_parallel(
        lambda n: n, context.pool(4, "tasks"), concurrency=8
    )


@scenario(elements=100, live=4, ascending=False)
def tasks_as_they_are_done(context: Context) -> Publisher[int]:
    """`map_parallel`, in whatever order."""
    return Flow.range(100).map_parallel(lambda n: n, context.pool(4, "tasks"), concurrency=8, ordered=False)


@scenario(elements=20, live=2, settles=False)
def coroutines(context: Context) -> Publisher[int]:
    """`map_parallel` of a coroutine function."""

    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n

    return Flow.range(20).map_parallel(work, concurrency=4)


@scenario(elements=100, live=4, ascending=False)
def rails(context: Context) -> Publisher[int]:
    """`parallel`, on two rails."""
    return Flow.range(100).parallel(2, prefetch=4).run_on(context.pool(2, "inner")).map(abs).sequential()


@scenario(elements=100, live=4, ascending=False)
def groups(context: Context) -> Publisher[int]:
    """`group_by`, and together again."""
    return Flow.range(100).subscribe_on(context.pool(2, "A")).group_by(lambda n: n % 3).flat_map(lambda item: item[1])


@scenario(elements=100, live=4)
def windows(context: Context) -> Publisher[int]:
    """`window`, one after the other."""
    return Flow.range(100).subscribe_on(context.pool(2, "A")).window(7).concat_map(lambda item: item)


@scenario(elements=None, live=4, ascending=False)
def retried(context: Context) -> Publisher[int]:
    """A source that fails, begun anew, twice: unmet demand goes over."""
    return Flow.range(10).concat_with(Flow.error(OSError("again"))).subscribe_on(context.pool(2, "A")).retry(2)


@scenario(elements=100, live=4, ascending=False)
def repeated(context: Context) -> Publisher[int]:
    """A source, five times: unmet demand goes over."""
    return Flow.range(20).subscribe_on(context.pool(2, "A")).repeat(5)


@scenario(elements=20, live=4)
def delayed(context: Context) -> Publisher[int]:
    """Each element waits for a moment."""
    return Flow.range(20).delay(0.0002, clock=context.clock())


@scenario(elements=None, live=4)
def with_a_timeout(context: Context) -> Publisher[int]:
    """A timer beside each element."""
    return Flow.range(50).subscribe_on(context.pool(2, "A")).timeout(0.02, clock=context.clock())


@scenario(elements=None, live=4)
def batches_by_time(context: Context) -> Publisher[int]:
    """A batch when it is full, or when its time is up."""
    return Flow.range(100).subscribe_on(context.pool(2, "A")).buffer_timeout(7, 0.001, clock=context.clock()).map(max)
