"""The figures that OpenTelemetry gets, and the dashboard's queries of them."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from prometheus_client import generate_latest
from sinks import PATIENCE, Sink, until

from reactive_runtime import Flow
from reactive_runtime.debugging import fusing
from reactive_runtime.telemetry import export, observe
from reactive_runtime.telemetry._observations import named

ROOT = Path(__file__).parents[2]
FLOW = "reactive_runtime.flow.name"


class Figures:
    """The figures as a reader of OpenTelemetry gets them."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader])

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        metrics = [metric for of in data.resource_metrics for scope in of.scope_metrics for metric in scope.metrics]
        return [
            point
            for metric in metrics
            if metric.name == f"reactive_runtime.{name}"
            for point in metric.data.data_points
        ]

    def value(self, name: str, **attributes: str) -> Any:
        wanted = {f"reactive_runtime.{key.replace('_', '.')}": value for key, value in attributes.items()}
        found = [point for point in self.points(name) if wanted.items() <= dict(point.attributes or {}).items()]
        return sum(point.value for point in found)


@pytest.fixture
def figures() -> Iterator[Figures]:
    figures = Figures()
    export(figures.provider)
    yield figures
    figures.provider.shutdown()


FLOWS: dict[str, tuple[Callable[[], Flow[Any]], int]] = {
    "steps that change no number": (lambda: Flow.range(9).map(str), 9),
    "filter": (lambda: Flow.range(9).map(lambda n: n + 1).filter(lambda n: n % 3), 6),
    "take": (lambda: Flow.range(9).filter(bool).take(3).filter(lambda n: n > 1), 2),
    "a step that expands": (lambda: Flow.range(3).flat_map_iterable(range), 3),
    "an asynchronous operator": (lambda: Flow.range(3).merge_with(Flow.range(4)).filter(bool), 5),
    "one element": (lambda: Flow.just(1).map(str), 1),
    "a generator": (lambda: Flow.from_supplier(lambda: (n for n in range(7))), 7),
    "a name": (lambda: Flow.range(9).filter(bool).named("counted").filter(lambda n: n > 4), 4),
}


@pytest.mark.parametrize("way", FLOWS)
@pytest.mark.parametrize("where", ["here", "boundary", "loop", "inner", "inner on a pool", "unfused"])
def test_elements_are_counted_exactly(way: str, where: str, figures: Figures) -> None:
    make, number = FLOWS[way]
    name = f"{way} {where}"
    with ThreadPoolExecutor(2) as pool, fusing(where != "unfused"):
        flow: Flow[Any] = make()
        if where == "boundary":
            observe(flow.subscribe_on(pool).publish_on(pool, prefetch=2), name).block()
        elif where == "loop":
            assert len(list(observe(flow, name))) == number
        elif where.startswith("inner"):
            observed = observe(flow if where == "inner" else flow.subscribe_on(pool), name)
            Flow.range(1).concat_map(lambda n: observed).block()
        else:
            observe(flow, name).block()
    assert figures.value("flow.elements", flow_name=name) == number
    assert figures.value("flow.subscriptions", flow_name=name) == 1
    assert figures.value("flow.live", flow_name=name) == 0


