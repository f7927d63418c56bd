"""Broken subscriptions, to show that the harness finds a fault, and names its rule.

`planted(name)` swaps one of them in for the subscription of every cold source that is judged itself, for as long as the
block runs. Sources behind an operator stay as they are: an operator may expect a publisher that keeps the rules. Each
is the last subscription of `Mastering Reactive Streams`, with one step of it wrong. The step decides which rule breaks;
`wake` has the rules that may break as a consequence, and a test fails if any other does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.fusion.fuse import Unstopped, pulled
from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.fusion.subscription import PulledSubscription, invalid_demand
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources import core_flow
from reactive_runtime._core.sources.pollable import IterablePollable, Pollable
from reactive_runtime._spec import MAX_DEMAND, Subscriber
from reactive_runtime.atomics import AtomicBoolean, AtomicInteger, AtomicReference
from reactive_runtime.errors import ScenarioError
from reactive_runtime.stress._declaring import Scenario

__all__ = ["FAULTS", "NO_ANSWER", "TextbookSubscription", "answered", "planted", "swapped", "verdict_on"]

_END: Final = object()

NO_ANSWER: Final = "its executor stops, and the textbook's subscription does not know what to do then"
"""Why a scenario is left out where a fault is planted."""


class TextbookSubscription:
    """The textbook's last version, which is right; each fault below replaces one of its steps.

    Unmet demand is in `_demand`: the thread that raises it from 0 sees to it that the drain runs. The one that finds
    `_calls` at 0 drains; all others leave a call there, and the drain looks again before it leaves. So one thread
    signals at a time.

    It is right where its executor takes and runs every task: for one that is shut down it has no answer.
    """

    summary: ClassVar[str] = "nothing is wrong"
    rule: ClassVar[str] = ""
    """The one that is broken."""
    wake: ClassVar[Mapping[str, str]] = {}
    """The rules that may break as its consequence, each with the reason."""

    def __init__(
        self,
        subscriber: Subscriber[Any],
        pollable: Pollable,
        steps: Sequence[Step[Any, Any]],
        executor: Executor | None,
    ) -> None:
        self._pollable = pollable
        self._executor = executor
        self._demand = AtomicInteger(0)
        self._calls = AtomicInteger(1)  # since the drain last looked; 1 until on_subscribe has returned
        self._cancelled = AtomicBoolean()
        self._fault: AtomicReference[Exception | None] = AtomicReference(None)
        # Owned by the drain:
        self._subscriber: Subscriber[Any] | None = subscriber  # None: it has ended
        self._steps = [step.copy() for step in steps]
        self._elements: Iterator[Any] | None = None

    # -- the subscriber's side: any thread ---------------------------------------------------------------------

    def request(self, n: int, /) -> None:
        """Add to the demand, and wake the drain where there was none; 3.9: `on_error` answers what is no demand."""
        if type(n) is not int or n < 1:
            self._fault.compare_and_set(None, invalid_demand(n))
            self._wake()
        elif self._add(n):
            self._serve()

    def cancel(self) -> None:
        """Stop, as soon as the drain looks (3.12)."""
        self._cancelled.set(True)
        self._wake()

    def _add(self, n: int) -> bool:
        """Add to the demand; whether the caller has to see to it that it is served."""
        return self._demand.get_and_update(lambda demand: min(demand + n, MAX_DEMAND)) == 0

    def _serve(self) -> None:
        self._wake()

    def _wake(self) -> None:
        """Let the drain look, if need be here."""
        if self._calls.get_and_add(1) == 0:
            self._somewhere(self._drain)

    def _somewhere(self, work: Callable[[], object]) -> None:
        if self._executor is None:
            work()
        else:
            self._executor.submit(work)

    # -- the drain's side: its owner only ----------------------------------------------------------------------

    def start(self) -> None:
        """Signal `on_subscribe`, then let the drain look at what was requested in it."""
        subscriber = self._subscriber
        assert subscriber is not None
        self._signalled(subscriber.on_subscribe, self)
        self._somewhere(self._drain)

    def _drain(self) -> None:
        while True:
            calls = self._calls.get()
            self._emit()
            if self._calls.add_and_get(-calls) == 0:
                return

    def _emit(self) -> None:
        """Signal what is due."""
        while (subscriber := self._subscriber) is not None:
            if self._over():
                self._close()
                return
            if (fault := self._fault.get()) is not None:
                self._end(subscriber, fault)
                return
            if self._demand.get() <= 0:
                return
            try:
                element = self._next()
            except Exception as error:
                self._end(subscriber, error)
                return
            if element is _END:
                self._end(subscriber, None)
                return
            self._signalled(subscriber.on_next, element)
            self._demand.update_and_get(lambda demand: demand if demand == MAX_DEMAND else demand - 1)

    def _over(self) -> bool:
        """Whether nothing more is to be signalled."""
        return self._cancelled.get()

    def _next(self) -> Any:
        elements = self._elements
        if elements is None:
            elements = self._elements = pulled(self._pollable.open(), self._steps, Unstopped())
        return next(elements, _END)

    def _end(self, subscriber: Subscriber[Any], error: Exception | None) -> None:
        self._close()
        if error is None:
            self._signalled(subscriber.on_complete)
        else:
            self._signalled(subscriber.on_error, error)

    def _close(self) -> None:
        self._subscriber = self._elements = None
        self._pollable.close()

    def _signalled(self, signal: Callable[..., object], *what: Any) -> None:
        """2.13: a subscriber that raises out of a signal has cancelled."""
        try:
            signal(*what)
        except Exception as error:
            self._cancelled.set(True)
            dropping.error_dropped("a subscriber broke rule 2.13", error)


_UNMET: Final = {
    "1.2": "the same, if the number of elements is not known",
    "1.5": "the same, if all elements have been delivered: the subscription needs demand to find the end",
    "3.8": "the same, if some of the elements have been requested",
    "3.17": "the same, if everything has been requested",
}


class LostDemand(TextbookSubscription):
    """It gives way between its check and its addition, so that a short load meets the race whatever else runs.

    Thirty other publishers show that the harness meets races without such help (tests/stress/test_planted.py).
    """

    summary = "`request` checks for unmet demand, and then adds: meanwhile that demand may be met"
    rule = "3.8"
    wake: ClassVar[Mapping[str, str]] = {rule: why for rule, why in _UNMET.items() if rule != "3.8"}

    def _add(self, n: int) -> bool:
        if self._demand.get() > 0:
            primitives.pause()
            self._demand.get_and_add(n)
            return False
        return super()._add(n)


class Overflow(TextbookSubscription):
    summary = "demand is added up in 64 bits that wrap: twice MAX_DEMAND is -2"
    rule = "3.17"
    wake: ClassVar[Mapping[str, str]] = {"1.5": _UNMET["1.5"]}

    def _add(self, n: int) -> bool:
        return self._demand.get_and_update(lambda demand: (demand + n + 2**63) % 2**64 - 2**63) == 0


class TwoDrains(TextbookSubscription):
    summary = "the thread that requests drains, whether or not another one does already"
    rule = "1.3"
    wake: ClassVar[Mapping[str, str]] = {
        "1.1": "both find the same demand",
        "1.6": "one ends the stream while the other has an element in hand, and a request comes in between",
        "1.7": "one ends the stream while the other has an element in hand",
        "1.8": "each has an element in hand at a cancel, and one late signal is allowed",
        "3.6": "the same, after a further request",
        "3.9": "the same, after an invalid request",
        "conservation": "one completes while the other has an element in hand",
        "order": "the one with the earlier element signals it later",
    }

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self._inside: set[int] = set()  # the threads that drain; each adds and removes its own

    def _add(self, n: int) -> bool:
        super()._add(n)
        return True

    def _serve(self) -> None:
        if self._elements is None:  # it begins as it should
            self._wake()
        else:
            self._somewhere(self._drain_too)

    def _drain_too(self) -> None:
        self._emit()
        self._wake()

    def _emit(self) -> None:
        thread = primitives.get_ident()
        if thread in self._inside:  # a request from inside of on_next is served when that has returned
            return
        self._inside.add(thread)
        try:
            super()._emit()
        finally:
            self._inside.discard(thread)

    def _next(self) -> Any:
        while True:
            try:
                return super()._next() if self._subscriber is not None else _END
            except ValueError as error:
                if "already executing" not in str(error):  # the other drain is inside the generator
                    raise
                primitives.pause()


class SignalAfterCompletion(TextbookSubscription):
    summary = "a request after the end is answered with the end again"
    rule = "1.7"
    wake: ClassVar[Mapping[str, str]] = {
        "1.3": "two requests after the end are answered at the same time",
        "1.8": "each of them gets it, though a third has cancelled meanwhile, and one such signal is allowed",
    }

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self._completed: AtomicReference[Subscriber[Any] | None] = AtomicReference(None)

    def request(self, n: int, /) -> None:
        subscriber = self._completed.get()
        if subscriber is not None and not self._cancelled.get():
            subscriber.on_complete()
        else:
            super().request(n)

    def _end(self, subscriber: Subscriber[Any], error: Exception | None) -> None:
        super()._end(subscriber, error)
        if error is None:
            self._completed.set(subscriber)


class ForgottenCancel(TextbookSubscription):
    summary = "the drain checks for a cancel only when all demand has been met"
    rule = "1.8"
    wake: ClassVar[Mapping[str, str]] = {"3.6": "a request after the cancel is demand as well"}

    def _over(self) -> bool:
        return self._demand.get() <= 0 and super()._over()


FAULTS: Final[dict[str, type[TextbookSubscription]]] = {
    "lost-demand": LostDemand,
    "overflow": Overflow,
    "two-drains": TwoDrains,
    "signal-after-completion": SignalAfterCompletion,
    "forgotten-cancel": ForgottenCancel,
}


def fault_of(name: str) -> type[TextbookSubscription]:
    """The fault of that name; ScenarioError if there is none."""
    fault = FAULTS.get(name)
    if fault is None:
        raise ScenarioError(f"no fault {name!r}; there are: {', '.join(FAULTS)}")
    return fault


def answered(scenarios: Iterable[Scenario]) -> tuple[list[Scenario], list[Scenario]]:
    """The scenarios that the textbook's subscription is right in, and those that are left out: see `NO_ANSWER`.

    Args:
        scenarios: The scenarios.

    Returns:
        Two lists, those in which no executor stops, and the others.
    """
    there = list(scenarios)
    return [item for item in there if not item.executor_stops], [item for item in there if item.executor_stops]


def verdict_on(name: str, broken: Iterable[str]) -> str:
    """In words, whether the rules that were broken name the fault.

    Args:
        name: The name of a planted fault: one of `FAULTS`.
        broken: The rules that were broken.

    Returns:
        A line.

    Raises:
        ScenarioError: There is no fault of that name.
    """
    fault, rules = fault_of(name), set(broken)
    named = f"{name} is {'named by its' if fault.rule in rules else 'NOT named: nothing broke its'} rule {fault.rule}"
    wake = sorted(rules & fault.wake.keys())
    others = sorted(rules - fault.wake.keys() - {fault.rule})
    return "; ".join(
        [named]
        + ([f"its consequences: {', '.join(wake)}"] if wake else [])
        + ([f"NOT its consequences: {', '.join(others)}"] if others else [])
    )


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Let every cold source that is judged have the subscription of that name, within the block.

    Args:
        name: The name of a planted fault: one of `FAULTS`.

    Yields:
        None.

    Raises:
        ScenarioError: There is no fault of that name.
    """
    with swapped(fault_of(name)):
        yield


@contextmanager
def swapped(kind: type[TextbookSubscription]) -> Iterator[None]:
    """Let every cold source that is judged have such a subscription."""

    def subscription(
        subscriber: Subscriber[Any],
        pollable: Pollable,
        steps: Sequence[Step[Any, Any]],
        executor: Executor | None,
        home: Executor | None,
    ) -> Any:
        if isinstance(pollable, IterablePollable) and not _is_an_operators(subscriber):
            return kind(subscriber, pollable, steps, executor)
        return PulledSubscription(subscriber, pollable, steps, executor, home)

    seam: Any = core_flow  # the one place where subscriptions are made
    seam.PulledSubscription = subscription
    try:
        yield
    finally:
        seam.PulledSubscription = PulledSubscription


_PACKAGE: Final = __name__.partition(".")[0] + "."
_JUDGES: Final = (f"{_PACKAGE}testing.", f"{_PACKAGE}explore.")


def _is_an_operators(subscriber: object) -> bool:
    """Whether it is a subscriber inside a pipeline of the package."""
    module = type(subscriber).__module__
    return module.startswith(_PACKAGE) and not module.startswith(_JUDGES)
