"""Publishers under fire: scenarios, the load, and broken subscriptions to try the harness on."""

from reactive_runtime.stress.faults import FAULTS, answered, planted, verdict_on
from reactive_runtime.stress.harness import Failure, Load, Tally, run
from reactive_runtime.stress.scenario import MIXES, Mix, Rig, Scenario, find, scenario

__all__ = [
    "FAULTS",
    "MIXES",
    "Failure",
    "Load",
    "Mix",
    "Rig",
    "Scenario",
    "Tally",
    "answered",
    "find",
    "planted",
    "run",
    "scenario",
    "verdict_on",
]
