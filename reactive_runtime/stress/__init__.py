"""Publishers under fire: scenarios, the load, and broken subscriptions to try the harness on."""

from reactive_runtime.stress.faults import FAULTS, planted
from reactive_runtime.stress.harness import Load, Tally, run
from reactive_runtime.stress.scenario import Rig, Scenario, find, scenario

__all__ = ["FAULTS", "Load", "Rig", "Scenario", "Tally", "find", "planted", "run", "scenario"]
