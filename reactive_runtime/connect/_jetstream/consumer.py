"""A durable consumer of JetStream, and what is said to the server of a message."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from reactive_runtime.connect._jetstream.nats_servers import Server

# isort: split
from nats.js import api
from nats.js import errors as js_errors

__all__ = ["ACK", "SOON", "TERM", "Consumer", "nak"]

ACK: Final = b"+ACK"
TERM: Final = b"+TERM"

SOON: Final = 0.1
"""Seconds after which a message that is refused at once comes again: this consumer may be on its way out."""


def nak(delay: float = SOON) -> bytes:
    """The refusal of a message, which comes again after so many seconds."""
    return b"-NAK" + (b' {"delay": %d}' % int(delay * 1e9) if delay else b"")


class Consumer(NamedTuple):
    """The consumer of a stream, and how to read for it."""

    server: Server
    stream: str
    name: str
    config: api.ConsumerConfig
    reconnect: float

    async def make_if_missing(self, manager: Any) -> None:
        """Make the consumer, if there is none. A JetStreamError, if there is one of another kind."""
        try:
            found = (await manager.consumer_info(self.stream, self.name)).config
        except js_errors.NotFoundError:
            await manager.add_consumer(self.stream, self.config)
            return
        if found.deliver_subject or found.ack_policy != api.AckPolicy.EXPLICIT:
            self.server.fail(
                f"the consumer {self.name!r} is there, and is none that pulls and acknowledges each message"
            )
