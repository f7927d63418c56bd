"""For tests: record what passes between publishers and subscribers, and judge it by the rules."""

from reactive_runtime.testing.checker import RuleChecker, Violation, check
from reactive_runtime.testing.recorder import Chunk, Recorder
from reactive_runtime.testing.records import Facts, Record, Signal
from reactive_runtime.testing.rules import RULES

__all__ = ["RULES", "Chunk", "Facts", "Record", "Recorder", "RuleChecker", "Signal", "Violation", "check"]
