"""For tests: drive publishers step by step, record what passes between them and subscribers, judge it by the rules."""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.testing._blocking.detector import BlockingCallError, no_blocking
from reactive_runtime.testing._buffers import Chunk
from reactive_runtime.testing._checker import RuleChecker, Violation, check
from reactive_runtime.testing._probe import Probe
from reactive_runtime.testing._publisher import TestPublisher
from reactive_runtime.testing._recorder import Recorder
from reactive_runtime.testing._records import Record, Signal, SubscriptionMetadata
from reactive_runtime.testing._rule_checks import RULES
from reactive_runtime.testing._steps import StepVerifier

__all__ = [
    "RULES",
    "BlockingCallError",
    "Chunk",
    "Probe",
    "Record",
    "Recorder",
    "RuleChecker",
    "Signal",
    "StepVerifier",
    "SubscriptionMetadata",
    "TestPublisher",
    "Violation",
    "check",
    "no_blocking",
]

_all_at_home(globals())
