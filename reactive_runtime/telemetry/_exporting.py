"""Gives the metrics to OpenTelemetry, with its names and units, and few time series: one for each name."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.naming import instead
from reactive_runtime.telemetry import _observations
from reactive_runtime.telemetry._observations import Observation, logger

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter, MeterProvider

__all__ = ["export", "uses"]

Figure = tuple[float, dict[str, str]]
"""A value, and its attributes."""

PREFIX: Final = "reactive_runtime."
FLOW: Final = f"{PREFIX}flow.name"
OPERATOR: Final = f"{PREFIX}operator.name"
KIND: Final = f"{PREFIX}operator.kind"

BUCKETS: Final = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800]
"""The bounds of durations, in seconds."""

_lock = primitives.Lock()
_exported: weakref.WeakSet[Any] = weakref.WeakSet()  # _lock; the providers
_executors: weakref.WeakSet[Executor] = weakref.WeakSet()  # _lock; those of observed flows
_durations: list[Histogram] = []  # _lock; each exporter's
_failed = False  # _lock; a failure to record was logged


def uses(executors: Iterable[Any]) -> None:
    """Remember the executors of an observed flow."""
    with _lock:
        _executors.update(item for item in executors if isinstance(item, ThreadPoolExecutor))


def export(meter_provider: MeterProvider | None = None) -> None:
    """Give the metrics of all observed flows to OpenTelemetry, from now on.

    Call it once, when the program begins. If an exporter fails, the flows go on.

    Args:
        meter_provider: A `MeterProvider` of OpenTelemetry. None: the one that
            `opentelemetry.metrics.set_meter_provider` has set, or will set.

    Raises:
        ModuleNotFoundError: OpenTelemetry is not installed. The error names the extra to install.
        TypeError: `meter_provider` is not a `MeterProvider`.

    Thread:
        May be called on any thread. The threads of the exporter read the metrics.

    Example:
        >>> from reactive_runtime.telemetry import export
        >>> export()
    """
    try:
        from opentelemetry import metrics
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "export: OpenTelemetry is not installed: pip install 'reactive-runtime[otel]'", name=error.name
        ) from error
    provider = metrics.get_meter_provider() if meter_provider is None else meter_provider
    if not callable(getattr(provider, "get_meter", None)):
        raise TypeError(f"export: a MeterProvider of OpenTelemetry is needed, not {instead(provider)}")
    with _lock:
        again = provider in _exported
        _exported.add(provider)
    if again:
        logger.warning("export: this meter provider has the figures already: the second call does nothing")
        return
    _instrument(provider.get_meter("reactive_runtime"))


def _instrument(meter: Meter) -> None:
    from opentelemetry.metrics import Observation as Observed

    def reading(figures: Callable[[], Iterator[Figure]]) -> list[Callable[[Any], list[Any]]]:
        return [lambda _: [Observed(value, attributes) for value, attributes in figures()]]

    for name, unit, text, figures in _COUNTERS:
        meter.create_observable_counter(f"{PREFIX}{name}", reading(figures), unit, text)
    for name, unit, text, figures in _LEVELS:
        meter.create_observable_up_down_counter(f"{PREFIX}{name}", reading(figures), unit, text)
    duration = meter.create_histogram(
        f"{PREFIX}flow.duration",
        "s",
        "From a subscription to its end",
        explicit_bucket_boundaries_advisory=BUCKETS,
    )
    with _lock:
        _durations.append(duration)
    _observations.on_end(_record)


def _record(flow: str, seconds: float, outcome: str) -> None:
    """Record the duration of a subscription. The first failure is logged; the flow goes on."""
    global _failed
    with _lock:
        durations = list(_durations)
    for duration in durations:
        try:
            duration.record(seconds, {FLOW: flow, f"{PREFIX}outcome": outcome})
        except Exception as error:
            with _lock:
                first, _failed = not _failed, True
            if first:
                logger.warning("telemetry: a duration could not be recorded, and the flow goes on: %r", error)


def _count_of(name: str) -> Iterator[Figure]:
    for observation in _observations.observations():
        yield observation.counts()[name], {FLOW: observation.name}


def _waits() -> Iterator[Figure]:
    for observation, (kind, where), seconds in _seconds():
        if kind == "flow":
            waits_for = "element" if where == "upstream" else "demand"
            yield seconds, {FLOW: observation.name, f"{PREFIX}waits_for": waits_for}


def _busy() -> Iterator[Figure]:
    sums: Counter[tuple[str, str, str]] = Counter()
    for observation, (kind, operator), seconds in _seconds():
        if kind == "operator":
            key = observation.name, operator.kind, operator.name or operator.kind
            sums[key] += seconds  # type: ignore[assignment]
    for (flow, kind, name), seconds in sums.items():
        yield seconds, {FLOW: flow, KIND: kind, OPERATOR: name}


def _seconds() -> Iterator[tuple[Observation, tuple[str, Any], float]]:
    for observation in _observations.observations():
        for key, seconds in observation.seconds().items():
            yield observation, key, seconds


def _named() -> Iterator[Figure]:
    for name, elements in _observations.named().items():
        yield elements, {OPERATOR: name}


def _retries() -> Iterator[Figure]:
    for flow, number in _observations.retries().items():
        yield number, {} if flow is None else {FLOW: flow}


def _drops() -> Iterator[Figure]:
    for (flow, wanted, element), number in _observations.drops().items():
        attributes = {
            f"{PREFIX}drop.reason": "wanted" if wanted else "lost",
            f"{PREFIX}drop.signal": "element" if element else "error",
        }
        yield number, attributes if flow is None else {**attributes, FLOW: flow}


def _depths() -> Iterator[Figure]:
    sums: Counter[tuple[str, int]] = Counter()
    for observation in _observations.observations():
        for run in observation.live():
            if run.last_look is not None:
                for number, depth in enumerate(run.last_look.depths, start=1):
                    sums[observation.name, number] += depth
    for (flow, number), depth in sums.items():
        yield depth, {FLOW: flow, f"{PREFIX}boundary": str(number)}


def _calls() -> Iterator[Figure]:
    sums: Counter[tuple[str, str, str]] = Counter()
    for observation in _observations.observations():
        for run in observation.live():
            if run.last_look is not None:
                for operator, number in run.last_look.calls.items():
                    sums[observation.name, operator.kind, operator.name or operator.kind] += number
    for (flow, kind, name), number in sums.items():
        yield number, {FLOW: flow, KIND: kind, OPERATOR: name}


def _tasks(state: str) -> Iterator[Figure]:
    with _lock:
        executors = list(_executors)
    sums: Counter[str] = Counter()
    for executor in executors:
        name = getattr(executor, "_thread_name_prefix", "") or type(executor).__name__
        queue, threads = getattr(executor, "_work_queue", None), getattr(executor, "_threads", ())
        idle = getattr(getattr(executor, "_idle_semaphore", None), "_value", 0)
        waiting = 0 if queue is None else queue.qsize()
        sums[name] += waiting if state == "waiting" else max(len(threads) - idle, 0)
    for name, number in sums.items():
        yield number, {f"{PREFIX}executor.name": name}


Instrument = tuple[str, str, str, Callable[[], Iterator[Figure]]]

_COUNTERS: Final[tuple[Instrument, ...]] = (
    ("flow.subscriptions", "{subscription}", "Subscriptions so far", partial(_count_of, "subscriptions")),
    ("flow.elements", "{element}", "Elements that came out of the flow", partial(_count_of, "elements")),
    ("flow.requested", "{element}", "Bounded demand so far", partial(_count_of, "requested")),
    ("flow.wait", "s", "Time from demand to an element, and from an element to demand; sampled", _waits),
    ("flow.retries", "{retry}", "Subscriptions that an operator made once more", _retries),
    ("drops", "{signal}", "Elements and errors that went to the hook", _drops),
    ("operator.elements", "{element}", "Elements that came out of a named operator", _named),
    ("operator.busy", "s", "Time for which an operator held the flow back; sampled", _busy),
)

_LEVELS: Final[tuple[Instrument, ...]] = (
    ("flow.live", "{subscription}", "Subscriptions that are not over", partial(_count_of, "live")),
    ("flow.demand", "{element}", "Bounded demand outstanding", partial(_count_of, "demand")),
    ("boundary.depth", "{element}", "Elements that wait at a boundary, counted from the subscriber", _depths),
    ("operator.calls", "{call}", "Calls in flight", _calls),
    ("executor.tasks.waiting", "{task}", "Tasks that wait for a thread", partial(_tasks, "waiting")),
    ("executor.tasks.running", "{task}", "Tasks that have a thread", partial(_tasks, "running")),
)
