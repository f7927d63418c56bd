"""Asynchronous boundaries: the pipeline of the specification, its links recorded or left as they are."""

from reactive_runtime import Flow, Publisher
from reactive_runtime.stress import Rig, scenario


@scenario(elements=1_000, live=4)
def three_executors(rig: Rig) -> Publisher[int]:
    """A | B | C with three executors."""
    a, b, c = (rig.pool(2, name) for name in "ABC")
    source = Flow.range(1_000).subscribe_on(a).map(lambda n: n + 1)
    return source.publish_on(b, prefetch=16).map(lambda n: n * 2).publish_on(c, prefetch=16)


@scenario(elements=500, live=4)
def three_executors_recorded(rig: Rig) -> Publisher[int]:
    """A | B | C, every link recorded: our own subscribers have to keep 2.7."""
    a, b, c = (rig.pool(2, name) for name in "ABC")
    first = rig.link(Flow.range(500).subscribe_on(a), elements=500)
    second = rig.link(first.publish_on(b, prefetch=8).map(lambda n: n * 2), elements=500)
    return second.publish_on(c, prefetch=8)
