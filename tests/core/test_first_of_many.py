"""An operator finds the first of its parts without a search.

A dict from whose front keys were deleted keeps their places: to find its first key, one passes all of these. So n parts
that leave in order take n² / 2 steps. An OrderedDict has its first key at hand.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from reactive_runtime import Bulkhead, Flow
from reactive_runtime.hot import PublishProcessor

CODE = [
    file for folder in ("_core", "_operators", "_executors") for file in Path("reactive_runtime", folder).rglob("*.py")
]

FIRST_OF = re.compile(r"next\(iter\(self\.(\w+)")


def firsts() -> Iterator[tuple[Path, str, str]]:
    """Each file whose code takes the first key of a field, its text, and the name of the field."""
    for file in CODE:
        text = file.read_text()
        for name in FIRST_OF.findall(text):
            yield file, text, name


def test_no_field_is_a_dict_whose_first_key_is_taken() -> None:
    found = [(str(file), name) for file, text, name in firsts() if f"self.{name}: OrderedDict[" not in text]
    assert len(CODE) > 50
    assert found == []


def test_the_subscriptions_that_wait_for_a_bulkhead_are_ordered() -> None:
    limit, first = Bulkhead(1, waiting=3), PublishProcessor[int]()
    first.bulkhead(limit).subscribe(lambda _: None)
    elements: list[int] = []
    for i in range(3):
        Flow.just(i).bulkhead(limit).subscribe(elements.append)
    assert type(limit._waiting) is OrderedDict
    first.on_complete()
    assert elements == [0, 1, 2]
    assert not limit._waiting


def test_calls_that_are_done_behind_a_slow_one_come_in_order() -> None:
    others_done = Event()

    def work(i: int) -> int:
        if i == 0:
            others_done.wait()
        elif i == 99:
            others_done.set()
        return i

    with ThreadPoolExecutor(2) as pool:
        assert list(Flow.range(100).map_parallel(work, executor=pool, concurrency=100)) == list(range(100))
