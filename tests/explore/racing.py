"""Each asynchronous operator, between two threads: one is the source, the other the subscriber, or a second source.

Operators are the races of `declared`. The sources are moved by hand and have no thread of their own, so that two
threads are all there are, and every order with two preemptions can be tried.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from declared.kinds import Race
from declared.table import parts

from reactive_runtime import Flow
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.atomics import AtomicBoolean, AtomicInteger, AtomicReference
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.explore import call, cancel, request
from reactive_runtime.explore._checks.publisher_scenario import Driven
from reactive_runtime.hot import BehaviorProcessor, PublishProcessor, ReplayProcessor, UnicastProcessor

__all__ = ["OPERATORS", "RACES", "Applied", "finished", "races"]


class Hand:
    """A publisher that emits 0, 1, 2 … on call, if there is demand, and ends on call."""

    def __init__(self) -> None:
        self.held: AtomicReference[tuple[Held, ...]] = AtomicReference(())

    def subscribe(self, subscriber: Any, /) -> None:
        held = Held(subscriber)
        self.held.update_and_get(lambda others: (*others, held))
        subscriber.on_subscribe(held)

    def emit(self) -> None:
        for held in self.held.get():
            if not held.over.get() and held.demand.get():
                held.demand.add_and_get(-1)
                held.number += 1
                held.subscriber.on_next(held.number - 1)

    def complete(self) -> None:
        for held in self.held.get():
            if not held.over.get_and_set(True):
                held.subscriber.on_complete()

    def fail(self) -> None:
        for held in self.held.get():
            if not held.over.get_and_set(True):
                held.subscriber.on_error(OSError("broken"))


class Held:
    """One subscription. Numbers that are atomic are one point of choice each."""

    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        self.demand = AtomicInteger()
        self.over = AtomicBoolean()
        self.number = 0  # the emitting thread's

    def request(self, n: int, /) -> None:
        self.demand.update_and_get(lambda demand: min(demand + n, MAX_DEMAND))

    def cancel(self) -> None:
        self.over.set(True)


class Applied:
    """An operator on one source, or on two, or on a clock; its parameters say on what."""

    def __init__(self, operator: Callable[..., Any]) -> None:
        self.one = Hand()
        self.two = Hand()
        self.clock = VirtualTimeExecutor()
        given = {"a": Flow.from_publisher(self.one), "b": Flow.from_publisher(self.two), "t": self.clock}
        self.flow = operator(*(given[name] for name in inspect.signature(operator).parameters))

    def subscribe(self, subscriber: Any, /) -> None:
        self.flow.subscribe(subscriber)

    def finish(self) -> None:
        """Whatever is still running comes to its end."""
        for _ in range(4):
            self.one.complete()
            self.two.complete()
            self.clock.advance(10)


def finished(driven: Driven) -> None:
    """After the actors: the subscriber gets an end, unless it has cancelled."""
    first = driven.first
    first.request(MAX_DEMAND)
    driven.publisher.finish()
    ended = first.completed or first.error is not None
    assert ended or any(record.signal == "cancel" for record in driven.records), "neither an end, nor a cancel"


def feeding(hot: Any, source: Flow[Any]) -> Any:
    source.subscribe(hot)
    return hot


OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: race.operator for name, race in parts(Race).items()},
    "PublishProcessor": lambda a: feeding(PublishProcessor(capacity=1), a),
    "ReplayProcessor": lambda a: feeding(ReplayProcessor(1, capacity=1), a),
    "BehaviorProcessor": lambda a: feeding(BehaviorProcessor(-1, capacity=1), a),
    "UnicastProcessor": lambda a: feeding(UnicastProcessor(capacity=1), a),
}

emit = call("emit", lambda item: item.publisher.one.emit())
complete = call("complete", lambda item: item.publisher.one.complete())
fail = call("fail", lambda item: item.publisher.one.fail())
emit_2 = call("emit, of the second", lambda item: item.publisher.two.emit())
complete_2 = call("complete, of the second", lambda item: item.publisher.two.complete())
fail_2 = call("fail, of the second", lambda item: item.publisher.two.fail())
tick = call("a second passes", lambda item: item.publisher.clock.advance(1))

MORE = [emit] if "EXPLORE_SCHEDULES" in os.environ else []
"""Nightly, the source is one element further on."""

RACES: dict[str, tuple[str, int, list[Any]]] = {
    "emission | request": ("", 0, [[*MORE, emit], request(1)]),
    "emission | cancel": ("", MAX_DEMAND, [[*MORE, emit], cancel()]),
    "completion | request": ("", 0, [[*MORE, complete], request(1)]),
    "completion | cancel": ("", 1, [[*MORE, complete], cancel()]),
    "error | request": ("", 0, [[*MORE, fail], request(1)]),
    "error | cancel": ("", 1, [[*MORE, fail], cancel()]),
    "emission | emission": ("b", MAX_DEMAND, [[*MORE, emit, complete], [emit_2, complete_2]]),
    "emission | error": ("b", MAX_DEMAND, [[*MORE, emit, complete], fail_2]),
    "emission | time": ("t", 2, [[*MORE, emit], tick]),
    "time | cancel": ("t", MAX_DEMAND, [[*MORE, tick], cancel()]),
}
"""Which of the three an operator must have, the demand at first, and the two threads."""


def races(operator: Callable[..., Any]) -> list[str]:
    """Those that an operator can be put to."""
    has = {"", *inspect.signature(operator).parameters}
    return [name for name, (needs, _, _) in RACES.items() if needs in has]
