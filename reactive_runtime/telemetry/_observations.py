"""Keeps the metrics of each observed flow and each name, over all their subscriptions."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar
from itertools import repeat
from typing import Any, Final, Literal

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import AssemblyLocation
from reactive_runtime._core.failures.dropping import Dropped
from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.pollable import Pollable
from reactive_runtime._operators import monitoring
from reactive_runtime._operators.monitoring import Named
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.telemetry._counting import Counting, Tick, passed
from reactive_runtime.telemetry._looking import Look
from reactive_runtime.telemetry._operators_of import Key, Operator

__all__ = [
    "OBSERVED",
    "Observation",
    "Outcome",
    "Run",
    "drops",
    "named",
    "observation_of",
    "observations",
    "on_end",
    "retries",
]

logger: Final = logging.getLogger("reactive_runtime")

Outcome = Literal["complete", "error", "cancel"]

OBSERVED: Final[ContextVar[str | None]] = ContextVar("observed", default=None)
"""The observed flow that the context belongs to."""

_numbers: Final = primitives.tickets()
_lock = primitives.Lock()
_observations: dict[str, Observation] = {}  # _lock
_names: dict[str, _Name] = {}  # _lock
_retries: Counter[str | None] = Counter()  # _lock; by flow
_drops: Counter[tuple[str | None, bool, bool]] = Counter()  # _lock; by flow, whether wanted, whether an element


_recorder: Callable[[str, float, Outcome], object] | None = None  # written by the exporter, always the same


def on_end(recorder: Callable[[str, float, Outcome], object]) -> None:
    """Call `recorder` with the name, the duration and the outcome of each subscription that ends."""
    global _recorder
    _recorder = recorder


class Observation:
    """The metrics of all flows of one name."""

    def __init__(self, name: str, place: AssemblyLocation | None) -> None:
        self.name: str = name
        self.place: AssemblyLocation | None = place
        self._lock = primitives.Lock()
        self._live: dict[Run, None] = {}  # _lock
        self._subscriptions = 0  # _lock
        self._elements = 0  # _lock; of the subscriptions that are over
        self._requested = 0  # _lock; of those, and bounded demand only
        self._looks = 0  # _lock
        self._busy: Counter[Operator] = Counter()  # _lock; looks at which an operator held the flow back
        self._seconds: Counter[tuple[str, Any]] = Counter()  # _lock; sampled times, in seconds

    def begins(self, run: Run) -> None:
        """One more subscription."""
        with self._lock:
            self._subscriptions += 1
            self._live[run] = None

    def ends(self, run: Run, outcome: Outcome) -> None:
        """A subscription has ended."""
        elements, requested = run.elements(), run.requested()
        with self._lock:
            self._live.pop(run, None)
            self._elements += elements
            self._requested += requested or 0
        if _recorder is not None:
            _recorder(self.name, run.seconds(), outcome)

    def live(self) -> list[Run]:
        """The subscriptions that have not ended."""
        with self._lock:
            return list(self._live)

    def looked(self, busy: set[Operator], where: str, seconds: float) -> None:
        """Add one look: the operators that held the flow back, and whose time (`where`) the last `seconds` were."""
        with self._lock:
            self._looks += 1
            self._busy.update(busy)
            self._seconds["flow", where] += seconds  # type: ignore[assignment]
            for operator in busy:
                self._seconds["operator", operator] += seconds  # type: ignore[assignment]

    def looks(self) -> tuple[int, Counter[Operator]]:
        """How many looks there were, and at how many of them each operator held the flow back."""
        with self._lock:
            return self._looks, self._busy.copy()

    def seconds(self) -> dict[tuple[str, Any], float]:
        """The sampled times."""
        with self._lock:
            return dict(self._seconds)

    def counts(self) -> dict[str, int]:
        """The counts now: subscriptions, those that are live, elements, requested, and the demand outstanding."""
        with self._lock:  # one that ends meanwhile is counted once: it is in the list, or in the sums
            live = list(self._live)
            subscriptions, elements, requested = self._subscriptions, self._elements, self._requested
        demand = 0
        for run in live:
            elements += run.elements()
            requested += run.requested() or 0
            demand += run.demand() or 0
        return {
            "subscriptions": subscriptions,
            "live": len(live),
            "elements": elements,
            "requested": requested,
            "demand": demand,
        }


class Run:
    """One subscription to an observed flow."""

    def __init__(
        self,
        observation: Observation,
        drain: Any,
        pollable: Pollable,
        steps: tuple[Step[Any, Any], ...],
        known: Callable[[], dict[Key, Operator]],
    ) -> None:
        self.observation: Observation = observation
        self.drain: Any = drain
        self.pollable: Pollable = pollable
        self.steps: tuple[Step[Any, Any], ...] = steps
        self.known: Callable[[], dict[Key, Operator]] = known
        self.last_look: Look | None = None  # written by the thread that looks; read by an exporter
        self._counting = Counting(pollable, steps)
        self._last = 0  # the last count, for a look after the source has been closed; a stale one is smaller
        self._begin = primitives.monotonic()

    def elements(self) -> int:
        """How many elements have come out."""
        count = self._counting.count()
        if count is not None:
            self._last = count
        return self._last

    def demand(self) -> int | None:
        """The demand outstanding; None: it is unbounded, or a loop pulls."""
        drain = self.drain
        demand = drain.demand() if drain is not None and hasattr(drain, "request") else None
        return None if demand is None or demand == MAX_DEMAND else demand

    def requested(self) -> int | None:
        """The demand so far, met or not; None: see `demand`."""
        demand = self.demand()
        return None if demand is None else self.elements() + demand

    def seconds(self) -> float:
        """How long the subscription has lasted."""
        return primitives.monotonic() - self._begin


class _Name:
    """How many elements have passed the `named` operators of one name."""

    def __init__(self) -> None:
        self.live: dict[int, repeat[None]] = {}  # the module's _lock; the ticks of each subscription
        self.over = 0  # the same; the elements of those that are over


class NamedTick(Tick[Any], Named[Any]):
    """`named`, which counts."""

    name = "named"

    def __init__(self, of: Named[Any]) -> None:
        Tick.__init__(self)
        self.__dict__.update(of.__dict__)
        self.number = _numbers()
        with _lock:
            _names.setdefault(self.title, _Name()).live[self.number] = self.ticks

    def dispose(self) -> tuple[()]:  # without a word of `self` itself: a loop could then keep no attribute
        with _lock:
            mine = _names[self.title]
            ticks = mine.live.pop(self.number, None)
            mine.over += 0 if ticks is None else passed(ticks)
        return ()

    def __str__(self) -> str:
        return f"named({self.title})"


def named() -> dict[str, int]:
    """The elements that have passed each `named` operator, by its name."""
    with _lock:
        names = {name: (mine.over, list(mine.live.values())) for name, mine in _names.items()}
    return {name: over + sum(map(passed, live)) for name, (over, live) in names.items()}


def observation_of(name: str, place: AssemblyLocation | None) -> Observation:
    """The observation of this name. Logs a warning if flows from another line have the name as well."""
    with _lock:
        if not _observations:
            monitoring.counted_as = NamedTick
            dropping.counts_retries = _count_retry
            dropping.counts_drops = _count_drop
        mine = _observations.setdefault(name, Observation(name, place))
        other = mine.place if mine.place != place else None
        if other is not None:
            mine.place = place  # one line for each change of place
    if other is not None:
        here = f"{place[0]}:{place[1]}" if place else "a place that is not known"
        logger.warning(
            "observe: the flows at %s:%s and %s are both called %r: their figures are added up", *other, here, name
        )
    return mine


def observations() -> Iterator[Observation]:
    """All observations."""
    with _lock:
        found = list(_observations.values())
    return iter(found)


def _count_retry(context: Context) -> None:
    flow = context.get(OBSERVED)
    with _lock:
        _retries[flow] += 1


def _count_drop(dropped: Dropped) -> None:
    flow = OBSERVED.get()
    with _lock:
        _drops[flow, dropped.wanted, dropped.error is None] += 1


def retries() -> dict[str | None, int]:
    """The retries of each flow; None: a flow that is not observed."""
    with _lock:
        return dict(_retries)


def drops() -> dict[tuple[str | None, bool, bool], int]:
    """The number of drops, by flow, by whether they were wanted, and by whether they were elements or errors."""
    with _lock:
        return dict(_drops)
