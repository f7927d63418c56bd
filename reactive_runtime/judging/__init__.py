"""The fast judge of recorded runs: numpy over Arrow columns, without Spark. Needs numpy and pyarrow, on import."""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.judging._files import Plan, plan
from reactive_runtime.judging._gathering import Gathered
from reactive_runtime.judging._here import judge_runs, shown
from reactive_runtime.judging._kernel import SUBSCRIPTIONS, VIOLATIONS, WAITS, Judged, judge
from reactive_runtime.judging._rows import PACKED, Rows
from reactive_runtime.testing._rule_checks import RULES_VERSION

__all__ = [
    "PACKED",
    "RULES_VERSION",
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

_all_at_home(globals())
