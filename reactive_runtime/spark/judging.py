"""Each rule of docs/judging.md, as SQL over the records of a subscription.

The plan has one shuffle, by run and subscription, and one sort, by `begin`. Over that order a single window says
for each record what came before it; from this and the record alone, each rule is a condition that is true where the
record breaks it. A second aggregation on the same keys, which moves nothing, says which rules each subscription broke.

What every row has to carry through the shuffle is little: numbers and flags, no text. How often a rule was broken, and
where first, is counted in a second pass, over the subscriptions that broke one: there are few of them, or the count is
not what matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reactive_runtime.spec import MAX_DEMAND
from reactive_runtime.testing.records import Signal
from reactive_runtime.testing.rules import RECURSION, RULES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["DEFINITIONS", "KEYS", "breaches", "together", "violations"]

FOREVER: Final = 2**63 - 1
OPEN: Final = 2**62
"""A call that has not returned ends at FOREVER - begin, beyond OPEN: of two such, the first to begin is the later."""

KEYS: Final = ("run", "scenario", "subscription")


# -- what a record is, and what came before it ---------------------------------------------------------------


_KIND: Final = {signal: code for code, signal in enumerate(Signal)}
_SIGNAL: Final = "kind <= 3"
_CALL: Final = "kind in (4, 5)"
_TERMINAL: Final = "kind in (2, 3)"
_INVALID: Final = "kind = 4 and (n is null or n <= 0)"
assert [signal for signal in Signal if _KIND[signal] <= 3] == ["on_subscribe", "on_next", "on_error", "on_complete"]
assert (_KIND[Signal.REQUEST], _KIND[Signal.CANCEL]) == (4, 5)

_FLAGS: Final = {
    "shared_callers": "shared_callers",
    "ascending": "ascending",
    # The error of an on_error is one that was signalled, unless it says that it was raised.
    "raised": "error is not null and (signal != 'on_error' or error like 'raised %')",
    "deep": f"depth > {RECURSION}",
}
"""What is known of a record; they cross the shuffle in one number, above the three bits of its kind."""

_LATE_BITS: Final = 3 + len(_FLAGS)

_PAST: Final = {
    "delivered": "count_if(kind = 1)",
    "requested": "try_sum(if(kind = 4 and n > 0, n, 0L))",  # null once it is past 64 bits
    "largest": "max(if(kind = 1, value, null))",
    "subscribed": "count_if(kind = 0)",
    "first_end": f"min(if({_TERMINAL}, begin, null))",
    "end_end": f"first_value(if({_TERMINAL}, end, null)) ignore nulls",
    "end_thread": f"first_value(if({_TERMINAL}, thread, null)) ignore nulls",
    "cancel_begun": "max(if(kind = 5, begin, null))",
    "cancel_end": f"min(if(kind = 5 and end < {OPEN}, end, null))",
    "signals_end": f"max(if({_SIGNAL} and kind > 0, end, null))",
    "subscribe_begin": "max(if(kind = 0, begin, null))",
    "subscribe_end": "max(if(kind = 0, end, null))",
    "subscribe_thread": "max_by(thread, if(kind = 0, end, null))",
    "request_begin": "max(if(kind = 4, begin, null))",
    "calls_end": f"max(if({_CALL}, end, null))",
    "calls_thread": f"max_by(thread, if({_CALL}, end, null))",
    "signal_thread": f"last_value(if({_SIGNAL}, thread, null)) ignore nulls",
    "invalid_begin": f"min(if({_INVALID}, begin, null))",
    "invalid_end": f"first_value(if({_INVALID}, end, null)) ignore nulls",
    "gave_up": "max(if(raised and kind <= 4, if(kind = 4, 1, 2), 0))",
}
"""What is known at the `begin` of a record of the earlier records of its subscription."""


def together(signals: DataFrame, late_signals: int = 1) -> DataFrame:
    """The columns that are judged, brought together by subscription. `late_signals`: where a record does not say."""
    from pyspark.sql import functions as F

    kind = " ".join(f"when '{signal.value}' then {code}" for signal, code in _KIND.items())
    flags = " + ".join(f"if({text}, {8 << place}, 0)" for place, text in enumerate(_FLAGS.values()))
    packed = signals.select(
        "run",
        "scenario",
        "subscription",
        F.expr(
            f"case signal {kind} end + {flags} + shiftleft(coalesce(late_signals, {late_signals}), {_LATE_BITS})"
        ).alias("flags"),
        "elements",
        "thread",
        "n",
        "begin",
        F.expr(f"coalesce(end, {FOREVER} - begin)").alias("end"),
        F.expr("if(signal = 'cancel', end_ns, begin_ns)").alias("ns"),
        "value",
    )
    unpacked = {"kind": "flags & 7"} | {name: f"flags & {8 << place} != 0" for place, name in enumerate(_FLAGS)}
    unpacked["promised"] = f"shiftright(flags, {_LATE_BITS})"
    # A number of partitions that adaptive execution leaves alone: sorting is cheapest where a partition fits the
    # processor's cache, far below the size that moving it would ask for.
    partitions = int(signals.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    moved = packed.repartition(partitions, "subscription", "run")
    return moved.withColumns({name: F.expr(text) for name, text in unpacked.items()}).drop("flags")


def _with_the_past(rows: DataFrame) -> DataFrame:
    earlier = "over (partition by subscription, run order by begin rows between unbounded preceding and 1 preceding)"
    return rows.selectExpr("*", *(f"{text} {earlier} as {name}" for name, text in _PAST.items()))


# -- the rules ------------------------------------------------------------------------------------------------

_DELIVERED: Final = "coalesce(delivered, 0)"

_REQUESTED: Final = f"if(gave_up is null, 0L, coalesce(requested, {MAX_DEMAND}L))"
"""The sum of valid demand, capped (3.17); 0 at the first record of a subscription, which has no past."""

_SUBSCRIBED: Final = "subscribe_end is not null"

_OWING: Final = "kind = 7 and first_end is null and cancel_begun is null and coalesce(gave_up, 0) != 2"
"""Settled, and neither ended nor cancelled, and the subscriber has raised nothing (2.13): what is unmet is owed."""

_UNANSWERED: Final = "invalid_begin is not null and (first_end is null or invalid_begin < first_end)"
"""There was an invalid request before any end; without a cancel so far, it was before any cancel as well."""

_UNMET: Final = f"{_OWING} and invalid_begin is null and coalesce(gave_up, 0) = 0 and {_DELIVERED} < {_REQUESTED}"

_ALL: Final = f"coalesce({_DELIVERED} >= elements, false)"
"""The publisher has delivered all it has."""

_INSIDE: Final = "signal_thread <=> thread and greatest(coalesce(signals_end, 0), coalesce(subscribe_end, 0)) > begin"
"""Of a call: it comes from inside a signal of its thread."""

_AGAIN: Final = f"kind = 5 and coalesce(cancel_end < begin, false) and (raised or end > {OPEN})"

DEFINITIONS: Final[dict[str, str]] = {
    "1.1": f"kind = 1 and {_DELIVERED} + 1 > {_REQUESTED}",
    "1.2": f"{_UNMET} and elements is null and {_REQUESTED} < {MAX_DEMAND}L",
    "1.3": f"{_SIGNAL} and (coalesce(signals_end > begin, false)"
    " or coalesce(subscribe_end > begin and subscribe_thread != thread, false))",
    "1.4": f"{_OWING} and invalid_begin is null and gave_up = 1",
    "1.5": f"{_UNMET} and {_ALL}",
    "1.6": "kind = 1 and coalesce(request_begin > first_end, false)",
    "1.7": f"{_SIGNAL} and first_end is not null",
    "1.9": f"(kind in (1, 2, 3, 7) and not {_SUBSCRIBED}) or (kind = 6 and raised)",
    "2.3": f"{_CALL} and coalesce(end_end > begin and end_thread = thread, false)",
    "2.4": "kind = 4 and not shared_callers and coalesce(end_end < begin, false)",
    "2.5": "kind = 7 and subscribed > 1 and coalesce(cancel_begun, 0) < subscribe_begin",
    "2.7": f"{_CALL} and not shared_callers and coalesce(calls_end > begin and calls_thread != thread, false)",
    "2.12": f"kind = 0 and {_SUBSCRIBED}",
    "3.2": f"kind = 4 and end > {OPEN} and {_INSIDE}",
    "3.3": "kind = 1 and deep",
    "3.7": _AGAIN,
    "3.8": f"{_UNMET} and not {_ALL} and elements is not null and {_REQUESTED} < {MAX_DEMAND}L",
    "3.9": f"{_OWING} and {_UNANSWERED}",
    "3.16": f"{_CALL} and raised and not ({_AGAIN})",
    "3.17": f"{_UNMET} and not {_ALL} and {_REQUESTED} = {MAX_DEMAND}L",
    "conservation": "(kind = 1 and (coalesce(ascending and value = largest, false)"
    f" or coalesce({_DELIVERED} + 1 > elements, false)))"
    f" or (kind = 3 and cancel_begun is null and coalesce({_DELIVERED} < elements, false))",
    "order": "kind = 1 and coalesce(ascending and value < largest, false)",
}
"""When a record breaks a rule: docs/judging.md in SQL. 1.8, 3.6 and a part of 3.9 are judged by the subscription."""

_BITS: Final = {rule: 1 << place for place, rule in enumerate(DEFINITIONS)}

_LATE: Final = f"{_SIGNAL} and coalesce(cancel_end < begin, false)"

_ALLOWED: Final = {
    "late": _LATE,  # 1.8: the signal began after a cancel had returned
    "asked": f"kind = 1 and {_LATE} and coalesce(request_begin > cancel_end, false)",  # 3.6: and after a later request
    # 3.9: the element began after an invalid request had returned
    "after": f"kind = 1 and cancel_begun is null and {_UNANSWERED} and coalesce(invalid_end < begin, false)",
}
"""What is allowed to happen a few times: counted for the subscription."""

_KEPT: Final = (
    *KEYS,
    "kind",
    "begin",
    "end",
    "ns",
    "thread",
    "promised",
    "signal_thread",
    "signals_end",
    "subscribe_end",
)
"""What the aggregation needs of a record, beside what it breaks."""


def _marked(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    mask = " | ".join(f"if({breaks}, {_BITS[rule]}, 0)" for rule, breaks in DEFINITIONS.items())
    counted = [F.expr(text).alias(name) for name, text in _ALLOWED.items()]
    return rows.select(*_KEPT, F.expr(mask).alias("broken"), *counted)


def breaches(signals: DataFrame, late_signals: int = 1) -> DataFrame:
    """For each subscription one row: which rules it broke, and what it amounted to."""
    from pyspark.sql import functions as F

    marked = _marked(_with_the_past(together(signals, late_signals)))
    allowed = "if(cancel_inside, 0, promised)"
    found = marked.groupBy("subscription", "run", "scenario").agg(F.expr("bit_or(broken)").alias("bits"), *_amounts())
    return found.withColumns(
        {
            "cancel_inside": F.expr("first_cancel % 2 = 0"),
            "silence_ns": F.expr("if(late > 0, greatest(last_late_ns - first_cancel_ns, 0), 0)"),
        }
    ).withColumns(  # 0 where it is within what is allowed
        {
            "too_late": F.expr(f"if(late > {allowed}, late, 0)"),
            "too_asked": F.expr(f"if(asked > {allowed}, asked, 0)"),
            "too_after": F.expr("if(after > 1, after, 0)"),
        }
    )


_FEW: Final = 1_000
"""Subscriptions that are looked up by their numbers."""


def violations(signals: DataFrame, found: DataFrame) -> DataFrame:
    """One row for each rule broken in each subscription: run, scenario, subscription, rule, count, first.

    `found` are the breaches of `signals`; they are looked at twice, and should be kept (`persist`).
    """
    from pyspark.sql import functions as F

    ids = ["run", "subscription"]
    broken = found.where("bits != 0").select(*ids)
    suspects = signals.join(F.broadcast(broken), ids, "left_semi")
    few = broken.limit(_FEW + 1).collect()
    if len(few) <= _FEW:  # then the files need not be read as a whole
        for name in ids:
            suspects = suspects.where(F.col(name).isin({row[name] for row in few}))
    marked = _marked(_with_the_past(together(suspects))).where("broken != 0")
    each = F.array(*(F.when(F.expr(f"broken & {bit} != 0"), F.lit(rule)) for rule, bit in _BITS.items()))
    by_record = (
        marked.select(*KEYS, "begin", F.explode(F.array_compact(each)).alias("rule"))
        .groupBy(*KEYS, "rule")
        .agg(F.count("*").alias("count"), F.min("begin").alias("first"))
    )
    by_subscription = found.select(
        *KEYS,
        F.explode(
            F.array(
                *(
                    F.struct(
                        F.lit(rule).alias("rule"),
                        F.col(f"too_{what}").cast("long").alias("count"),
                        F.col(f"first_{what}").alias("first"),
                    )
                    for rule, what in (("1.8", "late"), ("3.6", "asked"), ("3.9", "after"))
                )
            )
        ).alias("broken"),
    ).select(*KEYS, "broken.*")
    return (
        by_record.unionByName(by_subscription.where("count > 0"))
        .groupBy(*KEYS, "rule")
        .agg(F.sum("count").alias("count"), F.min("first").alias("first"))
    )


def _amounts() -> list[Column]:
    """What a subscription amounted to."""
    from pyspark.sql import functions as F

    texts = {
        "signals": f"count_if({_SIGNAL})",
        "elements": "count_if(kind = 1)",
        "requests": "count_if(kind = 4)",
        "cancels": "count_if(kind = 5)",
        "completed": "count_if(kind = 3) > 0",
        "failed": "count_if(kind = 2) > 0",
        # The first cancel to end: for every signal that is late it is the same one.
        # Whether it came from outside is the last bit, so that the minimum is of one number.
        "first_cancel": f"min(if(kind = 5 and end < {OPEN}, end * 2 + if({_INSIDE}, 0, 1), null))",
        "first_cancel_ns": f"min(if(kind = 5 and end < {OPEN}, ns, null))",
        "promised": "max(promised)",
        "last_late_ns": "max(if(late, ns, null))",
    }
    for name in _ALLOWED:
        texts[name] = f"count_if({name})"
        texts[f"first_{name}"] = f"min(if({name}, begin, null))"
    return [F.expr(text).alias(name) for name, text in texts.items()]


assert DEFINITIONS.keys() | {"1.8", "3.6"} == RULES.keys()