@pytest.mark.parametrize("way", ["complete", "error", "cancel"])
@pytest.mark.parametrize("where", ["subscriber", "loop", "inner"])
def test_durations_come_by_outcome(way: str, where: str, figures: Figures) -> None:
    source = {
        "complete": Flow.range(3),
        "error": Flow.range(3).map(lambda n: 1 // (1 - n)),
        "cancel": Flow.range(3).concat_with(Flow.never()) if where != "loop" else Flow.range(3),
    }[way]
    flow = observe(source, f"{way} of {where}")
    if where == "loop":
        try:
            for _ in flow:
                if way == "cancel":
                    break
        except ZeroDivisionError:
            assert way == "error"
    else:
        sink = Sink()
        (flow if where == "subscriber" else Flow.range(1).concat_map(lambda n: flow)).subscribe(sink)
        sink.subscription.cancel()
    points = [point for point in figures.points("flow.duration") if point.attributes[FLOW] == f"{way} of {where}"]
    assert [(point.attributes["reactive_runtime.outcome"], point.count) for point in points] == [(way, 1)]
    assert points[0].explicit_bounds[0] < 0.1


@pytest.mark.parametrize(("fn", "way"), [(str, "complete"), (lambda n: 1 // 0, "error")], ids=["complete", "error"])
def test_a_task_has_an_outcome(fn: Any, way: str, figures: Figures) -> None:
    name = f"a task, {way}"
    with ThreadPoolExecutor(1) as pool:
        task = observe(Flow.just(1).map(fn).subscribe_on(pool), name)
        Flow.range(1).flat_map(lambda n: task.on_error_return(str)).block()
        Flow.range(1).flat_map(lambda n: task).materialize().block()
    points = [point for point in figures.points("flow.duration") if point.attributes[FLOW] == name]
    assert [(point.attributes["reactive_runtime.outcome"], point.count) for point in points] == [(way, 2)]
    assert figures.value("flow.live", flow_name=name) == 0


def test_bounded_demand_is_counted(figures: Figures) -> None:
    sink = Sink(demand=5)
    observe(Flow.range(3).concat_with(Flow.never()), "demand").subscribe(sink)
    assert figures.value("flow.requested", flow_name="demand") == 5
    assert figures.value("flow.demand", flow_name="demand") == 2
    assert figures.value("flow.live", flow_name="demand") == 1
    sink.subscription.cancel()
    assert figures.value("flow.requested", flow_name="demand") == 5
    assert figures.value("flow.demand", flow_name="demand") == 0


def test_unbounded_demand_is_not_counted(figures: Figures) -> None:
    sink = Sink()
    observe(Flow.never(), "unbounded").subscribe(sink)
    assert figures.value("flow.demand", flow_name="unbounded") == 0
    sink.subscription.cancel()


def test_a_named_operator_counts_its_own_elements(figures: Figures) -> None:
    observe(Flow.range(9), "any")  # from then on names count
    Flow.range(10).map(str).named("all digits").map(int).filter(lambda n: n > 6).named("the last").block()
    assert figures.value("operator.elements", operator_name="all digits") == 10
    assert figures.value("operator.elements", operator_name="the last") == 3
    assert named()["the last"] == 3


def test_retries_are_counted_for_their_flow(figures: Figures) -> None:
    attempts = iter(range(2))

    def attempt() -> int:
        if next(attempts, None) is not None:
            raise OSError
        return 1

    observe(Flow.from_callable(attempt).retry(3), "retrying").block()
    assert figures.value("flow.retries", flow_name="retrying") == 2


def test_drops_are_wanted_or_lost(figures: Figures) -> None:
    before = {way: figures.value("drops", drop_reason=way, drop_signal="element") for way in ("wanted", "lost")}
    sink = Sink(demand=0)
    flow = observe(Flow.range(5).concat_with(Flow.never()).on_overflow_buffer(2, drop="oldest"), "dropping")
    flow.subscribe(sink)
    assert figures.value("drops", drop_reason="wanted", drop_signal="element") - before["wanted"] == 3
    sink.subscription.cancel()
    assert figures.value("drops", drop_reason="lost", drop_signal="element") - before["lost"] == 2


def test_tasks_of_an_executor_wait_and_run(figures: Figures) -> None:
    gate, began = threading.Event(), threading.Semaphore(0)

    def task() -> None:
        began.release()
        gate.wait(PATIENCE)

    with ThreadPoolExecutor(2, "counted-pool") as pool:
        observe(Flow.range(3).subscribe_on(pool), "on a pool")
        for _ in range(5):
            pool.submit(task)
        assert all(began.acquire(timeout=PATIENCE) for _ in range(2))
        assert figures.value("executor.tasks.waiting", executor_name="counted-pool") == 3
        assert figures.value("executor.tasks.running", executor_name="counted-pool") == 2
        gate.set()


def test_depths_calls_and_times_come_from_looks(figures: Figures) -> None:
    gate = threading.Event()

    def wait(n: int) -> int:
        gate.wait(PATIENCE)
        return n

    with ThreadPoolExecutor(4) as pool:
        flow = observe(
            Flow.range(99)
            .subscribe_on(pool)
            .publish_on(pool, prefetch=8)
            .map_parallel(wait, pool, concurrency=2)
            .named("w"),
            "looked at",
        )
        sink = Sink()
        flow.subscribe(sink)
        until(lambda: figures.value("operator.calls", flow_name="looked at", operator_name="w") == 2)
        until(lambda: figures.value("boundary.depth", flow_name="looked at", boundary="1") > 0)
        until(lambda: figures.value("operator.busy", flow_name="looked at", operator_name="w") > 0)
        waits = {point.attributes["reactive_runtime.waits_for"]: point.value for point in figures.points("flow.wait")}
        assert waits["element"] > 0
        sink.subscription.cancel()
        gate.set()


def test_a_second_export_is_one_line(figures: Figures, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        export(figures.provider)
    assert [record.getMessage() for record in caplog.records] == [
        "export: this meter provider has the figures already: the second call does nothing"
    ]


def test_a_name_used_twice_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        first = observe(Flow.range(2), "twice")
        second = observe(Flow.range(3), "twice")
    assert len(caplog.records) == 1
    assert "both called 'twice': their figures are added up" in caplog.text
    first.block()
    second.block()
    assert "2 subscriptions" in second.report()
    assert "5 elements" in second.report()


def test_a_name_of_one_line_of_code_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            observe(Flow.range(2), "each request")
    assert not caplog.records


class Down(MetricExporter):
    """An exporter whose server is away."""

    def __init__(self) -> None:
        super().__init__()
        self.called = threading.Event()

    def export(self, metrics_data: MetricsData, timeout_millis: float = 0, **more: Any) -> MetricExportResult:
        self.called.set()
        raise ConnectionRefusedError("no server")

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **more: Any) -> None:
        """Nothing to do."""


def test_an_exporter_that_is_down_leaves_the_flow_alone() -> None:
    down = Down()
    provider = MeterProvider([PeriodicExportingMetricReader(down, export_interval_millis=10)])
    export(provider)
    flow = observe(Flow.range(100_000).map(str), "exporter down")
    until(lambda: bool(flow.block()) and down.called.is_set())
    provider.shutdown()


class Raising:
    """A histogram that raises."""

    def record(self, *_: Any) -> None:
        raise OSError("full")


def test_a_figure_that_is_refused_is_one_line(
    figures: Figures, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reactive_runtime.telemetry import _exporting

    monkeypatch.setattr(_exporting, "_durations", [Raising()])
    monkeypatch.setattr(_exporting, "_failed", False)
    flow = observe(Flow.range(3), "refused")
    with caplog.at_level(logging.WARNING):
        assert [flow.block(), flow.block()] == [2, 2]
    assert [record.getMessage() for record in caplog.records] == [
        "telemetry: a duration could not be recorded, and the flow goes on: OSError('full')"
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((1, "a"), TypeError), ((Flow.range(1), 2), TypeError), ((Flow.range(1), ""), ValueError)],
    ids=["no flow", "no text", "empty"],
)
def test_arguments_of_observe(arguments: tuple[Any, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"observe: (flow|name) must"):
        observe(*arguments)


def test_export_needs_a_meter_provider() -> None:
    with pytest.raises(TypeError, match="export: a MeterProvider of OpenTelemetry is needed, not int"):
        export(3)  # type: ignore[arg-type]


def queries() -> list[str]:
    board = json.loads((ROOT / "examples" / "telemetry" / "dashboard.json").read_text())
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [*found, *(item["query"]["query"] for item in board["templating"]["list"] if item["type"] == "query")]


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """Each series that a flow exports to Prometheus, and its labels."""
    reader = PrometheusMetricReader()
    provider = MeterProvider([reader])
    export(provider)
    gate = threading.Event()
    attempts = iter(range(1))

    def wait(n: int) -> int:
        gate.wait(PATIENCE)
        if next(attempts, None) is not None:
            raise OSError
        return n

    with ThreadPoolExecutor(3, "pool") as pool:
        slow = Flow.range(9).subscribe_on(pool).publish_on(pool).map_parallel(wait, pool, concurrency=2).named("waits")
        flow = observe(slow.retry(1), "everything")
        sink = Sink(demand=3)
        flow.subscribe(sink)
        looked_at = ("operator_busy", "operator_calls", "boundary_depth")
        until(lambda: all(name in generate_latest().decode() for name in looked_at))
        text = generate_latest().decode()
        gate.set()
        until(lambda: len(sink.signals) > 2)
        sink.subscription.cancel()
    text += generate_latest().decode()
    provider.shutdown()
    series: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        series.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return series


@pytest.mark.parametrize("query", queries())
def test_each_query_of_the_dashboard_has_its_series(query: str, exported: dict[str, set[str]]) -> None:
    names = set(re.findall(r"\breactive_runtime_\w+", query))
    metrics = names & set(exported)
    labels = set().union(*(exported[name] for name in metrics))
    assert metrics, query
    assert names - metrics <= labels, f"{query}: no series, and no label, is called {names - metrics - labels}"


def test_the_dashboard_shows_every_series(exported: dict[str, set[str]]) -> None:
    shown = {name for query in queries() for name in re.findall(r"\breactive_runtime_\w+", query)}
    ours = {
        re.sub(r"_(sum|count|created)$", "_bucket", name) for name in exported if name.startswith("reactive_runtime_")
    }
    assert ours - shown == set()


def test_prometheus_answers_each_query_of_the_dashboard() -> None:
    """Each has series while the flows of the example run; a query that is refused ends the program."""
    if shutil.which("prometheus") is None:
        pytest.skip("there is no prometheus on the PATH: PATH=$PATH:$(.ci/servers prometheus)")
    program = [sys.executable, "-m", "examples.telemetry.show_dashboard", str(PATIENCE)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=3 * PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
