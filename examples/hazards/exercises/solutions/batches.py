"""What was delivered is taken off: what came meanwhile stays, and the loop that finds it goes on."""

from __future__ import annotations

from examples.hazards.exercises import batches


class BatchSubscription(batches.BatchSubscription):
    """The thread that moves the demand away from zero drains."""

    def drain(self) -> None:
        batch = self.demand.get()
        while batch > 0:
            for _ in range(batch):
                if self.cancelled.get():
                    return
                self.subscriber.on_next(self.next)
                self.next += 1
            batch = self.demand.add_and_get(-batch)


class Batches(batches.Batches):
    """Endless numbers, one subscriber."""

    subscription = BatchSubscription


SOLUTION = Batches
