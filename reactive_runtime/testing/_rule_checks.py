"""The table of rules that a trace can break: the condition of each, the columns it needs, and when a breach is known.

A rule stands here, once. Its condition is a row of docs/judging.md (a test holds them equal, and writes the row);
reports show its sentence. `reactive_runtime.testing._reference` judges by it, a record at a time;
`reactive_runtime.judging._kernel` gives the same verdict on whole columns. CONTRIBUTING.md says how to add one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from reactive_runtime import rules

__all__ = ["RECURSION", "RULES", "RULES_VERSION", "TABLE", "Rule"]

RECURSION: Final = 16
"""3.3: an `on_next` may be inside of so many recorded calls of its subscription, nested on one thread."""


@dataclass(frozen=True)
class Rule:
    """One check of a trace."""

    id: str
    broken: str
    """The condition: a record breaks the rule when this is so. The words in italics are defined in docs/judging.md."""
    needs: tuple[str, ...] = ()
    """The columns of a trace that it looks at, beside those that say which record it is: run, subscription, signal and
    begin."""
    known: Literal["at once", "at the end", "both"] = "at once"
    """When a breach is known. "at once": at the `begin` of the record, and nothing later takes it back. "at the end":
    when the subscription is over, which a `settled` says, or an `end` of none. "both": some at once, others at the
    end."""
    own: str = ""
    """The sentence, of a check that is no rule of Reactive Streams."""

    @property
    def asks(self) -> str:
        """What is asked, in one sentence."""
        return self.own or rules.RULES[self.id]


TABLE: Final = (
    Rule(
        "1.1",
        "it is an `on_next`, and the number of `on_next` up to and with it exceeds the sum of all valid `n` of earlier"
        " `request`s",
        ("n",),
    ),
    Rule(
        "1.2",
        "it is a `settled` that *finds demand unmet*, of fewer than MAX_DEMAND, and the number of elements is unknown",
        ("n", "elements"),
        known="at the end",
    ),
    Rule(
        "1.3",
        "it is a signal, and an earlier signal other than `on_subscribe` has not ended at `b`; or an earlier"
        " `on_subscribe` of another thread has not ended at `b` (on the same thread `request` inside `on_subscribe` may"
        " emit, 3.2)",
        ("end", "thread"),
    ),
    Rule(
        "1.4",
        "it is a `settled` that is *owed* something, with no earlier invalid `request`, and an earlier one raised",
        ("error",),
        known="at the end",
    ),
    Rule(
        "1.5",
        "it is a `settled` that finds demand unmet, and all `elements` were delivered: the end is missing",
        ("n", "elements"),
        known="at the end",
    ),
    Rule("1.6", "it is an `on_next`, and there is a `request` that began after the first `on_error` or `on_complete`"),
    Rule("1.7", "it is a signal, and there is an earlier `on_error` or `on_complete`"),
    Rule(
        "1.8",
        "it is a *late* signal, and there are more late signals than are *allowed*: then all of them break the rule",
        ("end", "thread", "late_signals"),
    ),
    Rule(
        "1.9",
        "it is an `on_next`, `on_error` or `on_complete` with no earlier `on_subscribe`; or a `subscribe` that raised;"
        " or a `settled` without an earlier `on_subscribe`",
        ("error",),
        known="both",
    ),
    Rule(
        "2.3",
        "it is a call from inside an end: the first earlier `on_error` or `on_complete` is of the same thread, and has"
        " not ended at `b`",
        ("end", "thread"),
    ),
    Rule(
        "2.4",
        "it is a `request`, callers are not shared, and the first earlier `on_error` or `on_complete` has ended before"
        " `b`",
        ("end", "shared_callers"),
    ),
    Rule(
        "2.5",
        "it is a `settled`, there was more than one `on_subscribe`, and no `cancel` began after the last of them did",
        known="at the end",
    ),
    Rule(
        "2.7",
        "it is a call, callers are not shared, and an earlier call of another thread has not ended at `b`",
        ("end", "thread", "shared_callers"),
    ),
    Rule("2.12", "it is an `on_subscribe` with an earlier one"),
    Rule("2.13", "it is a signal, has returned or raised, and its argument was None (`none`)", ("none",)),
    Rule(
        "3.2",
        "it is a `request` from inside a signal, and has no end: it never returned",
        ("end", "thread"),
        known="at the end",
    ),
    Rule(
        "3.3",
        f"it is an `on_next`, and began inside of more than {RECURSION} recorded calls of its subscription on its"
        " thread (`depth`)",
        ("depth",),
    ),
    Rule(
        "3.6",
        "it is a late `on_next`, a `request` began after the first `cancel` had ended, and there are more such records"
        " than late signals are allowed: then all of them break the rule",
        ("end", "thread", "late_signals"),
    ),
    Rule(
        "3.7",
        "it is a `cancel`, an earlier `cancel` has ended before `b`, and it raised, or never returned",
        ("end", "error"),
        known="both",
    ),
    Rule(
        "3.8",
        "it is a `settled` that finds demand unmet, of fewer than MAX_DEMAND, and fewer than `elements` were delivered",
        ("n", "elements"),
        known="at the end",
    ),
    Rule(
        "3.9",
        "it is a `settled` that is owed something, with an earlier invalid `request`; or it is an `on_next` that begins"
        " after the first invalid `request` has ended, with no earlier `cancel`, and there are two such or more (one"
        " may have been under way): then all of them break the rule",
        ("n", "end"),
        known="both",
    ),
    Rule("3.16", "it is a call that raised, and not for 3.7", ("error",)),
    Rule(
        "3.17",
        "it is a `settled` that finds demand unmet, of MAX_DEMAND or more, and not all `elements` were delivered, or"
        " their number is unknown",
        ("n", "elements"),
        known="at the end",
    ),
    Rule(
        "conservation",
        "it is an `on_next` of an ascending subscription that repeats the largest earlier value; or an `on_next` beyond"
        " `elements`; or an `on_complete` with fewer than `elements` delivered and no earlier `cancel`",
        ("value", "large_value", "ascending", "elements"),
        own="no element is delivered twice, and none is lost before on_complete",
    ),
    Rule(
        "order",
        "it is an `on_next` of an ascending subscription whose value is smaller than the largest earlier one",
        ("value", "large_value", "ascending"),
        own="elements come in the order of the source",
    ),
)
"""All checks, in the order in which they are shown."""

RULES_VERSION: Final = 1
"""The version of the rules: raised with each change by which some trace gets another verdict, or a run has to record
more. A judge leaves runs that were recorded for a newer one to a newer judge. A verdict keeps the version by which it
was made, 0 where it is from before there was one. `tests/judging/test_rules_version.py` has a digest of verdicts."""

RULES: Final[dict[str, str]] = {rule.id: rule.asks for rule in TABLE}
"""What each asks, in one sentence."""
