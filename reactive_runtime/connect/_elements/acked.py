"""Elements with acknowledgement: what an element owes to the system it came from.

The problem: a server gives a message to a program, and keeps it until the program says that the message is handled.
On its way the message becomes other elements: a function maps it, a batch takes it in, an inner flow makes ten of it.

The answer: each element carries a claim, the right to settle its message. A claim is settled once: acknowledged or
refused. An operator hands a claim on to the element that it makes; it splits a claim into parts, or joins claims:

    source --claim--> map ==> the same claim, another value
                      flat_map ==> parts; the claim is settled when all parts are
                      batch ==> one claim, which settles all

Guarantees: a claim calls what it was made with at most once, on the thread that settles it first (or settles the last
part), and under no lock. A message with parts is acknowledged if all parts are; otherwise it is refused, with the error
of the first part that was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import ReactiveError

__all__ = ["Acked", "Claim", "NotHandledError", "Parts", "acked", "claim_of", "joined", "not_handled"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")

Settle = Callable[[BaseException | None], object]
"""Takes None for "handled", or the error for "refused"."""


class NotHandledError(ReactiveError):
    """The reason of a refusal where no error is known: the element was discarded, as at a cancel."""


def not_handled() -> NotHandledError:
    """The error of an element that was discarded."""
    return NotHandledError("the element was dropped before it was handled")


class Claim:
    """The right to settle one message, or one part of it, once.

    Args:
        settle: Called once: with None, or with the error.
    """

    __slots__ = ("_lock", "_settle")

    def __init__(self, settle: Settle) -> None:
        self._lock = primitives.Lock()
        self._settle: Settle | None = settle  # _lock; None: it is settled

    def settle(self, error: BaseException | None) -> bool:
        """Settle it. Returns False, and does nothing, if it is settled already."""
        with self._lock:
            settle, self._settle = self._settle, None
        if settle is None:
            return False
        settle(error)
        return True

    @property
    def settled(self) -> bool:
        """Whether it is settled."""
        with self._lock:
            return self._settle is None


class Parts:
    """The parts of a claim: it is settled when all of them are.

    Args:
        settle: Called once, when no part is open: with None if all were acknowledged, or with the first error.
    """

    __slots__ = ("_error", "_lock", "_open", "_settle")

    def __init__(self, settle: Settle) -> None:
        self._lock = primitives.Lock()
        self._open: int = 0  # _lock
        self._error: BaseException | None = None  # _lock; the first
        self._settle = settle

    def part(self) -> Claim:
        """One more part. Only while a part is open, or before the first."""
        with self._lock:
            self._open += 1
        return Claim(self._over)

    def _over(self, error: BaseException | None) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
            self._open -= 1
            last, error = not self._open, self._error
        if last:
            self._settle(error)


def _settle_each(claims: Sequence[Claim], error: BaseException | None) -> None:
    failed: Exception | None = None
    for claim in claims:
        try:
            claim.settle(error)
        except Exception as raised:  # the others are settled too
            failed = failed or raised
    if failed is not None:
        raise failed


def joined(claims: Sequence[Claim]) -> Claim:
    """A claim that settles them all."""
    return claims[0] if len(claims) == 1 else Claim(partial(_settle_each, claims))


class Acked(Generic[T_co]):
    """An element whose source wants to know whether it has been handled.

    Args:
        value: The element itself.
        settle: Called once, with None when the element has been acknowledged, or with the error when it has been
            refused. It should be quick: it runs on the thread that acknowledges. An error that it raises goes to the
            one who acknowledges.

    Raises:
        TypeError: `settle` cannot be called.

    Thread:
        Any thread may acknowledge or refuse, once or often, also several at once: the first call counts.

    Example:
        >>> element = Acked("order 7", lambda error: print("refused" if error else "acknowledged"))
        >>> element.acknowledge(), element.acknowledge()
        acknowledged
        (True, False)

    Origin:
        `Message` of MicroProfile Reactive Messaging, with `ack` and `nack`.
    """

    __slots__ = ("claim", "value")  # both set once; `claim` is for operators

    value: T_co
    """The element itself."""

    def __init__(self, value: T_co, settle: Settle) -> None:
        self.value = value
        self.claim: Claim = Claim(check_callable("Acked", "settle", settle))

    def acknowledge(self) -> bool:
        """Tell the source that the element has been handled.

        Returns:
            True if this call has settled it. False if it was acknowledged or refused before.
        """
        return self.claim.settle(None)

    def refuse(self, error: BaseException | None = None) -> bool:
        """Tell the source that the element has not been handled. Most sources deliver it again.

        Args:
            error: Why not; None: a `NotHandledError`.

        Returns:
            True if this call has settled it. False if it was acknowledged or refused before.
        """
        return self.claim.settle(not_handled() if error is None else error)

    @property
    def settled(self) -> bool:
        """Whether it has been acknowledged or refused."""
        return self.claim.settled

    def with_value(self, value: R) -> Acked[R]:
        """Another element that stands for the same message: whichever of the two is settled first settles both.

        Args:
            value: Its value.

        Returns:
            The element.
        """
        return acked(value, self.claim)

    def __repr__(self) -> str:
        return f"Acked({shown(self.value)}{', settled' if self.settled else ''})"


_new: Final = object.__new__
"""Makes an element in half of the time of a call of its class."""


def acked(value: R, claim: Claim) -> Acked[R]:
    """An element with this claim."""
    made: Acked[R] = _new(Acked)
    made.value = value
    made.claim = claim
    return made


claim_of: Final[Callable[[Acked[Any]], Claim]] = attrgetter("claim")
"""The claim of an element. It has no frame of Python: each element comes through here."""
