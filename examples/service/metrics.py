"""The metrics of a process, for a Prometheus that asks for them."""

from __future__ import annotations

import os

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import start_http_server

from reactive_runtime.telemetry import export

__all__ = ["serve"]


def serve() -> None:
    """Serve the metrics of all observed flows at METRICS_PORT, if the environment has it."""
    if port := os.environ.get("METRICS_PORT"):
        export(MeterProvider([PrometheusMetricReader()]))
        start_http_server(int(port), "127.0.0.1")
