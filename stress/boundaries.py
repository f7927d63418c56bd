"""Asynchronous boundaries: from thread to thread, with links recorded, with pools that go away under load."""

from reactive_runtime import Flow, KillSwitch, Publisher, Valve
from reactive_runtime.executors import SerialExecutor, TrampolineExecutor
from reactive_runtime.stress import Context, scenario


@scenario(elements=1_000, live=4, tags=["smoke"])
def three_executors(context: Context) -> Publisher[int]:
    """A | B | C with three executors."""
    a, b, c = (context.pool(2, name) for name in "ABC")
    source = Flow.range(1_000).subscribe_on(a).map(lambda n: n + 1)
    return source.publish_on(b, prefetch=16).map(lambda n: n * 2).publish_on(c, prefetch=16)


@scenario(elements=500, live=4, tags=["smoke"])
def three_executors_recorded(context: Context) -> Publisher[int]:
    """A | B | C, every link recorded: our own subscribers have to keep 2.7."""
    a, b, c = (context.pool(2, name) for name in "ABC")
    first = context.link(Flow.range(500).subscribe_on(a), elements=500)
    second = context.link(first.publish_on(b, prefetch=8).map(lambda n: n * 2), elements=500)
    return second.publish_on(c, prefetch=8)


@scenario(elements=100, live=8)
def one_element_ahead(context: Context) -> Publisher[int]:
    """The smallest boundary there is."""
    source = Flow.from_supplier(context.opened(lambda: range(100)))
    return source.subscribe_on(context.pool(2, "A")).publish_on(context.pool(2, "B"), prefetch=1)


@scenario(elements=100, live=8)
def a_serial_executor(context: Context) -> Publisher[int]:
    """A boundary on a serial executor over a shared pool."""
    return (
        Flow.range(100).subscribe_on(context.pool(2, "A")).publish_on(SerialExecutor(context.pool(4, "B")), prefetch=4)
    )


@scenario(elements=100, live=8)
def a_trampoline(context: Context) -> Publisher[int]:
    """A boundary whose tasks run where they are submitted."""
    return Flow.range(100).publish_on(TrampolineExecutor(), prefetch=4)


@scenario(elements=None, live=8, executor_stops=True)
def the_pool_is_shut_down(context: Context) -> Publisher[int]:
    """The pool of a boundary goes away under load: what waits in its queue is cancelled, with an error."""
    pool = context.pool_of_this_round(2)
    context.feed(lambda: pool.shutdown(wait=False, cancel_futures=True))
    return Flow.range(200).subscribe_on(context.pool(2, "A")).publish_on(pool, prefetch=4)


@scenario(elements=None, live=8, executor_stops=True)
def the_pool_of_the_source_is_shut_down(context: Context) -> Publisher[int]:
    """The pool of a source goes away under load."""
    pool = context.pool_of_this_round(2)
    context.feed(lambda: pool.shutdown(wait=False, cancel_futures=True))
    return Flow.from_supplier(context.opened(lambda: range(200))).subscribe_on(pool)


@scenario(elements=100, live=8)
def demand_in_small_portions(context: Context) -> Publisher[int]:
    """`limit_rate` on another thread's source."""
    return Flow.range(100).subscribe_on(context.pool(2, "A")).limit_rate(3)


@scenario(elements=100, live=8)
def a_valve(context: Context) -> Publisher[int]:
    """Closed and opened while elements pass."""
    valve = Valve()

    def turn() -> None:
        for _ in range(20):
            valve.pause()
            valve.resume()

    context.feed(turn)
    return Flow.range(100).subscribe_on(context.pool(2, "A")).pausable(valve)


@scenario(elements=None, live=8)
def a_kill_switch(context: Context) -> Publisher[int]:
    """All subscriptions are ended from outside."""
    switch = KillSwitch()
    context.feed(switch.throw)
    return Flow.range(500).subscribe_on(context.pool(2, "A")).kill_switch(switch)


@scenario(elements=None, live=8)
def what_is_too_much_is_dropped(context: Context) -> Publisher[int]:
    """`on_overflow_drop` on a source that is asked for everything."""
    return Flow.range(300).subscribe_on(context.pool(2, "A")).on_overflow_drop()


@scenario(elements=None, live=8)
def the_latest_is_kept(context: Context) -> Publisher[int]:
    """`on_overflow_latest` on a source that is asked for everything."""
    return Flow.range(300).subscribe_on(context.pool(2, "A")).on_overflow_latest()


@scenario(elements=None, live=8)
def the_oldest_is_dropped(context: Context) -> Publisher[int]:
    """`on_overflow_buffer` of 8, behind a boundary."""
    return (
        Flow.range(300)
        .subscribe_on(context.pool(2, "A"))
        .on_overflow_buffer(8, drop="oldest")
        .publish_on(context.pool(2, "B"), prefetch=2)
    )
