"""The exceptions of the package, as a tree.

    ReactiveError
    ├── RejectedError           an executor would not run, or never ran, the work of a stream
    ├── CircuitOpenError        a `CircuitBreaker` is open: the service failed too often
    ├── BulkheadFullError       a `Bulkhead` has no room, and too many subscriptions wait
    ├── ProtocolError           a foreign publisher or subscriber broke a rule
    │   └── SubscriberError     a subscriber raised out of a signal (2.13)
    ├── SparkError              a job of Spark failed, or rows do not fit their schema
    ├── TraceError              a recorded run can't be read or written
    ├── ScenarioError           a scenario can't be loaded or run
    ├── ExploreError            a program can't be explored, or a schedule can't be replayed
    ├── TargetError             a name given to the command names nothing that it can work on
    └── MissingDependencyError  something outside this package is needed and not there

Wrong arguments are Python's own `TypeError` and `ValueError`.
"""

from __future__ import annotations

__all__ = [
    "BulkheadFullError",
    "CircuitOpenError",
    "ExploreError",
    "MissingDependencyError",
    "ProtocolError",
    "ReactiveError",
    "RejectedError",
    "ScenarioError",
    "SparkError",
    "SubscriberError",
    "TargetError",
    "TraceError",
]


class ReactiveError(Exception):
    """The root: whatever goes wrong inside the package, but for wrong arguments."""


class RejectedError(ReactiveError, RuntimeError):
    """An executor refused a task of a stream, or dropped it from its queue.

    Arrives through `on_error`; the executor's own exception, where there is one, is the `__cause__`.
    """


class CircuitOpenError(ReactiveError):
    """A `CircuitBreaker` refused a subscription: the service failed too often; the message says when it may again."""


class BulkheadFullError(ReactiveError):
    """A `Bulkhead` refused a subscription: as many as may are under way, and as many as may wait."""


class ProtocolError(ReactiveError):
    """A foreign publisher or subscriber broke a rule of the protocol; the message names the rule."""


class SubscriberError(ProtocolError):
    """A subscriber raised out of one of its signals (2.13); what it raised is the `__cause__`."""


class SparkError(ReactiveError):
    """A job of Spark failed, or an element does not fit the schema; the message begins with the reason.

    What Spark raised, with the Java stack, is the `__cause__`.
    """


class TraceError(ReactiveError):
    """A recorded run can't be read or written; the message names the file."""


class ScenarioError(ReactiveError):
    """A scenario, of stress or of the explorer, can't be found, loaded or run; the message names it."""


class ExploreError(ReactiveError):
    """A program does what the explorer can't order, or a schedule can't be replayed; the message says which."""


class TargetError(ReactiveError):
    """What a name given to the command names can't be imported, or worked on; the message says which."""


class MissingDependencyError(ReactiveError, ImportError):
    """A library or a program outside this package is needed; the message says how to install it."""
