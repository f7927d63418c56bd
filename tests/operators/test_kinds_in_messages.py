"""No message shows a private class of the package: a reader knows what was passed, and what is public."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink, settle

import reactive_runtime
from operators.catalogue import CASES, Case, Place, failing, numbers
from reactive_runtime import Flow, hooks
from reactive_runtime._core.sources.naming import a_kind, kind_of
from reactive_runtime.errors import SubscriberError
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.subscribers import BaseSubscriber
from reactive_runtime.testing import Probe, Recorder

PRIVATE = re.compile(r"(?<![\w./])_[A-Z]\w*")
PARTS = (
    "_core",
    "_operators",
    "hot",
    "_submission_publisher",
    "subscribers",
    "testing._probe",
    "testing._recorder",
    "testing._step_run",
)


WORKERS = 4


@pytest.fixture
def place() -> Iterator[Place]:
    with ThreadPoolExecutor(WORKERS, "kinds") as pool:
        yield Place(pool, VirtualTimeExecutor())


def refuses(*_: object) -> None:
    raise ValueError("a subscriber raised")


class Refusing(Sink):
    def on_next(self, element: Any, /) -> None:
        refuses()

    def on_error(self, error: BaseException, /) -> None:
        refuses()

    def on_complete(self) -> None:
        refuses()


SUBSCRIBED: dict[str, Callable[[Any], object]] = {
    "a subscriber made of functions": lambda flow: flow.subscribe(refuses, refuses, refuses),
    "a Refusing": lambda flow: flow.subscribe(Refusing()),
}


def texts_of(error: BaseException | None) -> Iterator[str]:
    if error is not None:
        yield str(error)
        yield from getattr(error, "__notes__", ())
        yield from texts_of(error.__cause__)


@pytest.mark.parametrize("source", [numbers, failing])
@pytest.mark.parametrize("said", SUBSCRIBED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_subscriber_that_raises_is_called_what_its_user_calls_it(
    case: Case, said: str, source: Callable[[], Iterator[int]], place: Place
) -> None:
    over = threading.Event()
    drops: list[hooks.Dropped] = []

    def handler(drop: hooks.Dropped) -> None:
        drops.append(drop)
        if isinstance(drop.error, SubscriberError):
            over.set()

    before = hooks.set_handler(handler)
    try:
        SUBSCRIBED[said](case.apply(Flow.from_supplier(source), place))
        for _ in range(int(PATIENCE * 200)):
            if over.wait(0.0 if over.is_set() else 0.001):
                break
            place.clock.advance(0.25)
        else:
            raise AssertionError("no report came")
        settle(place.pool, WORKERS)  # a call that fails after the cancel is this test's too
    finally:
        hooks.set_handler(before)
    texts = [text for drop in drops for text in (drop.reason, *texts_of(drop.error))]
    assert any(text.startswith(f"{said} raised out of ") for text in texts), texts
    assert [text for text in texts if PRIVATE.search(text)] == []


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda flow: flow.do_on_request(id),
        Probe,
        lambda flow: Recorder().wrap(flow),
    ],
    ids=["do_on_request", "Probe", "Recorder"],
)
def test_what_stands_before_a_subscriber_is_called_what_the_subscriber_is(
    wrapped: Callable[[Flow[int]], Any], dropped: list[hooks.Dropped]
) -> None:
    wrapped(Flow.range(3)).subscribe(Refusing())
    assert [str(drop.error) for drop in dropped] == ["a Refusing raised out of a signal, and is cancelled (2.13)"]


def test_a_private_class_is_called_what_it_says_or_by_its_public_base() -> None:
    class _Mine(BaseSubscriber[int]):
        """A class of the user's: its name is known to them."""

    assert kind_of(_Mine()) == "_Mine"
    assert (kind_of(PublishProcessor[int]()), a_kind(3), a_kind("x")) == ("PublishProcessor", "an int", "a str")


def private_subscribers() -> list[type]:
    found = []
    for part in PARTS:
        package = importlib.import_module(f"reactive_runtime.{part}")
        names = [package.__name__]
        names += [item.name for item in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + ".")]
        for name in names:
            for kind in vars(importlib.import_module(name)).values():
                if inspect.isclass(kind) and kind.__module__ == name and hasattr(kind, "on_subscribe"):
                    hidden = any(word.startswith("_") for word in (*name.split("."), *kind.__name__.split(".")))
                    if hidden and "subscribe" not in vars(kind):
                        found.append(kind)
    return found


@pytest.mark.parametrize("kind", private_subscribers(), ids=lambda kind: kind.__name__)
def test_each_private_subscriber_says_what_it_is(kind: type) -> None:
    public = [base for base in kind.__mro__ if getattr(reactive_runtime, base.__name__, None) is base]
    assert public or hasattr(kind, "shown_as")
