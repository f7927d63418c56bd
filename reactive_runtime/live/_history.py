"""How long each part has been still: compares this look with earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime.live._finding import live_drains
from reactive_runtime.live._reading import Node, elements_of, is_root, mark, tree
from reactive_runtime.live._threads import ThreadLook, look_at_threads

__all__ = ["MOST", "History", "Look", "look"]

MOST: Final = 1000
"""Flows that one look reads, at most."""


@dataclass(slots=True)
class Look:
    """The flows and threads at one moment."""

    at: float
    trees: list[Node] = field(default_factory=list)
    threads: dict[int, ThreadLook] = field(default_factory=dict)
    drains: list[Any] = field(default_factory=list)
    complete: bool = True

    def elements(self) -> dict[int, int]:
        """How many elements the sources of each flow have delivered, by the identity of its drain."""
        counts = {}
        for root in self.trees:
            counts_of = [n for node in root.parts() if (n := elements_of(node)) is not None]
            if counts_of:
                counts[id(root.drain)] = sum(counts_of)
        return counts


def look() -> Look:
    """Read all flows and threads. Takes no lock of a flow."""
    seen = Look(primitives.monotonic(), threads=look_at_threads(), drains=live_drains())
    for drain in seen.drains:
        if len(seen.trees) >= MOST:
            seen.complete = False
            break
        try:
            if is_root(drain):
                seen.trees.append(tree(drain))
        except (AttributeError, RuntimeError):  # it was only allocated, or a dict of it changed while it was read
            continue
    return seen


Marks = dict[Any, tuple[Any, float]]


class History:
    """How long each part and each thread has been unchanged.

    Any thread may call it, also from the handler of a signal, since it takes no lock: a call replaces the two
    dictionaries as a whole. If two calls meet, one of them is lost, and an age is shorter than it might be.
    """

    def __init__(self) -> None:
        self._marks: Marks = {}
        self._counts: tuple[float, dict[int, int]] = (0.0, {})
        self.rates: dict[int, float] = {}

    def take(self, seen: Look) -> None:
        """Compare a look with those before it, and write the ages into its nodes."""
        before, now = self._marks, seen.at
        marks: Marks = {}
        for root in seen.trees:
            for node in root.parts():
                key = (id(node.drain), id(node.pollable))
                try:
                    value = mark(node)
                except (AttributeError, RuntimeError):
                    value = (now,)
                node.seconds = now - self._since(before, marks, key, value, now)
        for ident, thread in seen.threads.items():
            thread.seconds = now - self._since(before, marks, ident, thread.call(), now)
        self._marks = marks
        then, counted = self._counts
        counts = seen.elements()
        if counted and now > then:
            self.rates = {key: (n - counted[key]) / (now - then) for key, n in counts.items() if key in counted}
        self._counts = now, counts

    @staticmethod
    def _since(before: Marks, marks: Marks, key: Any, value: Any, now: float) -> float:
        known = before.get(key)
        since = known[1] if known is not None and known[0] == value else now
        marks[key] = value, since
        return since
