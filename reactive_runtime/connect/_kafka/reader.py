"""One subscription to topics of Kafka: the records that are demanded, and polling while there is no demand."""

from __future__ import annotations

import weakref
from concurrent.futures import Future
from functools import partial
from typing import Final

from reactive_runtime._core.drains.combinator import PENDING, Combinator, Elements
from reactive_runtime._core.runtime import primitives
from reactive_runtime._executors.shared_clock import shared_clock
from reactive_runtime.connect._kafka.member import POLL, Member
from reactive_runtime.connect._kafka.records import Topics

# isort: split
from confluent_kafka import KafkaException

__all__ = ["Reading"]

AHEAD: Final = 100_000
"""So many elements are handed out from the first that is not handled: then wait for that one."""


class Reading(Combinator):
    """One subscription; the owner of its drain calls all."""

    def __init__(self, of: Topics) -> None:
        super().__init__()
        self.of = of
        self.member = Member(of, partial(_wake, weakref.ref(self)))
        self.asked = 0
        self.alarm: Future[None] | None = None

    def elements(self) -> Elements:
        yield from self.demand()
        yield from self.home()
        drain, member, failed = self.drain, self.member, True
        rest, now = member.rest, primitives.monotonic
        member.join()
        try:
            while True:
                yield from self.idle()
                if not rest:
                    self.asked = 0
                    drain.leave_note()  # the owner says how much is demanded (`request`), and comes back
                    yield PENDING
                    if not drain.demanded or drain.away:
                        continue
                    most = self.of.at_most
                    member.fetch(most if self.of.as_lists else min(self.asked or 1, most))
                    if not rest:
                        drain.spend()  # look again, after the others that need this thread
                while rest:
                    for element in rest[0].elements:
                        yield element
                        if not drain.demanded or now() >= member.poll_at:
                            break
                    else:
                        rest.popleft()
                        continue
                    break
        except GeneratorExit:
            failed = False
            raise
        except KafkaException as error:
            raise self.fault(self.of.cluster.named(error)) from None
        except Exception as error:
            raise self.fault(error)  # noqa: B904  # the same error
        finally:
            alarm, self.alarm = self.alarm, None
            if alarm is not None:
                alarm.cancel()
            rest.clear()
            member.leave(failed=failed)

    def idle(self) -> Elements:
        """Wait for demand, on a thread that may be kept. Meanwhile poll, and commit."""
        member = self.member
        while True:
            yield from self.home()
            if primitives.monotonic() >= member.poll_at:
                member.poll()
            if self.drain.demanded and member.offsets.held() < AHEAD:
                return
            if self.alarm is None or self.alarm.done():
                self.alarm = shared_clock().schedule(POLL, partial(_wake, weakref.ref(self)))
            yield PENDING

    def request(self, n: int) -> None:
        self.asked = n

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"a record of {self.of.cluster.title}"


def _wake(reading: weakref.ref[Reading]) -> None:
    """Have the owner look around, unless the flow is garbage. Any thread."""
    if (alive := reading()) is not None:
        alive.drain.heard_from()
