"""The checks of what goes wrong: a killed worker, a lost connection, a cancel, a backlog, a wrong password."""

from __future__ import annotations

import time
from contextlib import suppress

from reactive_runtime.tck._adapters.base import AdapterChecks, adapter_check
from reactive_runtime.tck._adapters.cancelling import idle, in_mid_element, in_mid_fetch, quietly
from reactive_runtime.tck._adapters.demanding_reader import Reader, until
from reactive_runtime.tck._adapters.memory import TRACED, tenths
from reactive_runtime.tck._adapters.secrets import PASSWORD, leaks, logged
from reactive_runtime.tck._adapters.trial import Trial
from reactive_runtime.tck._running.failures import NotVerified, described, shown

__all__ = ["ChecksOfLosses"]

OF_A_WORKER = 1_000
"""So many messages are put in where a worker is killed."""

STARTING = 60.0
"""Seconds that a process may take before its first message, at least."""

MESSAGES = 60
"""So many messages are put in where the connection is lost."""

HALF = 30
"""So many of them are handled before."""

HELD = 5
"""So many of them are delivered then, and not settled."""

PAUSE = 5
"""A flow that gives nothing for so many times `quiet` gives nothing more; the one after it has twice that time."""

RESIDENT = 16 * 2**20
"""Bytes by which the memory of the process may grow, beside those of Python's objects: the allocator keeps some."""


