"""The schedule explorer: finds races by order, repeats them, makes them small, and draws them.

explore             run a program of threads under many schedules
explore_publisher   the same for a publisher, judged by the rules
check_linearizable  the same for an object that threads share, judged by a model of it
replay              one schedule again
"""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.explore._checks.histories import Invocation
from reactive_runtime.explore._checks.linearizability import Operation, check_linearizable, invoke, operations_scenario
from reactive_runtime.explore._checks.observations import NeverObserved, Outcome, reachable, sometimes, unreachable
from reactive_runtime.explore._checks.publisher_scenario import (
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
from reactive_runtime.explore._checks.scenario import Scenario
from reactive_runtime.explore._exploration import explore, replay
from reactive_runtime.explore._results import BrokenRule, Failure, Result, ScheduleFailed, Verdict

__all__ = [
    "BrokenRule",
    "Call",
    "Driven",
    "Failure",
    "Invocation",
    "NeverObserved",
    "Operation",
    "Outcome",
    "Result",
    "Scenario",
    "ScheduleFailed",
    "Verdict",
    "call",
    "cancel",
    "check_linearizable",
    "explore",
    "explore_publisher",
    "invoke",
    "operations_scenario",
    "programs",
    "publisher_scenario",
    "reachable",
    "replay",
    "request",
    "sometimes",
    "subscribe",
    "unreachable",
]

_all_at_home(globals())
