"""Sinks."""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import Future
from typing import assert_type

from models.running import Entry

from declared.kinds import Case, Declared, SinkCase, SinkModel, Typed, Without
from declared.modelling import PATIENCE, all_awaited, all_each, all_queued, all_run, all_written
from declared.values import awaited, ends_with_a_word, ends_with_none, f
from docs._site.recording import Example

DECLARED: Declared = {
    "subscribe": [
        SinkCase(lambda flow: flow.subscribe(int)),
        Without(Entry, "what each model reads with"),
        Example("a.subscribe(say, demand=2).request(1)", "1234|", sink=True),
    ],
    "to_future": [
        SinkCase(lambda flow: flow.to_future().result(30)),
        SinkModel(lambda flow: flow.to_future().result(PATIENCE), last=True),
        Example("a.to_future().result()", "123|", sink=True),
    ],
    "to_queue": [
        SinkCase(lambda flow: flow.to_queue(queue.SimpleQueue()).result(30)),
        SinkModel(all_queued),
        Typed(
            lambda: (
                assert_type(f.to_queue(ends_with_none), Future[None]),
                assert_type(f.to_queue(ends_with_a_word, end="over"), Future[None]),
                assert_type(f.to_queue(queue.Queue()), Future[None]),
            )
        ),
        Example("[a.to_queue(queue).result(), queue.get(), queue.get(), queue.get()]", "12|", sink=True),
    ],
    "block": [
        SinkCase(lambda flow: flow.block(timeout=30)),
        SinkModel(lambda flow: flow.block(timeout=PATIENCE), last=True),
        Example("a.block()", "123|", sink=True),
    ],
    "run": [
        SinkCase(lambda flow: flow.run(timeout=30)),
        SinkModel(all_run),
        Example("a.run()", "123|", sink=True),
    ],
    "for_each": [
        SinkCase(lambda flow: flow.for_each(int, timeout=30)),
        SinkModel(all_each),
        Example("a.for_each(say)", "123|", sink=True),
    ],
    "to_file": [
        SinkCase(all_written),
        SinkModel(all_written),
        Without(Example, "it writes a file; what it asks for is as with `for_each`"),
    ],
    "iterate": [
        SinkCase(lambda flow: list(flow.iterate(prefetch=1))),
        SinkModel(lambda flow: list(flow.iterate(prefetch=2))),
        Example("list(a.iterate(prefetch=2))", "12345|", sink=True),
    ],
    "iterate_async": [
        SinkCase(lambda flow: asyncio.run(awaited(flow.iterate_async(prefetch=1)))),
        SinkModel(all_awaited),
        Example("collected(a.iterate_async(prefetch=2))", "123|", sink=True),
    ],
    "explain": [
        SinkCase(lambda flow: flow.explain()),
        Without(Entry, "text: its doctest, and tests/core"),
        Without(Example, "gives a text; nothing is subscribed to"),
    ],
    "to_spark": [
        Without(Case, "tests/spark/test_sinks.py"),
        Without(Entry, "tests/spark"),
        Without(Example, "needs a session of Spark"),
    ],
}
