"""Publishers under load: scenarios, the load, and broken subscriptions to try the harness on."""

from reactive_runtime.stress.declaring import WORKLOADS, Context, Scenario, Workload, find, scenario
from reactive_runtime.stress.faults import FAULTS, answered, planted, verdict_on
from reactive_runtime.stress.harness import Failure, Load, Result, run

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
