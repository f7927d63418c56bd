"""A process that puts scenarios under load, and hands what it records to the process that started it.

It needs nothing but the standard library, so that any interpreter will do. It reads its order, a line of JSON, and
writes lines of JSON: chunks as they fill, with what is known of the subscriptions that are new; every second, up to
which ticket nothing is missing, with the calls under way; last, its result. A slow reader slows the load down: a full
pipe makes the writer wait. SIGTERM ends the load after the round; SIGINT is for the process that started this one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.this_process import on_sigterm, only_here
from reactive_runtime.errors import ReactiveError
from reactive_runtime.stress._declaring import Scenario, find
from reactive_runtime.stress._faults import planted
from reactive_runtime.stress._harness import Failure, Load, run
from reactive_runtime.testing._buffers import Chunk
from reactive_runtime.testing._recorder import Recorder
from reactive_runtime.testing._records import to_large

__all__ = ["main"]

LOOK_SECONDS: Final = 1.0
"""Between two words on up to where nothing is missing."""


def rows_of(chunk: Chunk) -> list[tuple[Any, ...]]:
    """Its rows, as JSON can have them: not every int of more than 64 bits can be written there."""
    return [(*row[:7], to_large(row[7]) or row[7], *row[8:]) for row in chunk.rows]


def main() -> None:
    """Do what the order on standard input says."""
    stop = primitives.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    on_sigterm(stopped := lambda *_: stop.set())
    order = json.loads(sys.stdin.readline())
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what scenarios print, and what they start, is not for the pipe
    lock = primitives.Lock()  # of the pipe, and of `sent`
    sent = 0

    def say(line: dict[str, Any]) -> None:
        pipe.write(json.dumps(line) + "\n")
        pipe.flush()

    def sink(chunk: Chunk) -> None:
        say_of({"thread": chunk.thread, "rows": rows_of(chunk)})

    def say_of(line: dict[str, Any]) -> None:
        nonlocal sent
        with lock:
            new = recorder.subscriptions[sent:]
            sent += len(new)
            say({"metadata": [asdict(item) for item in new], **line})

    over = primitives.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            if (seen := recorder.checkpoint()) is not None:
                say_of({"ticket": seen.ticket, "under_way": seen.under_way})

    recorder = Recorder("worker", sink)
    try:
        with only_here():
            scenarios, missing = _found(order["where"], order["names"])
        on_sigterm(stopped)  # a scenario file may have set a handler of its own
        load = Load(order["threads"], order["seconds"], order["seed"])
        looking = primitives.Thread(target=look, name="up to where", daemon=True)
        looking.start()
        with planted(order["fault"]) if order["fault"] else nullcontext():
            result = run(scenarios, load, recorder, lambda _: stop.is_set())
        over.set()
        looking.join()
        recorder.flush()
        result.failures += missing
    except ReactiveError as error:
        say({"unable": str(error)})
        return
    with lock:
        say(
            {
                "failures": [asdict(failure) for failure in result.failures],
                "rounds": result.rounds,
                "subscriptions": result.subscriptions,
                "seconds": result.seconds,
                "signals": result.signals,
                "load": {name: item.facts() for name, item in result.load.items()},
                "dropped": dict(result.dropped),
                "cut_short": result.cut_short,
                "leaving": {
                    name: asdict(metric) for name, metric in result.cancellation_metrics.items() if metric.idle
                },
            }
        )


def _found(where: str, names: list[str]) -> tuple[list[Scenario], list[Failure]]:
    """Those scenarios; and of each that is not there, since this interpreter can't import its file, a word on that."""
    errors: list[str] = []
    found = {item.name: item for item in find(where, skipped=lambda _, error: errors.append(str(error)))}
    why = "; ".join(errors) or "it is not there"
    return [found[name] for name in names if name in found], [Failure(name, why) for name in names if name not in found]


if __name__ == "__main__":
    main()
    os._exit(0)  # what is stuck would keep it
