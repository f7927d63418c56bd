"""Asks a real Prometheus each query of dashboard.json while flows run, and draws the answers.

    PATH=$PATH:$(.ci/servers prometheus) python -m examples.telemetry.show_dashboard 30 dashboard.svg

It prints how many series each query has. The status is 1 where a query is refused, or has none after so many seconds;
without a picture it ends once each has some.
"""

from __future__ import annotations

import html
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import start_http_server

from reactive_runtime import Flow
from reactive_runtime.telemetry import export, observe

DASHBOARD = Path(__file__).with_name("dashboard.json")


def main(seconds: float, picture: Path | None) -> int:
    """Run flows and server; the status of the program."""
    export(MeterProvider([PrometheusMetricReader()]))
    figures, _ = start_http_server(0, "127.0.0.1")
    stop = threading.Event()
    flows = [threading.Thread(target=run_until, args=(stop, flow)) for flow in (orders, prices, imports)]
    begin = time.time()
    with prometheus(figures.server_port) as ask:
        for thread in flows:
            thread.start()
        while True:
            time.sleep(1)
            panels = [ask.panel(panel, begin) for panel in json.loads(DASHBOARD.read_text())["panels"]]
            if time.time() - begin > seconds or (picture is None and complete(panels)):
                break
        stop.set()
        for thread in flows:
            thread.join()
    figures.shutdown()
    for panel in panels:
        for query, series in panel.answers:
            print(f"{len(series):3} series  {panel.title}: {query}")
    if picture is not None:
        picture.write_text(drawn(panels), encoding="utf-8")
    return 0 if complete(panels) else 1


def complete(panels: list[Panel]) -> bool:
    """Whether each query has series."""
    return all(series for panel in panels for _, series in panel.answers)


# -- flows, of which one has a slow stage, one fails at times, and one drops ----------------------------------


def run_until(stop: threading.Event, flow: Any) -> None:
    """Run the flow again and again."""
    with ThreadPoolExecutor(4, flow.__name__) as pool:
        while not stop.is_set():
            flow(pool).block(timeout=60)


def orders(pool: ThreadPoolExecutor) -> Flow[int]:
    """Writes slowly."""

    def write(n: int) -> int:
        time.sleep(0.01)
        return n

    return observe(Flow.range(100).subscribe_on(pool).publish_on(pool).map(write).named("write"), "orders")


def prices(pool: ThreadPoolExecutor) -> Flow[int]:
    """Asks four at a time, fails once, and keeps only the newest."""
    left = iter([True])

    def ask(n: int) -> int:
        time.sleep(0.02)
        if n == 20 and next(left, False):
            raise OSError("no answer")
        return n

    calls = Flow.range(50).map_parallel(ask, pool, concurrency=3).named("ask").retry(1)
    return observe(calls.on_overflow_buffer(2, drop="oldest"), "prices").publish_on(pool, prefetch=1).delay(0.1)


def imports(pool: ThreadPoolExecutor) -> Flow[int]:
    """Reads quickly, and is asked for a portion at a time."""
    return observe(Flow.range(20_000).map(lambda n: n + 1).publish_on(pool), "imports").limit_rate(64)


# -- the server -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel's title and unit, and for each of its queries the series: pairs of time and value."""

    title: str
    unit: str
    answers: list[tuple[str, dict[str, list[tuple[float, float]]]]]


class Asked:
    """A Prometheus that is running."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def panel(self, panel: dict[str, Any], begin: float) -> Panel:
        unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "")
        return Panel(panel["title"], unit, [(t["expr"], self.series(t["expr"], begin)) for t in panel["targets"]])

    def series(self, query: str, begin: float) -> dict[str, list[tuple[float, float]]]:
        """The answer to the query, from `begin` to now; Grafana's variables are replaced as it does."""
        query = query.replace("$__rate_interval", "5s").replace("$flow", ".*")
        asked = urllib.parse.urlencode({"query": query, "start": begin, "end": time.time(), "step": 1})
        with urllib.request.urlopen(f"{self.url}/api/v1/query_range?{asked}", timeout=30) as answer:
            rows = json.load(answer)["data"]["result"]
        return {" ".join(row["metric"].values()): [(float(t), float(v)) for t, v in row["values"]] for row in rows}


@contextmanager
def prometheus(figures: int) -> Iterator[Asked]:
    """A Prometheus of the PATH that reads the figures from this port each second."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "prometheus.yml")
        settings.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: flows, static_configs: [{{targets: ['127.0.0.1:{figures}']}}]}}]\n"
        )
        options = [f"--config.file={settings}", f"--storage.tsdb.path={folder}/data"]
        listens = f"--web.listen-address=127.0.0.1:{port}"
        with subprocess.Popen(["prometheus", *options, listens], stderr=subprocess.DEVNULL) as server:
            try:
                asked = Asked(port)
                while not asked.ready():
                    if server.poll() is not None:
                        raise ChildProcessError(f"prometheus ended with status {server.returncode}")
                    time.sleep(0.1)
                yield asked
            finally:
                server.terminate()


def free_port() -> int:
    """A port of this machine that is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


# -- the picture ----------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 460, 170
LINES = ("#2563eb", "#dc2626", "#16a34a", "#9333ea", "#ea580c", "#0891b2", "#4b5563", "#ca8a04")


def drawn(panels: list[Panel]) -> str:
    """All panels, two in a row."""
    rows = (len(panels) + 1) // 2
    places = [(20 + n % 2 * (WIDTH + 20), 20 + n // 2 * (HEIGHT + 60)) for n in range(len(panels))]
    boxes = [drawn_panel(panel, x, y) for panel, (x, y) in zip(panels, places, strict=True)]
    size = f"0 0 {2 * WIDTH + 60} {rows * (HEIGHT + 60) + 20}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" font-size="11">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *boxes, "</svg>\n"])


def drawn_panel(panel: Panel, x: int, y: int) -> str:
    """One panel: a line for each series, and its name below."""
    lines = [line for _, series in panel.answers for line in series.items()]
    points = [point for _, values in lines for point in values if point[1] == point[1]]
    first, last = min((t for t, _ in points), default=0), max((t for t, _ in points), default=1)
    top = max((value for _, value in points), default=1) or 1
    parts = [
        f'<text x="{x}" y="{y + 10}" font-weight="bold">{html.escape(panel.title)}</text>',
        f'<rect x="{x}" y="{y + 18}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#cbd5e1"/>',
        f'<text x="{x + 4}" y="{y + 30}" fill="#64748b">{top:.3g} {html.escape(panel.unit)}</text>',
    ]
    for n, (name, values) in enumerate(lines[: len(LINES)]):
        where = " ".join(
            f"{x + (t - first) / ((last - first) or 1) * WIDTH:.0f},{y + 18 + HEIGHT - value / top * (HEIGHT - 20):.0f}"
            for t, value in values
            if value == value
        )
        parts.append(f'<polyline points="{where}" fill="none" stroke="{LINES[n]}" stroke-width="1.5"/>')
        left, line = x + n % 3 * WIDTH // 3, y + HEIGHT + 31 + n // 3 * 13
        parts.append(f'<text x="{left}" y="{line}" fill="{LINES[n]}">{html.escape(name[:26] or "all")}</text>')
    return "\n".join(parts)


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
