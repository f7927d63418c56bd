"""Draws a pipeline the way the specification does, with the resource each part runs on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from reactive_runtime._core.sources.core_flow import Stage
from reactive_runtime._core.sources.naming import executor_name

__all__ = ["drawing"]


def drawing(parts: Sequence[Stage]) -> str:
    """Two lines, `source map(f) | filter(p) consume` over its resources, and a legend of the executors."""
    texts = [part.text for part in parts]
    texts[-1] = f"{texts[-1]} consume".strip()
    names = _names([part.executor for part in parts])
    resources = [names[id(part.executor)] if part.executor else "caller" for part in parts]
    above, below = [], []
    for text, resource in zip(texts, resources, strict=True):
        width = max(len(text), len(resource) + 4)
        above.append(text.ljust(width))
        below.append(f" {resource} ".center(width, "-"))
    lines = [" | ".join(above).rstrip(), " | ".join(below)]
    executors = {id(part.executor): part.executor for part in parts if part.executor}
    return "\n".join([*lines, *(f"{names[key]} = {executor_name(executor)}" for key, executor in executors.items())])


def _names(executors: Sequence[Executor | None]) -> dict[int, str]:
    """R1, R2 … in order of appearance."""
    names: dict[int, str] = {}
    for executor in executors:
        if executor is not None:
            names.setdefault(id(executor), f"R{len(names) + 1}")
    return names
