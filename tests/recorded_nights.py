"""Runs as the harness records them, of days that a test names."""

from __future__ import annotations

from pathlib import Path

from sinks import Sink

from reactive_runtime import Flow
from reactive_runtime.testing.trace import TraceWriter

__all__ = ["night"]


def night(folder: Path, name: str, day: int, elements: tuple[int, ...] = (1, 2, 3), files: int = 1) -> Path:
    """A run of that day, of one flow; it breaks `order` where an element is smaller than the one before."""
    writer = TraceWriter(folder, name)
    for _ in range(files):
        writer.recorder().wrap(Flow.from_iterable(elements), "numbers", ascending=True).subscribe(Sink())
        writer.flush()
    load = {"numbers": {"rounds": 1, "signals": 9, "seconds": 0.5}}
    writer.close({"started": f"2026-11-{day:02}T02:15:00+00:00", "machine": "here", "load": load})
    return writer.path
