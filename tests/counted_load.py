"""The time of a load, for tests of the command: it passes by what the load does, on a machine however slow."""

from __future__ import annotations

from typing import Final

COUNTED: Final = """
import itertools
from reactive_runtime.stress import _harness

class Counted:
    "A module of primitives in whose clock each look takes 20 ms: a round has two looks, or four."

    def __init__(self, primitives):
        self.primitives = primitives
        self.looks = itertools.count()
        self.passed = 0.0

    def monotonic(self):
        return next(self.looks) / 50 + self.passed

    def __getattr__(self, name):
        return getattr(self.primitives, name)

clock = _harness.primitives = Counted(_harness.primitives)
"""
"""Code for a file of scenarios, each of which is to have its rounds in a load of half a second.

The waits for threads take the machine's own time. `clock.passed` may be added to.
"""
