"""One subscription to a Redis stream, as a consumer of a group.

The problem: a group's reader fetches a hundred entries in advance, and a reader that dies takes them along: they stay
pending until another consumer claims them, and an entry that kills its readers kills one after the other.

The answer: fetch as many entries as are demanded. Acknowledge in batches, in one packet with the next fetch. Read first
what this consumer has left pending, and then what others have. Count deliveries: an entry that has come twice is
fetched alone, so that of those that come together only the one that kills is counted on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from reactive_runtime._core.drains.combinator import PENDING, Combinator, Elements
from reactive_runtime._core.failures.assembly import add_note
from reactive_runtime._core.runtime import primitives
from reactive_runtime.connect._elements.acked import acked
from reactive_runtime.connect._elements.acks import Acks
from reactive_runtime.connect._redis.server import Server, fields_of, leave, text_of

# isort: split
import redis
from redis.exceptions import OutOfMemoryError

__all__ = ["Group", "Message", "Reading"]

ONE_READ: Final = 0.05
"""Seconds that one fetch waits at the server; then the thread looks for a cancel, and sends acknowledgements."""

ACKS: Final = 1_000
"""Acknowledgements in one command, at most: the server does nothing else meanwhile."""


class Message(NamedTuple):
    """An entry of a stream.

    Args:
        id: Its id, as "1700000000000-0".
        fields: Its fields and values: bytes, or str where the URL says `decode_responses=true`. Of a field that the
            entry has twice, the last value.
        deliveries: How often it has been delivered, this time included.
    """

    id: str
    fields: Mapping[Any, Any]
    deliveries: int = 1


_new: Final = tuple.__new__
"""Makes a `Message` in a third of the time of a call of the class."""


class Group(NamedTuple):
    """The stream, and the settings of its reader."""

    server: Server
    stream: str
    group: str
    consumer: str
    start: str
    at_most: int
    claim_after: float | None
    max_deliveries: int | None
    dead_letters: Callable[[Message], object] | None


class _Again(NamedTuple):
    """An entry that has been delivered before."""

    id: Any
    idle: int  # milliseconds
    times: int


class Reading(Combinator):
    """One subscription; the owner of its drain calls all but `news` and `late`."""

    def __init__(self, of: Group) -> None:
        super().__init__()
        self.of = of
        self.client: Any  # a `redis.Redis`; set before the first entry is read
        self.acks = Acks(self.news, self.late)
        self.asked = 0
        self.sent_at = 0.0  # when acknowledgements were sent last
        self.own: str | None = "-"  # where to look for its own pending entries; None: they are all found
        self.claim_at = 0.0
        self.claim_from: Any = "0-0"
        self.left: deque[_Again] = deque()

    def elements(self) -> Elements:
        yield from self.demand()
        yield from self.home()
        drain, acks, self.client = self.drain, self.acks, self.of.server.client()
        failed: Exception | None = None
        try:
            self.make_group()
            while True:
                yield from self.idle()
                self.asked = 0
                drain.leave_note()  # the owner says how much is demanded (`request`), and comes back
                yield PENDING
                if not drain.demanded or drain.away:
                    continue
                messages = self.fetch(min(self.asked or 1, self.of.at_most))
                if not messages:
                    drain.spend()  # look again, after the others that need this thread
                for id, claim in acks.claims(messages).items():
                    if not self.drain.demanded:
                        yield from self.idle()
                    elif primitives.monotonic() - self.sent_at > ONE_READ:
                        self.exchange()
                    yield acked(messages[id], claim)
        except Exception as error:
            failed = error
            raise self.fault(error)  # noqa: B904  # the same error
        finally:
            self.finish(failed)

    def idle(self) -> Elements:
        """Wait for demand, on a thread that may be kept. Meanwhile send the acknowledgements that come."""
        while True:
            yield from self.home()
            if self.drain.demanded:
                return
            self.exchange()
            yield PENDING

    def request(self, n: int) -> None:
        self.asked = n

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"an entry of {self.of.stream!r}"

    def news(self) -> None:
        """There is something to acknowledge: send it, if no fetch will. Any thread."""
        self.drain.heard_from()

    def late(self, id: Any) -> None:
        """Acknowledge an entry after the end. Any thread."""
        with self.of.server.named():
            self.client.execute_command("XACK", self.of.stream, self.of.group, id)
            leave(self.client)

    def finish(self, failed: Exception | None) -> None:
        """Send the last acknowledgements, and leave."""
        try:
            while not self.acks.end(lose=isinstance(failed, redis.TimeoutError)):
                self.exchange()
        except redis.RedisError:
            self.acks.end(lose=True)
            if failed is None:
                raise
        finally:
            leave(self.client)

    # -- the server ------------------------------------------------------------------------------------------------

    def exchange(self, *commands: tuple[Any, ...]) -> list[Any]:
        """Send the acknowledgements, and behind them, in the same packet, `commands`. Returns their answers."""
        of = self.of
        handled = self.acks.take()
        self.sent_at = primitives.monotonic()
        try:
            with of.server.named():
                if len(commands) == 1 and not handled:
                    return [self.client.execute_command(*commands[0])]
                with self.client.pipeline(transaction=False) as pipe:
                    for at in range(0, len(handled), ACKS):
                        pipe.execute_command("XACK", of.stream, of.group, *handled[at : at + ACKS])
                    for command in commands:
                        pipe.execute_command(*command)
                    answers: list[Any] = pipe.execute()
                    return answers[len(answers) - len(commands) :]
        except BaseException:
            self.acks.put(handled)  # to send them twice does no harm
            raise

    def make_group(self) -> None:
        try:
            self.exchange(("XGROUP", "CREATE", self.of.stream, self.of.group, self.of.start, "MKSTREAM"))
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error) and not (isinstance(error, OutOfMemoryError) and self.has_group()):
                raise

    def has_group(self) -> bool:
        """Whether the group is there: a server whose memory is full does not say so when it is to make one."""
        try:
            self.exchange(("XPENDING", self.of.stream, self.of.group))
        except redis.ResponseError:
            return False
        return True

    def fetch(self, n: int) -> dict[Any, Message]:
        """Entries, `n` at most: first its own from before, then what others have left, then new ones."""
        of = self.of
        if not self.left:
            self.look(n)
        if self.left:
            return self.again(n)
        wait = () if self.claims() else ("BLOCK", max(int(min(ONE_READ, of.server.patience / 2) * 1000), 1))
        reader = ("XREADGROUP", "GROUP", of.group, of.consumer)
        [answer] = self.exchange((*reader, "COUNT", n, *wait, "STREAMS", of.stream, ">"))
        if not answer:
            return {}
        entries = next(iter(answer.values())) if isinstance(answer, dict) else answer[0][1]
        return {id: _new(Message, (text_of(id), fields_of(flat), 1)) for id, flat in entries}

    def claims(self) -> bool:
        return self.of.claim_after is not None and primitives.monotonic() >= self.claim_at

    def look(self, n: int) -> None:
        """Find entries that have been delivered before, to this consumer or to one that has left them behind."""
        of = self.of
        asked = ("XPENDING", of.stream, of.group)
        found: list[Any] = []
        if self.own is not None:
            [found] = self.exchange((*asked, self.own, "+", n, of.consumer))
            self.own = f"({text_of(found[-1][0])}" if found else None
        elif of.claim_after is not None and self.claims():
            claim = ("XAUTOCLAIM", of.stream, of.group, of.consumer, int(of.claim_after * 1000))
            [answer] = self.exchange((*claim, self.claim_from, "COUNT", n, "JUSTID"))  # which counts no delivery
            self.claim_from = answer[0]
            if text_of(self.claim_from) == "0-0":
                self.claim_at = primitives.monotonic() + of.claim_after / 2
            claimed = self.acks.not_open(answer[1])
            found = [entry for [entry] in self.exchange(*((*asked, id, id, 1, of.consumer) for id in claimed)) if entry]
        self.left.extend(_Again(id, idle, times) for id, _, idle, times in found)

    def again(self, n: int) -> dict[Any, Message]:
        """Read entries that have been delivered before. One that has come twice is read alone: it may be a killer."""
        of, left = self.of, self.left
        taken = [left.popleft()]
        while left and len(taken) < n and taken[0].times < 2 and left[0].times < 2:
            taken.append(left.popleft())
        times = {entry.id: entry.times for entry in taken}
        idle = min(entry.idle for entry in taken)  # of one that another consumer has claimed meanwhile it is less
        [answer] = self.exchange(("XCLAIM", of.stream, of.group, of.consumer, idle, *times))
        entries = [entry for entry in answer if entry]  # MAXLEN may have removed some
        messages = {id: Message(text_of(id), fields_of(flat), times[id] + 1) for id, flat in entries}
        return {id: message for id, message in messages.items() if not self.is_dead(id, message)}

    def is_dead(self, id: Any, message: Message) -> bool:
        """Whether it has been delivered too often; if so, hand it over."""
        of = self.of
        if of.max_deliveries is None or of.dead_letters is None or message.deliveries <= of.max_deliveries:
            return False
        try:
            self.call(of.dead_letters, message._replace(deliveries=message.deliveries - 1))
        except Exception as error:
            add_note(error, f"{of.server.title}: dead_letters raised it for the entry {message.id}")
            raise
        self.acks.put([id])
        return True
