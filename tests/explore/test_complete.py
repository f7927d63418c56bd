"""Every asynchronous operator of the package is put to the explorer somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from explore.own_code import PUBLISHERS
from explore.racing import OPERATORS, Applied
from reactive_runtime._core.drains.combinator import Combinator
from reactive_runtime._core.sources.flow_source import CombinatorSource
from reactive_runtime._operators.groups.group_flow import Given

ELSEWHERE = {
    "_AutoCoroutines": "its tasks run on the package's event loop, whose thread is none of the run's: tests/operators",
    "OfAsync": "the same",
    "_Deal": "it is behind hot sources, those of partition and balance: their races run it",
    "_Continue": "on_error_continue makes one for each element: its races run them",
    "Gated": "it is no operator, but the gate of a scope, whose calls tests/explore/own_scopes.py explores",
}
"""Combinators of which no race is made here, and why."""


SERVERS = "reactive_runtime.connect."
"""The modules whose operators wait for a server, which the explorer does not run: tests/connect has the real ones.

The claims of their elements are explored: own_acked.py.
"""


def last_of(kind: type[Any]) -> Iterator[type[Any]]:
    """The package's classes that no other one is made from: each is an operator."""
    below = [item for item in kind.__subclasses__() if item.__module__.startswith("reactive_runtime.")]
    for item in below:
        yield from last_of(item)
    if not below and not kind.__module__.startswith(SERVERS):
        yield kind


def combinators_of(flow: Any) -> Iterator[type[Combinator]]:
    """Those that it is made of, with those of its sources."""
    source = getattr(flow, "_source", None)
    if isinstance(source, CombinatorSource):
        combinator = source.make()
        yield type(combinator)
        if isinstance(combinator, Given):  # the groups', in front of what splits the source
            yield type(combinator.make())
        for item in source.sources:
            yield from combinators_of(item)


@cache
def explored() -> set[str]:
    """The combinators of all that the explorer runs."""
    flows = [Applied(operator).flow for operator in OPERATORS.values()] + [own.factory() for own in PUBLISHERS]
    return {kind.__name__ for flow in flows for kind in combinators_of(flow)}


def test_every_combinator_is_put_to_the_explorer_or_has_a_reason() -> None:
    names = explored()
    missing = {kind.__name__ for kind in last_of(Combinator)} - names - set(ELSEWHERE)
    assert not missing, (
        f"{', '.join(sorted(missing))}: add a Race or, if it has a pool, an OnPool to its operator in tests/declared"
    )
    assert set(ELSEWHERE) & names == set(), "a reason that is needed no more"
