"""The future of `KillSwitch.throw`, where the last flow ends on one thread while another throws."""

from __future__ import annotations

from sinks import Sink

from reactive_runtime import Flow, KillSwitch
from reactive_runtime.explore import explore


class ThrownWhileItEnds:
    """One throws the switch, which ends the flow; the other cancels that."""

    def __init__(self) -> None:
        self.switch = KillSwitch()
        self.subscriber = Sink(1)
        Flow.never().kill_switch(self.switch).subscribe(self.subscriber)

    def actor_a(self) -> None:
        self.over = self.switch.throw()

    def actor_b(self) -> None:
        self.subscriber.subscription.cancel()

    def at_end(self) -> None:
        assert self.over.done()
        assert self.over.result() is None


def test_two_threads_that_find_the_last_flow_ended_settle_the_future_once() -> None:
    explore(
        ThrownWhileItEnds, strategy="bounded", bound=2, modules=["reactive_runtime._operators.backpressure"]
    ).assert_holds()
