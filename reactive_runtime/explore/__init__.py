"""The schedule explorer: finds races by order, repeats them, makes them small, and draws them.

explore             run a program of threads under many schedules
explore_publisher   the same for a publisher, judged by the rules
replay              one schedule again
"""

from reactive_runtime.explore.exploration import explore, replay
from reactive_runtime.explore.publisher_scenario import (
    Call,
    Driven,
    call,
    cancel,
    explore_publisher,
    programs,
    publisher_scenario,
    request,
    subscribe,
)
from reactive_runtime.explore.results import BrokenRule, Failure, Result, ScheduleFailed, Verdict
from reactive_runtime.explore.scenario import Scenario

__all__ = [
    "BrokenRule",
    "Call",
    "Driven",
    "Failure",
    "Result",
    "Scenario",
    "ScheduleFailed",
    "Verdict",
    "call",
    "cancel",
    "explore",
    "explore_publisher",
    "programs",
    "publisher_scenario",
    "replay",
    "request",
    "subscribe",
]
