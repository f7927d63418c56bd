"""Judges a trace, record by record, by docs/judging.md: the work and the memory for a record are constant.

Feed it the records of a subscription in order of `begin`; those of other subscriptions may come in between. The rules
are those of `reactive_runtime.testing._reference`; here is what is shown of a breach: the signals around it. `check`
judges a whole trace: a large one by columns first (`reactive_runtime.judging`), which finds the subscriptions that
break a rule, and then those by the reference, which says how. Traces on disk are judged by columns alone, with the same
verdict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from reactive_runtime import rules
from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime.testing._diagram import diagram
from reactive_runtime.testing._protocol import shown
from reactive_runtime.testing._records import Record, allowed_late, cut, in_order
from reactive_runtime.testing._reference import Finding, Reference
from reactive_runtime.testing._rule_checks import RULES

__all__ = ["RuleChecker", "Violation", "check"]

MANY: Final = 100_000
"""Up to so many records the reference alone is as quick: the judge by columns takes a quarter of a second to import."""


@dataclass
class Violation:
    """One rule, broken in one subscription, as often as `count` says."""

    rule: str
    run: str
    scenario: str
    subscription: int
    first: int
    """The `begin` of the record that broke it first."""
    seen: str
    """What was seen there, in words."""
    count: int = 1
    around: list[Record] = field(default_factory=list)
    """The records before the breach, the breach, and some that followed."""

    def __str__(self) -> str:
        head = f"rule {self.rule}: {RULES.get(self.rule) or rules.RULES[self.rule]}\n  seen: {self.seen}"
        where = f"  in subscription {self.subscription} of {self.scenario or self.run}, {self.count} time(s)"
        return "\n".join([head, where, diagram(self.around, self.first)] if self.around else [head, where])


class _Watched:
    """A subscription, and what was seen of it last."""

    __slots__ = ("following", "recent", "reference", "scenario", "violations")

    def __init__(self, scenario: str, late_signals: int, context: int) -> None:
        self.scenario = scenario  # as its first record has it
        self.reference = Reference(late_signals)
        self.recent: deque[Record] = deque(maxlen=context)
        self.following: list[tuple[Violation, int]] = []  # violations that still gather what follows
        self.violations: dict[str, Violation] = {}


class RuleChecker:
    """Turns records into violations.

    Args:
        late_signals: How many signals may follow a cancel that came from outside, 0 to 15, where the record does not
            say.
        context: How many records are shown of a breach: those before it, itself, and half as many that follow.

    Raises:
        TypeError: `late_signals` or `context` is no int.
        ValueError: `late_signals` is not from 0 to 15, or `context` is below 0.
    """

    def __init__(self, *, late_signals: int = 1, context: int = 6) -> None:
        allowed_late("check", late_signals)
        at_least("check", "context", 0, context)
        self._late_signals = late_signals
        self._context = context
        self._watched: dict[tuple[str, int], _Watched] = {}
        self.violations: list[Violation] = []
        """What was found so far, one entry for each rule broken in each subscription."""

    def feed(self, record: Record) -> None:
        """Judge one more record.

        Args:
            record: The next record of its subscription, in order of `begin`. Records of other subscriptions may come in
                between.
        """
        key = (record.run, record.subscription)
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = _Watched(record.scenario, self._late_signals, self._context)
        watched.recent.append(record)
        if watched.following:
            self._follow(watched, record)
        for finding in watched.reference.feed(record):
            self._found(watched, record, finding)

    def _found(self, watched: _Watched, record: Record, finding: Finding) -> None:
        violation = watched.violations.get(finding.rule)
        if violation is None:
            violation = Violation(
                finding.rule, record.run, watched.scenario, record.subscription, record.begin, finding.seen, 0
            )
            violation.around = list(watched.recent)
            watched.violations[finding.rule] = violation
            watched.following.append((violation, len(violation.around) + self._context // 2))
            self.violations.append(violation)
        violation.count += finding.times
        if finding.first.begin < violation.first:
            violation.first = finding.first.begin
            if finding.first not in violation.around:  # it lies further back than what is kept
                violation.around.insert(0, finding.first)

    @staticmethod
    def _follow(watched: _Watched, record: Record) -> None:
        for violation, _ in watched.following:
            violation.around.append(record)
        watched.following = [(item, most) for item, most in watched.following if len(item.around) < most]


def check(
    records: Iterable[Record], *, late_signals: int = 1, context: int = 6, upto: int | None = None
) -> list[Violation]:
    """The violations in a whole trace.

    More than 100,000 records are judged by columns where numpy and pyarrow are installed, and what breaks no rule is
    not looked at again: the violations are the same, in the same order.

    Args:
        records: The records, in any order.
        late_signals: How many signals may follow a cancel that came from outside, 0 to 15, where the record does not
            say.
        context: How many records are shown of a breach.
        upto: Judge what is known at this ticket (`reactive_runtime.testing._records.cut`). None: all of it.

    Returns:
        One entry for each rule that is broken in each subscription.

    Raises:
        TypeError: `records` is no iterable (a recorder is none), or `late_signals` or `context` is no int.
        ValueError: `late_signals` is not from 0 to 15, or `context` is below 0.
    """
    if not isinstance(records, Iterable):  # of callers without types
        instead = ": check(recorder.records())" if callable(getattr(records, "records", None)) else ""  # type: ignore[unreachable]
        raise TypeError(f"check: records are needed, not {shown(records)}{instead}")
    checker = RuleChecker(late_signals=late_signals, context=context)
    known = list(records) if upto is None else cut(records, upto)
    for record in in_order(_suspects(known, late_signals) if len(known) > MANY else known):
        checker.feed(record)
    return checker.violations


def _suspects(records: Sequence[Record], late_signals: int) -> Sequence[Record]:
    try:
        from reactive_runtime.judging._bulk import suspects
    except ImportError:  # of numpy or pyarrow, which are optional
        return records
    return suspects(records, late_signals)
