"""Cold sources: on a thread of their own, on the threads that request, shared by many subscriptions."""

from reactive_runtime import Flow, Publisher
from reactive_runtime.stress import Rig, scenario


@scenario(elements=2_000, live=4)
def range_on_a_thread(rig: Rig) -> Publisher[int]:
    """A range, pulled on a thread of its own."""
    return Flow.range(2_000).subscribe_on(rig.pool(1, "source"))


@scenario(elements=50, live=24)
def range_on_the_callers(rig: Rig) -> Publisher[int]:
    """A range that runs on whichever thread requests: the demand counter under direct fire."""
    return Flow.range(50)


@scenario(elements=100, live=64)
def iterable_shared_by_64(rig: Rig) -> Publisher[int]:
    """One iterable, 64 subscriptions on a pool of 8."""
    return Flow.from_iterable(tuple(range(100))).subscribe_on(rig.pool(8, "shared"))


@scenario(elements=200, live=16)
def fused_steps(rig: Rig) -> Publisher[int]:
    """A generator through fused operators, run by the threads that request."""
    numbers = Flow.from_supplier(lambda: (n for n in range(1_000)))
    return numbers.map(lambda n: n + 1).filter(lambda n: n % 2).map(lambda n: n * 3).take(200)
