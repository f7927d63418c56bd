"""The operator that reads for a consumer of JetStream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from reactive_runtime._core import garbage_collection
from reactive_runtime._core.drains.combinator import PENDING, Combinator, Elements
from reactive_runtime._core.failures.assembly import add_note
from reactive_runtime.connect._elements.acked import Claim, NotHandledError, acked
from reactive_runtime.connect._jetstream.consumer import ACK, SOON, TERM, Consumer, nak
from reactive_runtime.connect._jetstream.nats_servers import JetStreamError
from reactive_runtime.connect._jetstream.pull_session import Session

# isort: split
from nats.aio.msg import Msg

__all__ = ["Message", "Reading", "Settings"]


class Message(NamedTuple):
    """A message of a stream.

    Args:
        subject: Its subject.
        data: Its body.
        headers: Its headers; none: empty.
        sequence: Its number in the stream.
        deliveries: How often it has been delivered, this time included.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str]
    sequence: int
    deliveries: int = 1


class Settings(NamedTuple):
    """How a flow reads."""

    consumer: Consumer
    at_most: int
    refused_after: float
    max_deliveries: int | None
    dead_letters: Callable[[Message], object] | None


def message_of(raw: Msg) -> Message:
    """The message; its numbers are in the subject to reply to."""
    parts = raw.reply.split(".")
    at = 4 if len(parts) == 9 else 6  # servers of later versions put domain and account before
    return Message(raw.subject, raw.data, raw.headers or {}, int(parts[at + 1]), int(parts[at]))


class _Desk:
    """The place to settle messages. The claims have it, and its session has not: it is freed behind the last claim."""

    def __init__(self, session: Session, refused_after: float) -> None:
        self.session = session
        self.refused_after = refused_after

    def settle(self, reply: str, error: BaseException | None) -> None:
        if error is None:
            self.session.settle(reply, ACK)
        else:
            after = 0 if isinstance(error, NotHandledError) else self.refused_after
            self.session.settle(reply, nak(max(after, SOON)))

    def __del__(self) -> None:
        garbage_collection.released(self.session.abandon)


def _leave(session: Session, taken: Iterable[Msg]) -> None:
    """Messages that no subscriber has seen come again at once."""
    for raw in taken:
        session.settle(raw.reply, nak())
    session.leave()


class Reading(Combinator):
    """One subscription; the owner of its drain calls all."""

    def __init__(self, of: Settings) -> None:
        super().__init__()
        self.of = of
        self.asked = 0
        self.taken: deque[Msg] = deque()  # and not delivered

    def request(self, n: int) -> None:
        self.asked = n

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"a message of {self.of.consumer.stream!r}"

    def elements(self) -> Elements:
        yield from self.demand()
        session = Session(self.of.consumer, self.drain.heard_from)
        desk = _Desk(session, self.of.refused_after)
        try:
            while True:
                while self.taken:
                    yield from self.demand()
                    raw = self.taken[0]
                    message = message_of(raw)
                    dead = self.of.max_deliveries is not None and message.deliveries > self.of.max_deliveries
                    if dead:
                        yield from self.home()
                        self.bury(message)
                    self.taken.popleft()
                    if dead:
                        session.settle(raw.reply, TERM)
                    else:
                        yield acked(message, Claim(partial(desk.settle, raw.reply)))
                self.taken = session.take()
                if self.taken:
                    continue
                if not session.pulls() and self.drain.demanded:
                    self.asked = 0
                    self.drain.leave_note()  # the owner says how much is demanded (`request`), and comes back
                    yield PENDING
                    if self.drain.demanded and not session.pulls():
                        session.pull(min(self.asked or 1, self.of.at_most))
                yield PENDING
        except JetStreamError as error:
            raise self.fault(error)  # noqa: B904  # the same error
        finally:
            taken, self.taken = self.taken, deque()
            garbage_collection.outside(partial(_leave, session, taken))

    def bury(self, message: Message) -> None:
        """Hand over a message that was delivered too often."""
        assert self.of.dead_letters is not None
        try:
            self.call(self.of.dead_letters, message._replace(deliveries=message.deliveries - 1))
        except Exception as error:
            title = self.of.consumer.server.title
            add_note(error, f"{title}: dead_letters raised it for the message {message.sequence}")
            raise
