"""An element in a part of the flow that may fail: whether it is settled by its result, or as a dead letter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reactive_runtime._core.runtime import primitives
from reactive_runtime._operators.resilience.dead_letters import DeadLetter
from reactive_runtime.connect._elements.acked import Acked, not_handled

__all__ = ["Attempts"]


class Attempts:
    """The attempts of a part with one element; the last one counts.

    Args:
        element: The element.
        to: Takes its dead letter.
        wanted: Which errors make a dead letter of it.
    """

    def __init__(
        self, element: Acked[Any], to: Callable[[DeadLetter], object], wanted: Callable[[Exception], object]
    ) -> None:
        self._element = element
        self._to = to
        self._wanted = wanted
        self._lock = primitives.Lock()
        self._last: object = None  # _lock; the attempt that counts
        self._error: BaseException | None = None  # _lock; what it was refused with
        self._over: bool = False  # _lock; final: there will be no other attempt

    def begin(self, element: Acked[Any]) -> Acked[Any]:
        """The element for one attempt."""
        attempt = object()
        with self._lock:
            self._last, self._error = attempt, None

        def settle(error: BaseException | None) -> None:
            if error is None:
                self._element.acknowledge()
                return
            with self._lock:
                if self._last is not attempt:
                    return
                self._error = error
                over = self._over
            if over:
                self._element.refuse(error)

        return Acked(element.value, settle)

    def wanted(self, error: Exception) -> object:
        """Whether it makes a dead letter; otherwise the element is refused."""
        try:
            answer = self._wanted(error)
        except BaseException as raised:
            self._element.refuse(raised)
            raise
        if not answer:
            self._element.refuse(error)
        return answer

    def dead_letter(self, letter: DeadLetter) -> None:
        """Hand it over, and acknowledge the element."""
        try:
            self._to(replace(letter, element=self._element.value))
        except BaseException as raised:
            self._element.refuse(raised)
            raise
        self._element.acknowledge()

    def refuse(self, error: BaseException | None) -> None:
        """There has been no attempt, and will be none. None: there has been one."""
        if error is not None:
            self._element.refuse(error)

    def over(self, way: str) -> None:
        """The part has ended."""
        with self._lock:
            self._over, error = True, self._error
            if error is None and self._last is None:
                error = not_handled()  # the part has not asked for it
        if error is not None:
            self._element.refuse(error)
