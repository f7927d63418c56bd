"""The fast judge of recorded runs: numpy over Arrow columns, without Spark. Needs numpy and pyarrow, on import."""

from reactive_runtime.judging.files import Plan, plan
from reactive_runtime.judging.gathering import Gathered
from reactive_runtime.judging.here import judge_runs, shown
from reactive_runtime.judging.kernel import SUBSCRIPTIONS, VIOLATIONS, WAITS, Judged, judge
from reactive_runtime.judging.rows import PACKED, Rows

__all__ = [
    "PACKED",
    "SUBSCRIPTIONS",
    "VIOLATIONS",
    "WAITS",
    "Gathered",
    "Judged",
    "Plan",
    "Rows",
    "judge",
    "judge_runs",
    "plan",
    "shown",
]
