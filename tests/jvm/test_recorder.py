"""A recorder between a publisher of Java and a subscriber of Java: what comes late is recorded, and nothing is kept."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from sinks import until

from reactive_runtime.hooks import captured
from reactive_runtime.testing import Recorder, check


class Source:
    """Signals as a test says, also late; as a publisher of Java it is behind the bridge twice."""

    subscriber: Any

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def complete(source: Source, subscriber: Any) -> None:
    source.subscriber.on_complete()


def fail(source: Source, subscriber: Any) -> None:
    source.subscriber.on_error(OSError("no disk"))


def cancel(source: Source, subscriber: Any) -> None:
    subscriber.cancel()


OVER = [(complete, {"1.7"}), (fail, {"1.7"}), (cancel, {"1.8"})]


@pytest.mark.parametrize("collected", [True, False], ids=["collected", "held"])
@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize(("over", "rules"), OVER, ids=lambda item: getattr(item, "__name__", ""))
def test_what_java_signals_java_late_is_recorded_and_no_subscriber_is_kept(
    jvm: Any, over: Callable[[Source, Any], None], rules: set[str], times: int, collected: bool
) -> None:
    import jpype

    recorder, source = Recorder(), Source()
    publisher = jvm.from_java(jvm.to_java(source))
    for _ in range(times):
        publisher = recorder.wrap(publisher)
    subscriber = jpype.JClass("reactive_runtime.Keeper")()
    jvm.to_java(publisher).subscribe(subscriber)
    source.subscriber.on_next(1)
    assert [int(item) for item in subscriber.elements] == [1]
    over(source, subscriber)
    left = jpype.JClass("java.lang.ref.WeakReference")(subscriber)
    if collected:
        del subscriber

        def is_gone() -> bool:
            gc.collect()
            jpype.JClass("java.lang.System").gc()
            return left.get() is None

        until(is_gone)
    with captured() as dropped:
        for late in (2, 3):
            source.subscriber.on_next(late)
    records = recorder.records()
    for number in range(times):
        mine = [record for record in records if record.subscription == number]
        assert [record.value for record in mine if record.signal == "on_next"] == [1, 2, 3]
        assert rules <= {item.rule for item in check(mine)}
    assert [item.element for item in dropped] == [2, 3]
