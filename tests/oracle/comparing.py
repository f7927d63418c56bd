"""What two runs of a plan have in common; `ROWS` are the differences that docs/differences.md gives the reasons for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from oracle.plans import BETWEEN
from reactive_runtime import MAX_DEMAND

__all__ = ["ROWS", "Row", "difference"]

Json = Any

EXACT = {
    "map", "starmap", "map_not_none", "handle", "enumerate", "scan", "batch", "pairwise", "transform", "filter", "distinct",
    "distinct_until_changed", "take", "take_while", "skip", "skip_while",
    "do_on_request", "do_on_next", "serialize", "finalize",
    "do_finally", "do_on_subscribe", "do_on_error", "do_on_complete", "do_on_cancel", "tap", "limit_rate",
}
"""A chain of these asks its source for exactly the same, here and there."""


def names(plan: Json) -> set[str]:
    """All operators and sources that a plan has, the inner ones too."""
    found: set[str] = set()

    def visit(it: Json) -> None:
        if isinstance(it, list):
            if it and isinstance(it[0], str):
                found.add(it[0])
            for part in it:
                visit(part)

    visit(plan["source"])
    visit(plan["ops"])
    return found


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


def events(seen: list[Json], *, cancels: bool) -> list[Json]:
    """When a source is subscribed to, and when it is over; and, with `cancels`, why."""
    return sorted([time, what if cancels or what == "subscribe" else "over"] for time, what, _ in seen if what != "request")


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
        if events(here, cancels=exact) != events(there, cancels=exact):
            return "source"
        if exact and requests(here) != requests(there):
            return "requests"
    return ""


class Row(NamedTuple):
    """A difference that is as it should be."""

    name: str
    applies: Callable[[Json], bool]
    normalised: Callable[[Json, Json, Json], tuple[Json, Json] | None]
    """The two runs without it; None: it is not what is seen here."""


def difference(plan: Json, ours: Json, theirs: Json) -> tuple[str, list[str]]:
    """What differs without an explanation, and the rows that explain the rest."""
    found = plain(plan, ours, theirs)
    used: list[str] = []
    for row in ROWS:
        if not found:
            break
        if row.applies(plan):
            both = row.normalised(plan, ours, theirs)
            if both is not None and both != (ours, theirs):
                ours, theirs = both
                found = plain(plan, ours, theirs)
                used.append(row.name)
    return found, used


def _with(run: Json, **parts: Json) -> Json:
    return {**run, **parts}


def _end_after_cancel(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    signals = theirs["signals"]
    at = next((place for place, it in enumerate(signals) if it[1] == "cancel"), None)
    if at is None:
        return None
    return ours, _with(theirs, signals=signals[: at + 1])


def _take_none(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    probes = {name: [it for it in seen if it[0]] if ours["probes"][name] == [] else seen for name, seen in theirs["probes"].items()}
    return ours, _with(theirs, probes=probes)


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
    if ends and (ends[-1][1] == "complete" or (ends[-1][1] == "error" and ends[-1][2] != there[-1][2])):
        return None
    return _with(ours, signals=elements, log=[], probes={}), _with(theirs, signals=elements, log=[], probes={})


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


def _order(plan: Json, ours: Json, theirs: Json) -> tuple[Json, Json] | None:
    here, there = ours["signals"], theirs["signals"]
    if [it[1] for it in here if it[1] != "next"] != [it[1] for it in there if it[1] != "next"]:
        return None
    failed = bool(there) and there[-1][1] == "error"
    if not failed and [it[:2] for it in here] != [it[:2] for it in there]:
        return None  # as many, at the same times
    whole = bool(there) and there[-1][1] == "complete"
    if whole and sorted(map(str, here)) != sorted(map(str, there)):
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
        if last not in ("expand", "parallel") and a[: len(b)] != b[: len(a)]:
            return None
    return _with(ours, signals=[], log=[], probes={}), _with(theirs, signals=[], log=[], probes={})


def _stream(operator: str, element: Json) -> str:
    """Which of the sources an element comes from, where it says so."""
    if operator == "flat_map":
        return str(element % 100) if isinstance(element, int) else ""
    return str(element[0]) if isinstance(element, list) else str(element)


OVERTAKEN = {
    "flat_map", "flat_map_sequential", "concat_map", "flat_map_iterable", "flatten", "merge", "merge_with", "zip", "zip_with",
    "combine_latest", "window", "group_by", "publish", "share", "replay", "switch_map", "expand", "publish_on", "delay",
}

LAZY = {
    "reduce", "collect", "to_list", "to_dict", "count", "sum", "min", "max", "all", "any", "contains", "last", "ignore_elements",
    "flat_map", "flat_map_sequential", "concat_map", "switch_map", "expand", "group_by", "window", "parallel",
    "from_supplier", "generate", "using", "repeat", "delay",
}

ROWS = [
    Row("end-after-cancel", lambda plan: True, _end_after_cancel),
    Row("take-none", lambda plan: ["take", 0] in plan["ops"], _take_none),
    Row("begins-with-demand", lambda plan: bool(names(plan) & LAZY), _waits),
    Row("order-between-sources", lambda plan: bool(names(plan) & BETWEEN), _order),
    Row("error-overtakes", lambda plan: bool(names(plan) & OVERTAKEN), _overtakes),
]
