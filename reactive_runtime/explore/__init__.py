"""The schedule explorer."""

from reactive_runtime.explore.exploration import explore, replay
from reactive_runtime.explore.scenario import Scenario
