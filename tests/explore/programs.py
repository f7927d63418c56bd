"""The programs that the explorer is measured by: broken ones with their twins, and such as nothing is wrong with."""

from __future__ import annotations

from typing import Any, NamedTuple

import bugs
from bugs import ALL

from examples.hazards import lesson
from explore.own_code import PROGRAMS, PUBLISHERS, Reach
from reactive_runtime.explore import publisher_scenario


class Named(NamedTuple):
    name: str
    program: Any


def name_of(program: Any) -> str:
    return str(getattr(program, "__name__", None) or program.name)


def _numbered(programs: list[Any]) -> list[Named]:
    return [Named(f"{number:02} {name_of(program)}", program) for number, program in enumerate(programs)]


LESSONS = [lesson(name) for name in bugs.LESSONS]
BROKEN = _numbered([item.broken for item in LESSONS] + [item.broken for item in ALL])
FIXED = _numbered([item.fixed for item in LESSONS] + [item.fixed for item in ALL])
CORRECT = [
    Named(f"{own.name}, {name}", publisher_scenario(own.factory, actors, demand=1, elements=own.elements))
    for own in [publisher for publisher in PUBLISHERS if publisher.reach is Reach.WIDE][:10]
    for name, actors in PROGRAMS.items()
]
"""Fifty programs of publishers that nothing is wrong with."""