class ChecksOfLosses(AdapterChecks):
    """Processes, connections and clocks."""

    @adapter_check("A.6", of_acknowledgement=True)
    def required_a_killed_worker_loses_nothing(self, trial: Trial) -> None:
        """Kill a worker in another process among its messages; a second one handles the others."""
        adapter, patience = trial.adapter, max(trial.limits.patience, STARTING)
        adapter.put(range(OF_A_WORKER))
        first = trial.start("worker")
        if not first.wait(10, patience):
            first.kill()
            raise _unjudged(f"the worker has handled {len(first.numbers)} messages: {first.words}")
        first.kill()
        left = adapter.left()
        second = trial.start("worker")
        everything = set(range(OF_A_WORKER))
        until(lambda: second.numbers or second.process.poll() is not None or adapter.left() == 0, patience)
        trial.progress(
            lambda: everything <= {*first.numbers, *second.numbers} and adapter.left() == 0,
            lambda: len(second.numbers),
        )
        trial.never(lambda: len(second.numbers) > left)
        second.kill()
        if lost := everything - {*first.numbers, *second.numbers}:
            trial.fail(f"the worker was killed, and {len(lost)} messages were lost: {shown(sorted(lost))}")
        if len(second.numbers) > left:
            trial.fail(f"{left} messages were not acknowledged, and the second worker got {len(second.numbers)}")

    @adapter_check("A.7")
    def required_a_lost_connection_is_found_again(self, trial: Trial) -> None:
        """Break the connection while five messages are held; subscribe anew if the flow fails."""
        adapter, reader = trial.adapter, trial.read()
        adapter.put(range(MESSAGES))
        if not adapter.acknowledges:
            self._goes_on(trial, reader)
            return
        while reader.count < HALF:
            _handle(trial, reader, reader.count, trial.limits.quiet * PAUSE)
        reader.request(HELD)
        trial.wait(reader, HALF + HELD)
        trial.until(lambda: adapter.left() <= MESSAGES - HALF)
        confirmed = set(reader.numbers[:HALF]) if adapter.left() == MESSAGES - HALF else set[int]()
        adapter.break_connections()
        reader.request(HELD)
        if not reader.wait(HALF + HELD + 1, trial.limits.patience) and not reader.ended:
            trial.fail(f"the connection was lost, and the flow neither went on nor failed ({reader.count} came)")
        handled = set(reader.numbers[:HALF])
        held = list(zip(reader.elements, reader.numbers, strict=False))[HALF : HALF + HELD]
        for index, (element, number) in enumerate(held):
            with suppress(Exception):  # it may come too late: then the server delivers the message again
                if index >= HELD // 2:
                    element.refuse()
                elif element.acknowledge():
                    handled.add(number)
        again = self._after(trial, reader, handled)
        if lost := set(range(MESSAGES)) - handled - set(again):
            trial.fail(f"the connection was lost, and {len(lost)} messages were too: {shown(sorted(lost))}")
        if twice := confirmed & set(again):
            trial.fail(f"the connection was lost, and acknowledged messages came again: {shown(sorted(twice))}")

    def _goes_on(self, trial: Trial, reader: Reader) -> None:
        """Without acknowledgement the adapter keeps the position: the flow goes on behind it, or fails."""
        adapter = trial.adapter
        reader.request(HALF)
        trial.wait(reader, HALF)
        adapter.break_connections()
        adapter.put([MESSAGES])  # what comes behind the break comes from the server, and not from a buffer
        reader.request(MESSAGES + 1 - HALF)
        if not reader.wait(MESSAGES + 1, trial.limits.patience) and not reader.ended:
            trial.fail(f"the connection was lost, and the flow neither went on nor failed ({reader.count} came)")
        error = reader.error
        if error is not None and adapter.address not in _said(error):
            trial.fail(f"the error does not name the server ({adapter.address}): {described(error)}")
        numbers = reader.numbers
        if numbers != list(range(len(numbers))):
            trial.fail(f"the connection was lost, and the messages came out of order: {shown(numbers)}")

    def _after(self, trial: Trial, reader: Reader, handled: set[int]) -> list[int]:
        """The numbers that come after the connection was lost, to this reader, and to others after it."""
        adapter, again, skip = trial.adapter, list[int](), HALF + HELD
        pause = trial.limits.quiet * PAUSE
        over = time.monotonic() + trial.limits.patience
        while True:
            done = skip
            while (came := _handle(trial, reader, done, pause)) > done:
                done, over = came, time.monotonic() + trial.limits.patience
            again += reader.numbers[skip:]
            if handled | set(again) >= set(range(MESSAGES)) and quietly(adapter.left, 1) == 0:
                return again
            if time.monotonic() > over:
                return again
            error = reader.error
            if error is not None and adapter.address not in _said(error):
                trial.fail(f"the error does not name the server ({adapter.address}): {described(error)}")
            trial.leave(reader)
            reader, skip, pause = trial.read(), 0, 2 * pause  # it may take its time to begin

    @adapter_check("A.9")
    def required_cancel_returns_at_once(self, trial: Trial) -> None:
        """Cancel while the queue is empty, while messages come, and while one is being handled; several times each."""
        adapter, limits = trial.adapter, trial.limits
        number = 0
        for when, cancel in (("idle", idle), ("in mid-fetch", in_mid_fetch), ("in mid-element", in_mid_element)):
            best = limits.patience
            for _ in range(limits.tries):
                number += 1_000
                best = min(best, cancel(trial, number))
                if best <= limits.cancel_within:
                    break
            if best > limits.cancel_within:
                how = f"the shortest of {limits.tries} took {best * 1000:.0f} ms"
                trial.fail(f"cancel, {when}: {how}, and {limits.cancel_within * 1000:.0f} ms are allowed")
        with suppress(NotVerified):
            if not trial.until(lambda: adapter.connections() == 0):
                trial.fail(f"all flows were cancelled, and the server has {adapter.connections()} connections")

    @adapter_check("A.10")
    def required_memory_is_flat(self, trial: Trial) -> None:
        """Compare the memory behind the first tenth of a backlog with that behind the others."""
        n, growth = trial.limits.backlog, trial.limits.growth
        first, *others = tenths(trial, n)
        traced = max(tenth.traced for tenth in others) - first.traced
        resident = max(tenth.resident for tenth in others) - first.resident
        if n <= TRACED and traced > growth:
            trial.fail(f"Python's objects grew by {traced:,} bytes with {n:,} messages; {growth:,} are allowed")
        if resident > growth + RESIDENT:
            trial.fail(f"the process grew by {resident:,} bytes with {n:,} messages; {growth + RESIDENT:,} are allowed")

    @adapter_check("A.11")
    def required_no_error_has_the_password(self, trial: Trial) -> None:
        """Connect with a wrong password, and look at all that the error shows."""
        others: dict[str, object] = {}
        with logged() as log:
            try:
                flow = trial.adapter.open_with(PASSWORD).elements()
                others["repr of the flow"] = flow
                if callable(explain := getattr(flow, "explain", None)):
                    others["explanation of the flow"] = explain()
                reader = trial.subscribe(flow, trial.adapter.number, 1)
                reader.wait_for_end(trial.limits.patience)
                error = reader.error
            except NotVerified:
                raise
            except Exception as raised:
                error = raised
        if error is None:
            raise _unjudged("the flow did not fail with a wrong password")
        if found := leaks(error, log, others):
            trial.fail(f"the password is in {'; in '.join(found)}")


def _unjudged(seen: str) -> NotVerified:
    return NotVerified(f"there is nothing to judge: {seen}")


def _handle(trial: Trial, reader: Reader, done: int, pause: float) -> int:
    """Acknowledge what comes behind the first `done` elements within `pause` seconds; returns how many have come."""
    if reader.asked < done + HELD:
        reader.request(done + HELD - reader.asked)
    reader.wait(done + 1, pause)
    elements = reader.elements
    for element in elements[done:]:
        with suppress(Exception):  # it may come too late: then the server delivers the message again
            element.acknowledge()
    return len(elements)


def _said(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])
