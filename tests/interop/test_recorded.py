"""A publisher of Java under the recorder: what it signals late is recorded, whatever the subscriber is."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import gc
from reactive_runtime.interop import jvm
from reactive_runtime.testing import Recorder, check

class Subscriber:
    __slots__ = SLOTS
    def on_subscribe(self, subscription): KEEP
    def on_next(self, element): ...
    def on_error(self, error): ...
    def on_complete(self): ...

class EndsTwice:
    def subscribe(self, subscriber):
        subscriber.on_subscribe(self)
        subscriber.on_complete()
        gc.collect()
        subscriber.on_complete()
    def request(self, n): ...
    def cancel(self): ...

jvm.start()
recorder, subscriber = Recorder(), Subscriber()
recorder.wrap(jvm.from_java(jvm.to_java(EndsTwice(), api="flow"))).subscribe(subscriber)
print([item.rule for item in check(recorder.records())])
"""


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("slots", "keep"),
    [("()", "..."), ('("__weakref__", "subscription")', "self.subscription = subscription")],
    ids=["slots", "any that keeps its subscription"],
)
def test_a_late_end_of_a_publisher_of_java_is_found(slots: str, keep: str) -> None:
    code = PROGRAM.replace("SLOTS", slots).replace("KEEP", keep)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "['1.7']\n", done.stderr
