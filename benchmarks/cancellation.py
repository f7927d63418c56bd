"""Signals after a cancel, and what it leaves behind: all scenarios, by kind of publisher, as docs have it.

python benchmarks/cancellation.py [--seconds 120]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from rich.markup import escape
from side_by_side import console

from reactive_runtime import hooks
from reactive_runtime.stress import Load, Result, find, run
from reactive_runtime.testing import Chunk, Record, Recorder, Signal

SIGNALS = {Signal.ON_SUBSCRIBE, Signal.ON_NEXT, Signal.ON_ERROR, Signal.ON_COMPLETE}


class Cancels:
    """The signals that began after the first cancel had returned, and how long they came; by where it came from."""

    def __init__(self) -> None:
        self.late: dict[str, list[int]] = {"own": [], "other": []}
        self.silence: list[int] = []  # ns

    def add(self, records: list[Record]) -> None:
        """All of one subscription."""
        records.sort(key=lambda item: item.begin)
        ended = [record for record in records if record.signal == Signal.CANCEL and record.end is not None]
        if not ended:
            return
        cancel = min(ended, key=lambda item: item.end or 0)
        before = [record for record in records if record.signal in SIGNALS and record.begin < cancel.begin]
        inside = (
            any(item.end is None or item.end > cancel.begin for item in before) and before[-1].thread == cancel.thread
        )
        late = [record for record in records if record.signal in SIGNALS and record.begin > (cancel.end or 0)]
        self.late["own" if inside else "other"].append(len(late))
        self.silence.append(max((item.begin_ns - (cancel.end_ns or 0) for item in late), default=0))


def percentile(values: list[int], p: float) -> int:
    """0 where there are none."""
    return sorted(values)[min(len(values) - 1, int(p * len(values)))] if values else 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120.0)
    seconds = parser.parse_args().seconds
    hooks.set_handler(lambda _: None)
    scenarios = find("stress")
    kinds = {scenario.name: Path(scenario.file).stem.replace("_", " ") for scenario in scenarios}
    chunks: list[Chunk] = []
    recorder = Recorder("cancels", chunks.append)
    cancels: dict[str, Cancels] = defaultdict(Cancels)

    def take(_: Result) -> None:
        recorder.flush()
        taken = chunks[:]
        del chunks[: len(taken)]
        of: dict[int, list[Record]] = defaultdict(list)
        for chunk in taken:
            for row in chunk.rows:
                record = recorder.record_of(chunk.thread, row)
                of[record.subscription].append(record)
        for records in of.values():
            if (kind := kinds.get(records[0].scenario)) is not None:
                cancels[kind].add(records)

    result = run(scenarios, Load(12, seconds, 1), recorder, take)
    head: tuple[str, ...] = ("publishers", "cancels", "signals after it, at most: own thread", "another thread")
    head += ("cancel → silence, p99", "at most", "pools idle, at most", "iterators closed, at most", "subscribers kept")
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for kind, found in cancels.items():
        left = [metric for name, metric in result.cancellation_metrics.items() if kinds[name] == kind]
        idle = max((s for rest in left for s in rest.idle), default=0.0)
        closed = [s for rest in left for s in rest.closed]
        cells = (
            kind,
            f"{len(found.silence):,}",
            str(max(found.late["own"], default=0)),
            str(max(found.late["other"], default=0)),
            f"{percentile(found.silence, 0.99) / 1e6:.2f} ms",
            f"{max(found.silence, default=0) / 1e6:.1f} ms",
            f"{1e3 * idle:.1f} ms",
            f"{1e3 * max(closed):.1f} ms" if closed else "-",
            f"{sum(rest.kept for rest in left)} of {sum(rest.subscribers for rest in left):,}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    console.print(escape("\n".join(lines)), soft_wrap=True)


if __name__ == "__main__":
    main()
