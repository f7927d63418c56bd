"""Metrics of running flows for OpenTelemetry, and the operator that slows a flow down (its bottleneck).

`observe` makes an observed flow, which keeps metrics; `export` gives the metrics of all observed flows to
OpenTelemetry. `export` needs the extra `otel`; `observe` needs the standard library only.
"""

from reactive_runtime._support.public_names import at_home as _at_home
from reactive_runtime.telemetry._exporting import export
from reactive_runtime.telemetry._observing import Bottleneck, ObservedFlow, observe

__all__ = ["Bottleneck", "ObservedFlow", "export", "observe"]

_at_home(__name__, Bottleneck, ObservedFlow, export, observe)
