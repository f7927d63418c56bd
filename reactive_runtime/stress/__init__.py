"""Publishers under load: scenarios, the load, and broken subscriptions to try the harness on."""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.stress._declaring import WORKLOADS, Context, Scenario, Workload, find, scenario
from reactive_runtime.stress._faults import FAULTS, answered, planted, verdict_on
from reactive_runtime.stress._harness import Failure, Load, Result, run

__all__ = [
    "FAULTS",
    "WORKLOADS",
    "Context",
    "Failure",
    "Load",
    "Result",
    "Scenario",
    "Workload",
    "answered",
    "find",
    "planted",
    "run",
    "scenario",
    "verdict_on",
]

_all_at_home(globals())
