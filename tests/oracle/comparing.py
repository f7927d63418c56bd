"""What two runs of a plan have in common; `ROWS` are the differences that docs/differences.md gives the reasons for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from oracle.plans import BETWEEN, BY_ITERATOR, HOLDING, LAZY, OVERTAKEN, SHARED, names
from reactive_runtime import MAX_DEMAND

__all__ = ["ROWS", "Row", "difference"]

Json = Any

EXACT = {
    "map", "starmap", "map_not_none", "handle", "enumerate", "scan", "batch", "pairwise", "transform", "filter", "distinct",
    "distinct_until_changed", "take", "take_while", "skip", "skip_while",
    "do_on_request", "do_on_next", "serialize", "finalize",
    "do_finally", "do_on_subscribe", "do_on_error", "do_on_complete", "do_on_cancel", "tap",
}
"""A chain of these asks its source for exactly the same, here and there."""


def requests(seen: list[Json]) -> dict[int, int]:
    """How much is asked for in all, by time; up to the end or the cancel."""
    total, by_time = 0, {}
    over = next((time for time, what, _ in seen if what in ("cancel", "end")), None)
    for time, what, n in seen:
        if time == over or total == MAX_DEMAND:
            break
        if what == "request":
            total = min(total + n, MAX_DEMAND)
            by_time[time] = total
    return by_time


def events(seen: list[Json]) -> list[Json]:
    """When a source is subscribed to, and when it ends or is cancelled."""
    return sorted([time, what] for time, what, _ in seen if what != "request")


def left_running(signals: list[Json], seen: list[Json]) -> bool:
    """Whether the flow is over, and a source is not."""
    end = next((it[0] for it in signals if it[1] != "next"), None)
    if end is None:
        return False
    begun = sum(1 for time, what, _ in seen if what == "subscribe")
    over = sum(1 for time, what, _ in seen if what in ("cancel", "end") and time <= end)
    return begun > over


def logged(log: list[Json]) -> dict[str, list[Json]]:
    """What the user's functions heard, by function; the number of requests is nobody's promise."""
    heard: dict[str, list[Json]] = {}
    for entry in log:
        if entry[1] != "request":
            heard.setdefault(entry[1].split()[0], []).append(entry)
    return heard


def plain(plan: Json, ours: Json, theirs: Json) -> str:
    """What differs; empty if nothing does."""
    if ours["signals"] != theirs["signals"]:
        return "signals"
    if logged(ours["log"]) != logged(theirs["log"]):
        return "log"
    exact = all(op[0] in EXACT for op in plan["ops"])
    for name in theirs["probes"]:
        here, there = ours["probes"].get(name, []), theirs["probes"][name]
        if left_running(ours["signals"], here) and "cache" not in names(plan):
            return "left running"
        if exact and events(here) != events(there):
            return "source"
        if [it for it in events(here) if it[1] == "subscribe"] != [it for it in events(there) if it[1] == "subscribe"]:
            return "subscriptions"
        if exact | (names(plan) <= EXACT | {"limit_rate"}) and requests(here) != requests(there):
            return "requests"
    return ""


class Row(NamedTuple):
    """A difference that is as it should be."""

    name: str
    applies: Callable[[Json], bool]
    normalised: Callable[[Json, Json, Json], tuple[Json, Json] | None]
    """The two runs without it; None: it is not what is seen here."""
    partial: bool = False
    """Whether others may explain the rest."""


def difference(plan: Json, ours: Json, theirs: Json) -> tuple[str, list[str]]:
    """What differs without an explanation, and the rows that explain the rest."""
    found = plain(plan, ours, theirs)
    used: list[str] = []
    for row in ROWS:
        if not found:
            break
        both = row.normalised(plan, ours, theirs) if row.applies(plan) else None
        if both is None or both == (ours, theirs):
            continue
        left = plain(plan, *both)
        if row.partial or not left:
            (ours, theirs), found = both, left
            used.append(row.name)
    return found, used


AGAIN = {"retry", "retry_when", "retry_backoff", "repeat", "repeat_when"}


def _with(run: Json, **parts: Json) -> Json:
    return {**run, **parts}


ENDS = ("complete", "error", "tap complete", "tap error")


def _end_after_cancel(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    signals = theirs["signals"]
    at = next((place for place, it in enumerate(signals) if it[1] == "cancel"), None)
    if at is None:
        return None
    time = signals[at][0]
    log = [it for it in theirs["log"] if it in ours["log"] or it[0] < time or it[1] not in ENDS]
    return ours, _with(theirs, signals=signals[: at + 1], log=log)


def _cancelled_at_once(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    return _subscribed(plan, ours, theirs), _subscribed(plan, theirs, ours)


def _subscribed(plan: Json, run: Json, other: Json) -> Json:
    """A run without the subscriptions that were cancelled at the same moment, where the other has none."""
    probes = dict(run["probes"])
    for name, seen in probes.items():
        kept = [it for it in seen if it[1] != "request"]
        if other["probes"].get(name) or len(kept) % 2:
            continue
        pairs = zip(kept[::2], kept[1::2], strict=True)
        if all(a[1] == "subscribe" and b[1] == "cancel" and a[0] == b[0] for a, b in pairs):
            probes[name] = []
    log = run["log"]
    at_once = ["take", 0] in plan["ops"] or (
        len({it[0] for it in log}) == 1 and {it[1] for it in log} <= {"open", "close", "subscribe", "cancel", "finally"}
    )
    return _with(run, probes=probes, log=[] if at_once and not other["log"] else log)


SHORT = {
    "zip", "zip_with", "take", "take_while", "take_until", "first", "element_at", "all", "any", "contains", "sample", "dematerialize",
}
"""These may complete before an error of their source is reached."""


def _overtakes(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if not there or there[-1][1] != "error":
        return None
    elements = there[:-1]
    if here[: len(elements)] != elements:
        return None
    rest = here[len(elements) :]
    ends = [it for it in rest if it[1] != "next"]
    if rest and rest[0][0] < there[-1][0]:
        return None
    if ends and ends[-1][1] == "error" and ends[-1][2] != there[-1][2]:
        return None
    if ends and ends[-1][1] == "complete" and not names(plan) & SHORT:
        return None
    return _with(ours, signals=elements, log=[], probes={}), _with(theirs, signals=elements, log=[], probes={})


def _expanded(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = (Counter(str(it[2]) for it in run["signals"] if it[1] == "next") for run in (ours, theirs))
    whole = all(run["signals"] and run["signals"][-1][1] == "complete" for run in (ours, theirs))
    if not (here == there if whole else here <= there or there <= here):
        return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _second_end(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    signals = theirs["signals"]
    end = next((place for place, it in enumerate(signals) if it[1] in ("error", "complete")), len(signals))
    return ours, _with(theirs, signals=signals[: end + 1])


def _again(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    if plan["demand"] == MAX_DEMAND:
        return None
    for name, seen in ours["probes"].items():
        begun, there = ([it[0] for it in its if it[1] == "subscribe"] for its in (seen, theirs["probes"][name]))
        if len(begun) > len(there) or any(mine < other for mine, other in zip(begun, there, strict=False)):
            return None
    return _with(ours, probes={}), _with(theirs, probes={})


def _heard(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = logged(ours["log"]), logged(theirs["log"])
    for function in {*here, *there}:
        one, other = ([it[1:] for it in log.get(function, [])] for log in (here, there))
        if one[: len(other)] != other[: len(one)]:
            return None
    return _with(ours, log=[]), _with(theirs, log=[])


def _half_full(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    there = theirs["signals"]
    if not there or there[-1][1] != "error":
        return None
    kept = [it for it in there if it in ours["signals"] or it[1] == "error" or it[0] != there[-1][0]]
    return ours, _with(theirs, signals=kept)


def _gives_way(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    asked = {time for time, _ in plan["steps"]}
    here = ours["signals"]
    kept = [it for it in theirs["signals"] if it in here or it[0] not in asked]
    return ours, _with(theirs, signals=kept)


SHOWING = {"do_on_complete", "do_on_cancel", "do_finally"}


def _over(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    end = next((it[0] for it in theirs["signals"] if it[1] != "next"), None)

    def over(run: Json) -> Json:
        log = [[it[0], "over"] if it[0] == end and it[1] in ("complete", "cancel", "finally") else it for it in run["log"]]
        return _with(run, log=[it for place, it in enumerate(log) if it[1] != "over" or it not in log[:place]])

    def without(run: Json) -> Json:
        return _with(run, log=[it for it in run["log"] if it[1] != "over"])

    return without(over(ours)), without(over(theirs))


def _end_ahead(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if not there or there[-1][1] not in ("complete", "error") or plan["demand"] == MAX_DEMAND:
        return None
    if here and here[-1][1:] == there[-1][1:] and here[-1][0] >= there[-1][0]:
        here = here[:-1]
    elif here and here[-1][1] not in ("next", "cancel"):
        return None
    if not here and names(plan) & {"flat_map_iterable", "flatten"}:
        return None  # nothing is under way there that could have one more
    here = [it for it in here if it[1] != "cancel"]
    return _with(ours, signals=here, probes={}), _with(theirs, signals=there[:-1], probes={})


def _end_late(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if plan["demand"] == MAX_DEMAND or not here or here[-1][1] not in ("complete", "error"):
        return None
    if there and there[-1][1] not in ("next", "cancel") and (there[-1][1:] != here[-1][1:] or there[-1][0] < here[-1][0]):
        return None
    return _with(ours, signals=here[:-1]), _with(theirs, signals=[it for it in there if it[1] == "next"])


def _later(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if plan["demand"] == MAX_DEMAND or len(here) > len(there) or [it[1:] for it in here] != [it[1:] for it in there[: len(here)]]:
        return None
    if any(mine[0] < other[0] for mine, other in zip(here, there)):
        return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _waits(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    if plan["demand"]:
        return None
    first = next((time for time, n in plan["steps"] if n > 0), None)
    cancel = next((time for time, n in plan["steps"] if n == 0), None)

    def late(run: Json) -> Json:
        if first is None:  # there is no demand at all
            return _with(run, signals=[], log=[], probes={})
        clamp = [[max(it[0], first), *it[1:]] for it in run["signals"]]
        log = [[max(it[0], first), *it[1:]] for it in run["log"]]
        probes = {name: [[max(it[0], first), *it[1:]] for it in seen] for name, seen in run["probes"].items()}
        return _with(run, signals=clamp, log=log, probes=probes)

    return late(ours), late(theirs)


def _one_end(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if not here or not there or here[:-1] != there[:-1] or here[-1][0] != there[-1][0]:
        return None
    if not {here[-1][1], there[-1][1]} <= {"error", "complete"}:
        return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _order(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    failed = bool(there) and there[-1][1] == "error"
    if failed and plan["demand"] != MAX_DEMAND:  # where it overtakes, one compares what came before
        here = [it for it in here if it[0] < there[-1][0]]
        there = [it for it in there if it[0] < there[-1][0]]
        failed = False
    if [it[1] for it in here if it[1] != "next"] != [it[1] for it in there if it[1] != "next"]:
        return None
    if not failed and [it[:2] for it in here] != [it[:2] for it in there]:
        return None  # as many, at the same times
    if plan["demand"] == MAX_DEMAND and not plan["cancel_after"] and not failed:
        if sorted(map(str, here)) != sorted(map(str, there)):
            return None
    whole = bool(there) and there[-1][1] == "complete"
    if whole and sorted(str(it[2:]) for it in here) != sorted(str(it[2:]) for it in there):
        return None
    last = plan["ops"][-1][0] if plan["ops"] else plan["source"][0]

    def streams(signals: list[Json]) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for signal in signals:
            if signal[1] == "next":
                found.setdefault(_stream(last, signal[2]), []).append(signal[2])
        return found

    one, other = streams(here), streams(there)
    for name in {*one, *other}:
        a, b = one.get(name, []), other.get(name, [])
        twins = last == "flat_map" and len(set(map(str, a))) + len(set(map(str, b))) < len(a) + len(b)
        if last not in ("expand", "parallel") and not twins and a[: len(b)] != b[: len(a)]:
            return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _stream(operator: str, element: Json) -> str:
    """Which of the sources an element comes from, where it says so."""
    if operator == "flat_map":
        return str(element % 100) if isinstance(element, int) else ""
    return str(element[0]) if isinstance(element, list) else str(element)


def _expanded(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = (Counter(str(it[2]) for it in run["signals"] if it[1] == "next") for run in (ours, theirs))
    whole = all(run["signals"] and run["signals"][-1][1] == "complete" for run in (ours, theirs))
    if not (here == there if whole else here <= there or there <= here):
        return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _second_end(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    signals = theirs["signals"]
    end = next((place for place, it in enumerate(signals) if it[1] in ("error", "complete")), len(signals))
    return ours, _with(theirs, signals=signals[: end + 1])


def _again(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    if plan["demand"] == MAX_DEMAND:
        return None
    for name, seen in ours["probes"].items():
        begun, there = ([it[0] for it in its if it[1] == "subscribe"] for its in (seen, theirs["probes"][name]))
        if len(begun) > len(there) or any(mine < other for mine, other in zip(begun, there, strict=False)):
            return None
    return _with(ours, probes={}), _with(theirs, probes={})


def _heard(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    if plan["demand"] == MAX_DEMAND:
        return None
    one, other = ([it[1:] for it in run["log"] if it[1] in ("next", "tap")] for run in (ours, theirs))
    if one[: len(other)] != other[: len(one)]:
        return None

    def rest(run: Json) -> Json:
        return _with(run, log=[it for it in run["log"] if it[1] not in ("next", "tap")])

    return rest(ours), rest(theirs)


def _half_full(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    there = theirs["signals"]
    if not there or there[-1][1] != "error":
        return None
    kept = [it for it in there if it in ours["signals"] or it[1] == "error" or it[0] != there[-1][0]]
    return ours, _with(theirs, signals=kept)


def _gives_way(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    asked = {time for time, _ in plan["steps"]}
    here = ours["signals"]
    kept = [it for it in theirs["signals"] if it in here or it[0] not in asked]
    return ours, _with(theirs, signals=kept)


SHOWING = {"do_on_complete", "do_on_cancel", "do_finally"}


def _over(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    end = next((it[0] for it in theirs["signals"] if it[1] != "next"), None)

    def over(run: Json) -> Json:
        log = [[it[0], "over"] if it[0] == end and it[1] in ("complete", "cancel", "finally") else it for it in run["log"]]
        return _with(run, log=[it for place, it in enumerate(log) if it[1] != "over" or it not in log[:place]])

    def without(run: Json) -> Json:
        return _with(run, log=[it for it in run["log"] if it[1] != "over"])

    return without(over(ours)), without(over(theirs))


def _end_ahead(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if not there or there[-1][1] not in ("complete", "error") or plan["demand"] == MAX_DEMAND:
        return None
    if here and here[-1][1:] == there[-1][1:] and here[-1][0] >= there[-1][0]:
        here = here[:-1]
    elif here and here[-1][1] not in ("next", "cancel"):
        return None
    if not here and names(plan) & {"flat_map_iterable", "flatten"}:
        return None  # nothing is under way there that could have one more
    here = [it for it in here if it[1] != "cancel"]
    return _with(ours, signals=here, probes={}), _with(theirs, signals=there[:-1], probes={})


def _end_late(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if plan["demand"] == MAX_DEMAND or not here or here[-1][1] not in ("complete", "error"):
        return None
    if there and there[-1][1] not in ("next", "cancel") and (there[-1][1:] != here[-1][1:] or there[-1][0] < here[-1][0]):
        return None
    return _with(ours, signals=here[:-1]), _with(theirs, signals=[it for it in there if it[1] == "next"])


def _later(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if plan["demand"] == MAX_DEMAND or len(here) > len(there) or [it[1:] for it in here] != [it[1:] for it in there[: len(here)]]:
        return None
    if any(mine[0] < other[0] for mine, other in zip(here, there)):
        return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _waits(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    if plan["demand"]:
        return None
    first = next((time for time, n in plan["steps"] if n > 0), None)
    cancel = next((time for time, n in plan["steps"] if n == 0), None)

    def late(run: Json) -> Json:
        if first is None:  # there is no demand at all
            return _with(run, signals=[], log=[], probes={})
        clamp = [[max(it[0], first), *it[1:]] for it in run["signals"]]
        log = [[max(it[0], first), *it[1:]] for it in run["log"]]
        probes = {name: [[max(it[0], first), *it[1:]] for it in seen] for name, seen in run["probes"].items()}
        return _with(run, signals=clamp, log=log, probes=probes)

    return late(ours), late(theirs)


def _one_end(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if not here or not there or here[:-1] != there[:-1] or here[-1][0] != there[-1][0]:
        return None
    if not {here[-1][1], there[-1][1]} <= {"error", "complete"}:
        return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _order(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    failed = bool(there) and there[-1][1] == "error"
    if failed and plan["demand"] != MAX_DEMAND:  # where it overtakes, one compares what came before
        here = [it for it in here if it[0] < there[-1][0]]
        there = [it for it in there if it[0] < there[-1][0]]
        failed = False
    if [it[1] for it in here if it[1] != "next"] != [it[1] for it in there if it[1] != "next"]:
        return None
    if not failed and [it[:2] for it in here] != [it[:2] for it in there]:
        return None  # as many, at the same times
    if plan["demand"] == MAX_DEMAND and not plan["cancel_after"] and not failed:
        if sorted(map(str, here)) != sorted(map(str, there)):
            return None
    whole = bool(there) and there[-1][1] == "complete"
    if whole and sorted(str(it[2:]) for it in here) != sorted(str(it[2:]) for it in there):
        return None
    last = plan["ops"][-1][0] if plan["ops"] else plan["source"][0]

    def streams(signals: list[Json]) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for signal in signals:
            if signal[1] == "next":
                found.setdefault(_stream(last, signal[2]), []).append(signal[2])
        return found

    one, other = streams(here), streams(there)
    for name in {*one, *other}:
        a, b = one.get(name, []), other.get(name, [])
        twins = last == "flat_map" and len(set(map(str, a))) + len(set(map(str, b))) < len(a) + len(b)
        if last not in ("expand", "parallel") and not twins and a[: len(b)] != b[: len(a)]:
            return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _stream(operator: str, element: Json) -> str:
    """Which of the sources an element comes from, where it says so."""
    if operator == "flat_map":
        return str(element % 100) if isinstance(element, int) else ""
    return str(element[0]) if isinstance(element, list) else str(element)


OVERTAKEN = {
    "flat_map", "flat_map_sequential", "concat_map", "flat_map_iterable", "flatten", "merge", "merge_with", "zip", "zip_with",
    "combine_latest", "window", "group_by", "publish", "share", "replay", "switch_map", "expand", "publish_on", "delay", "merge_comparing",
}

ROWS = [
    Row("end-after-cancel", lambda plan: True, _end_after_cancel, partial=True),
    Row("cancelled-at-once", lambda plan: True, _cancelled_at_once, partial=True),
    Row("begins-with-demand", lambda plan: bool(names(plan) & LAZY), _waits, partial=True),
    Row("end-or-cancel", lambda plan: bool(names(plan) & SHOWING), _over, partial=True),
    Row("second-end", lambda plan: "skip_while" in names(plan), _second_end, partial=True),
    Row("again-by-demand", lambda plan: bool(names(plan) & AGAIN), _again, partial=True),
    Row("heard-when-asked", lambda plan: bool(names(plan) & (HOLDING | SHARED)), _heard, partial=True),
    Row("half-full-batch", lambda plan: "batch_by" in names(plan), _half_full),
    Row("newer-takes-its-place", lambda plan: bool(names(plan) & {"debounce", "sample"}), _gives_way),
    Row(
        "end-seen-ahead",
        lambda plan: bool(names(plan) & {"flat_map_iterable", "flatten", "expand", "start_with", "concat", "concat_with", "switch_if_empty", "repeat", "repeat_when"})
        or bool(names(plan).intersection(BY_ITERATOR) and names(plan) & (OVERTAKEN | {"limit_rate"})),
        _end_ahead,
    ),
    Row("replay-end-waits", lambda plan: "replay" in names(plan), _end_late),
    Row("repeat-waits-for-demand", lambda plan: "repeat" in names(plan), _later),
    Row("next-source-by-demand", lambda plan: bool(names(plan).intersection(BY_ITERATOR) and names(plan) & {"concat", "concat_with", "start_with"}), _later),
    Row("next-inner-by-demand", lambda plan: bool(names(plan) & {"flat_map", "concat_map", "flat_map_sequential"}), _later),
    Row("two-ends-at-once", lambda plan: bool(names(plan) & {"zip", "zip_with", "merge_comparing", "race"}), _one_end),
    Row("order-between-sources", lambda plan: bool(names(plan) & BETWEEN), _order),
    Row("expand-order", lambda plan: "expand" in names(plan), _expanded),
    Row("error-overtakes", lambda plan: bool(names(plan) & OVERTAKEN), _overtakes),
]
