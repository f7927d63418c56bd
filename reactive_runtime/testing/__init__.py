"""For tests: drive publishers step by step, record what passes between them and subscribers, judge it by the rules."""

from reactive_runtime.testing.checker import RuleChecker, Violation, check
from reactive_runtime.testing.probe import Probe
from reactive_runtime.testing.publisher import TestPublisher
from reactive_runtime.testing.recorder import Chunk, Recorder
from reactive_runtime.testing.records import Record, Signal, SubscriptionMetadata
from reactive_runtime.testing.rule_checks import RULES
from reactive_runtime.testing.steps import StepVerifier

__all__ = [
    "RULES",
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
]
