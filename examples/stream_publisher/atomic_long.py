"""Java's AtomicLong: 64 bits, which wrap. Python's own ints grow, so the pitfall of step 7 has to be put back."""

from __future__ import annotations

from reactive_runtime.atomics import AtomicInteger


def wrapped(n: int) -> int:
    """`n` as 64 bits have it: 2^63 is -2^63."""
    return (n + 2**63) % 2**64 - 2**63


class AtomicLong:
    """An integer of 64 bits, changed in one step."""

    def __init__(self) -> None:
        self._value = AtomicInteger(0)

    def get(self) -> int:
        return self._value.get()

    def get_and_add(self, n: int) -> int:
        while True:
            before = self._value.get()
            if self._value.compare_and_set(before, wrapped(before + n)):
                return before

    def compare_and_set(self, expected: int, new: int) -> bool:
        return self._value.compare_and_set(expected, wrapped(new))
