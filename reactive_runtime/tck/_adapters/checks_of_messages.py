"""The checks of demand and of acknowledgements: with a server that goes on and a reader that lives."""

from __future__ import annotations

from reactive_runtime.tck._adapters.base import AdapterChecks, adapter_check
from reactive_runtime.tck._adapters.demanding_reader import Reader
from reactive_runtime.tck._adapters.description import POISON
from reactive_runtime.tck._adapters.trial import Trial
from reactive_runtime.tck._running.failures import NotVerified, described

__all__ = ["ChecksOfMessages"]

LATER = 1_000_000
"""The number of a message that the check puts in behind all others."""


class ChecksOfMessages(AdapterChecks):
    """The server counts, and the elements do."""

    @adapter_check("A.1")
    def required_demand_reaches_the_server(self, trial: Trial) -> None:
        """Demand nothing, then some, then more; look at what the server has handed out."""
        adapter, limits = trial.adapter, trial.limits
        adapter.put(range(200 + 4 * adapter.prefetch))
        reader = trial.read()
        for demand in (0, 1, 3, 7):
            if demand:
                reader.request(demand)
                trial.wait(reader, reader.asked)
            most = reader.asked + adapter.prefetch if reader.asked else 0
            if not trial.never(lambda most=most: adapter.handed_out() > most):  # type: ignore[misc]
                said = f"{reader.asked} messages were demanded, the documented prefetch is {adapter.prefetch}"
                trial.fail(f"{said}, and the server has handed out {adapter.handed_out()}")
            if reader.count > reader.asked:
                trial.fail(f"{reader.asked} messages were demanded, and {reader.count} delivered ({limits.quiet:g} s)")

    @adapter_check("A.2", of_acknowledgement=True)
    def required_nothing_is_acknowledged_before_it_is_handled(self, trial: Trial) -> None:
        """Hold ten messages, acknowledge four of them, and look whether the server keeps the others."""
        adapter = trial.adapter
        adapter.put(range(10))
        reader = trial.read(10)
        trial.wait(reader, 10)
        if not trial.never(lambda: adapter.left() < 10):
            trial.fail(f"10 messages were delivered and none handled, and the server keeps {adapter.left()} only")
        chosen = range(4) if adapter.in_order else (1, 4, 5, 8)
        elements, numbers = reader.elements, reader.numbers
        for index in chosen:
            elements[index].acknowledge()
        trial.until(lambda: adapter.left() <= 6)  # if it does not come to that, another check finds it
        if not trial.never(lambda: adapter.left() < 6):
            trial.fail(f"4 of 10 messages were acknowledged, and the server keeps {adapter.left()} only")
        held = {number for index, number in enumerate(numbers) if index not in chosen}
        trial.leave(reader)
        again = trial.read(10)
        trial.until(lambda: held <= set(again.numbers) or again.ended)
        if lost := held - set(again.numbers):
            trial.fail(f"the messages {sorted(lost)} were delivered, and not handled; they were not delivered again")

    @adapter_check("A.3", of_acknowledgement=True)
    def required_no_acknowledgement_is_lost(self, trial: Trial) -> None:
        """Acknowledge side by side, and backwards; the server keeps none, and a second reader gets none."""
        adapter = trial.adapter
        adapter.put(range(200))
        flow = adapter.open("reader", trial.pool()).map(adapter.number)
        parallel = flow.map_parallel(_same, trial.pool(4), concurrency=4, ordered=False).acknowledge()
        side_by_side = trial.subscribe(parallel, int, 200, keeps=False)
        trial.wait(side_by_side, 200)
        self._all_gone(trial, side_by_side, 200)
        adapter.put(range(200, 220))
        backwards = trial.read(20)
        trial.wait(backwards, 20)
        for element in reversed(backwards.elements):
            element.acknowledge()
        self._all_gone(trial, backwards, 20)
        adapter.put([LATER])
        second = trial.read(30)
        trial.until(lambda: second.count >= 1 or second.ended)
        if again := set(second.numbers) - {LATER}:
            trial.fail(f"the messages {sorted(again)} were acknowledged, and a second reader got them")

    def _all_gone(self, trial: Trial, reader: Reader, n: int) -> None:
        adapter = trial.adapter
        if reader.error is not None:
            trial.fail(f"{n} messages were handled, and the flow failed: {described(reader.error)}")
        if not trial.until(lambda: adapter.left() == 0):
            trial.fail(f"{n} messages were acknowledged, and the server keeps {adapter.left()} of them")
        trial.leave(reader)

    @adapter_check("A.4", of_acknowledgement=True)
    def required_each_message_is_acknowledged_once(self, trial: Trial) -> None:
        """Settle each element again and again; count at the server."""
        adapter = trial.adapter
        adapter.put(range(20))
        reader = trial.read(20)
        trial.wait(reader, 20)
        before: int | None = None
        why = ""
        try:
            before = adapter.acknowledgements()
        except NotVerified as reason:
            why = str(reason)
        for element, number in zip(reader.elements, reader.numbers, strict=True):
            if not element.acknowledge():
                trial.fail(f"message {number} was settled when it was delivered")
            if element.acknowledge() or element.refuse():
                trial.fail(f"message {number} was acknowledged, and could be settled once more")
        if before is None:
            raise NotVerified(why)
        trial.until(lambda: adapter.left() == 0)
        trial.leave(reader)
        trial.until(lambda: adapter.acknowledgements() - before >= 20)
        if not trial.never(lambda: adapter.acknowledgements() - before > 20):
            trial.fail(f"20 messages were acknowledged, and the server got {adapter.acknowledgements() - before}")
        if (counted := adapter.acknowledgements() - before) < 20:
            raise NotVerified(f"20 messages were acknowledged, and `acknowledgements` counts {counted}")

    @adapter_check("A.5", of_acknowledgement=True)
    def required_a_refused_message_comes_again(self, trial: Trial) -> None:
        """Refuse one of five, and acknowledge the others."""
        adapter = trial.adapter
        adapter.put(range(5))
        reader = trial.read(5)
        trial.wait(reader, 5)
        numbers, refused = reader.numbers, reader.numbers[2]
        for index, element in enumerate(reader.elements):
            if index == 2:
                element.refuse(ValueError("the kit refuses it"))
            else:
                element.acknowledge()
        may = numbers[2:] if adapter.in_order else [refused]
        trial.until(lambda: adapter.left() <= len(may))
        trial.leave(reader)
        again = trial.read(10)
        if not trial.until(lambda: refused in again.numbers or again.ended) or refused not in again.numbers:
            why = f": {described(again.error)}" if again.error is not None else ""
            trial.fail(f"message {refused} was refused, and not delivered again{why}")

    @adapter_check("A.8")
    def required_a_poison_message_ends_in_the_dead_letters(self, trial: Trial) -> None:
        """Handle ten messages with one among them that can't be; subscribe anew where the flow fails."""
        adapter = trial.adapter
        before = adapter.dead()
        adapter.put(range(5))
        adapter.poison()
        adapter.put(range(5, 10))
        done: set[int] = set()

        def handle(value: object) -> int:
            number = adapter.number(value)
            if number == POISON:
                raise ValueError("poison: the handler of the kit can't handle this message")
            done.add(number)
            return number

        def over() -> bool:
            if adapter.dead() == before or len(done) < 10:
                return False
            return not adapter.acknowledges or adapter.left() == 0

        failures = 0
        while not over():
            flow = adapter.handled(adapter.open("reader", trial.pool()), handle).acknowledge()
            reader = trial.subscribe(flow, int, 100)
            trial.until(lambda reader=reader: over() or reader.ended)  # type: ignore[misc]
            failures += reader.ended
            trial.leave(reader)
            if not reader.ended or failures > 20:
                break
        letters = adapter.dead() - before
        if len(done) < 10:
            trial.fail(f"beside a poison message only {sorted(done)} of 10 messages were handled")
        if letters != 1:
            trial.fail(f"1 poison message was among 10, and {letters} dead letters came")


def _same(number: int) -> int:
    return number
