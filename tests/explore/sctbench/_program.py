"""The form of the programs: one class for a program and its twin, which a flag distinguishes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

from reactive_runtime.explore import Scenario

__all__ = ["Entry", "Program", "entry"]


class Program:
    """A program. Its class names the methods that are threads, in the order in which they start: so many of each."""

    threads: ClassVar[dict[str, int]] = {}

    def __init_subclass__(cls, **threads: int) -> None:
        super().__init_subclass__()
        cls.threads = threads or cls.threads

    def __init__(self, fixed: bool, threads: dict[str, int]) -> None:
        self.fixed = fixed
        """Whether this is the twin."""
        self.size = threads
        self.set_up()

    def set_up(self) -> None:
        """Make the state."""

    def at_end(self) -> None:
        """Look at the state when all threads have ended."""


class Entry(NamedTuple):
    """A program, and the same put right."""

    name: str
    broken: Scenario[Any]
    fixed: Scenario[Any]


def entry(name: str, program: type[Program], **threads: int) -> Entry:
    """The program under its name in the collection, with so many of its threads."""
    size = program.threads | threads
    both = [
        Scenario(
            partial(program, fixed, size),
            {
                f"{method}{number}" if count > 1 else method: [_thread(getattr(program, method), number)]
                for method, count in size.items()
                for number in range(count)
            },
            program.at_end,
            name=f"{name} fixed" if fixed else name,
            parts=[program],
        )
        for fixed in (False, True)
    ]
    return Entry(name, *both)


def _thread(method: Callable[..., object], number: int) -> Callable[[Any], object]:
    """A thread of a program: its method, which gets the thread's number if it takes one."""
    if len(inspect.signature(method).parameters) == 1:
        return method
    return lambda state: method(state, number)
