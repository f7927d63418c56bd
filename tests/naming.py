"""Calls every public method and function of the package with wrong arguments, one at a time; see `core/test_naming.py`.

Valid arguments are made from what the parameters are called and how they are annotated, so that a new method is tried
without being listed. Where that is not enough, `VALID` has a value by hand.
"""

from __future__ import annotations

import inspect
import itertools
import math
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

from reactive_runtime import (
    Bulkhead,
    CircuitBreaker,
    Flow,
    KillSwitch,
    Listener,
    Metrics,
    Valve,
    executors,
    hot,
    subscribers,
)
from reactive_runtime.executors import VirtualTimeExecutor

__all__ = ["SKIPPED", "WRONG", "Called", "calls", "wrong_calls"]

POOL = ThreadPoolExecutor(1)
WRONG: list[Any] = [0, -1, None, "wrong", 1.5, True, math.nan, object(), int]

VALID: dict[str, Any] = {
    "executor": POOL,
    "clock": VirtualTimeExecutor(),
    "switch": KillSwitch(),
    "valve": Valve(),
    "bulkhead": Bulkhead(1),
    "breaker": CircuitBreaker(),
    "listener": Listener(),
    "metrics": Metrics(),
    "queue": queue.SimpleQueue(),
    "publisher": Flow.empty(),
    "source": Flow.empty(),
    "other": Flow.empty(),
    "others": Flow.empty(),
    "sources": Flow.empty(),
    "sampler": Flow.empty(),
    "future": Future(),
    "elements": (),
    "iterable": (),
    "error": OSError(),
    "classes": OSError,
    "path": "LICENSE",
    "overflow": "oldest",
    "drop": "oldest",
    "resource": nullcontext,
    "default": 1,
    "initial": 1,
    "label": "label",
    "name": "name",
    "description": "text",
}
"""Values by the name of a parameter."""


class Called:
    """A public callable, with valid arguments for all its parameters."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        self.parameters = [each for each in parameters if each.kind is not each.VAR_KEYWORD]

    def __str__(self) -> str:
        return self.name

    def call(self, wrong: str | None = None, value: object = None) -> object:
        """Call it, with `value` for the parameter `wrong`."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for each in self.parameters:
            given = value if each.name == wrong else valid(each)
            if given is _LEAVE_OUT:
                continue
            if each.kind is each.KEYWORD_ONLY:
                named[each.name] = given
            else:
                positional.append(given)
        return self.function(*positional, **named)


_LEAVE_OUT = object()


def valid(parameter: inspect.Parameter) -> object:
    """A valid argument."""
    if parameter.default is not parameter.empty and parameter.kind is parameter.KEYWORD_ONLY:
        return _LEAVE_OUT
    annotation = str(parameter.annotation)
    if annotation == "Metrics":
        return VALID["metrics"]
    if parameter.name in VALID:
        return VALID[parameter.name]
    if "Callable" in annotation:
        return lambda *arguments: 1
    if "float" in annotation:
        return 1.0
    if "int" in annotation:
        return 1
    if "str" in annotation:
        return "text"
    if "Publisher" in annotation or "Flow" in annotation:
        return Flow.empty()
    return 1


SKIPPED = {
    "from_dataframe", "from_stream", "to_spark",  # their own tests have a session
    "block", "run", "for_each", "to_file", "to_future", "to_queue", "subscribe", "iterate", "iterate_async", "explain",
}  # fmt: skip
"""Not called with valid arguments here: they run the flow."""


def calls() -> Iterator[Called]:
    """Everything public that takes arguments."""
    flow = Flow.range(3)
    connectable = flow.publish()
    parallel = flow.parallel(2)
    for owner in (flow, connectable, parallel):
        for name in dir(type(owner)):
            if name.startswith("_") or (owner is not flow and hasattr(Flow, name)):
                continue
            yield Called(name, getattr(owner, name))
    for module in (hot, executors, subscribers):
        for name in module.__all__:
            item = getattr(module, name)
            if inspect.isclass(item) and item not in NOT_CALLED:
                yield Called(name, item)


NOT_CALLED = (hot.EmitResult, executors.Clock)
"""Classes that no program calls."""


def wrong_calls(called: Called) -> Iterator[tuple[str, object, BaseException]]:
    """Each parameter with each wrong value, and what was raised."""
    for parameter, value in itertools.product(called.parameters, WRONG):
        try:
            made = called.call(parameter.name, value)
        except Exception as error:
            yield parameter.name, value, error
        else:
            close = getattr(made, "shutdown", None)
            if close is not None:
                close()
