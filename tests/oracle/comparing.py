"""What two runs of a plan have in common.

`ROWS` are the differences that are as they should be: each has a row in docs/differences.md, with its reason. A row
says which plans it applies to, and takes one kind of difference out of the two runs, or finds that it is not the one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from oracle.plans import AGAIN, BETWEEN, BY_ITERATOR, FLATTENING, HOLDING, LAZY, OVERTAKEN, SHARED, names, words
from reactive_runtime import MAX_DEMAND

__all__ = ["ROWS", "Row", "difference"]

Json = Any

EXACT = {
    *("map", "starmap", "map_not_none", "handle", "enumerate", "scan", "batch", "pairwise", "transform"),
    *("filter", "distinct", "distinct_until_changed", "take", "take_while", "skip", "skip_while", "serialize"),
    *("finalize", "do_finally", "do_on_subscribe", "do_on_request", "do_on_next", "do_on_error", "do_on_complete"),
    *("do_on_cancel", "tap"),
}
"""A chain of these asks its source for exactly the same, here and there, and cancels it at the same time."""

ENDS = ("complete", "error", "tap complete", "tap error")


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


def events(seen: list[Json], *kinds: str) -> list[Json]:
    """When a source is subscribed to, and when it ends or is cancelled."""
    return sorted([time, what] for time, what, _ in seen if what in kinds)


def left_running(signals: list[Json], seen: list[Json]) -> bool:
    """Whether the flow is over, and a source is not."""
    end = next((signal[0] for signal in signals if signal[1] != "next"), None)
    over = [time for time, what, _ in seen if what in ("cancel", "end")]
    return end is not None and len(events(seen, "subscribe")) > sum(time <= end for time in over)


def logged(log: list[Json]) -> dict[str, list[Json]]:
    """What the user's functions heard, by function; how a demand is divided into requests is not promised."""
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
    operators = {op[0] for op in plan["ops"]}
    for name in theirs["probes"]:
        here, there = ours["probes"].get(name, []), theirs["probes"][name]
        if left_running(ours["signals"], here) and not operators & {"cache"}:
            return "left running"
        kinds = ("subscribe", "cancel", "end") if operators <= EXACT else ("subscribe",)
        if events(here, *kinds) != events(there, *kinds):
            return "source"
        exact = EXACT if bounded(plan) else EXACT | {"limit_rate"}
        if operators <= exact and requests(here) != requests(there):
            return "requests"
    return ""


Both = tuple[Json, Json]


class Row(NamedTuple):
    """A difference that is as it should be."""

    name: str
    applies: Callable[[set[str]], bool]
    """To the plans with these operators and sources."""
    without: Callable[[Json, Json, Json], Both | None]
    """The two runs without it; None: it is not what is seen here."""
    partial: bool = False
    """Whether others may explain the rest; otherwise it explains all, or nothing."""
    more: Callable[[Json, list[Json], list[Json]], bool] | None = None
    """Where there may be elements here that do not come there: whether they come there without the errors."""


def difference(plan: Json, ours: Json, theirs: Json, whole: Callable[[], Json]) -> tuple[str, list[str]]:
    """What differs without an explanation, and the rows that explain the rest.

    `whole` runs the plan there without its errors, and with all the demand; see `healed`.
    """
    found = plain(plan, ours, theirs)
    used: list[str] = []
    for row in ROWS:
        if not found:
            break
        both = row.without(plan, ours, theirs) if row.applies(names(plan)) else None
        if both is None or both == (ours, theirs):
            continue
        left = plain(plan, *both)
        if row.partial or not left:
            if ended(theirs["signals"], "complete", "error") and owed(plan, ours["signals"]) and not held(plan):
                continue  # there is demand, and the end does not come
            if row.more and not row.more(plan, ours["signals"], whole()["signals"]):
                return "elements", used
            (ours, theirs), found = both, left
            used.append(row.name)
    return found, used


def among(plan: Json, here: list[Json], whole: list[Json]) -> bool:
    """Whether the elements are some of the whole, in its order; in any, where that is open."""
    if plan["ops"][-1][0] == "flat_map":
        return _elements(here) <= _elements(whole)
    rest = iter(values(whole))
    return all(item[1:] in rest for item in here if item[1] == "next")


def possible(plan: Json, here: list[Json], whole: list[Json]) -> bool:
    """Whether the elements are those of the whole, or the first of each source."""
    last = plan["ops"][-1][0] if plan["ops"] else plan["source"][0]
    if last == "probe":
        last = plan["source"][2][0]
    if last in ("expand", "parallel"):
        return _elements(here) <= _elements(whole)
    if last not in BETWEEN:
        here, whole = (values([item for item in run if item[1] == "next"]) for run in (here, whole))
        return here == whole[: len(here)]
    one, other = _streams(last, here), _streams(last, whole)
    if last == "flat_map":  # two may give the same: which is whose, no one can say
        return all(Counter(its) <= Counter(other.get(name, [])) for name, its in one.items())
    return all(its == other.get(name, [])[: len(its)] for name, its in one.items())


def healed(plan: Json) -> Json:
    """The plan without cancels and without the errors that it says, and with all the demand."""
    error_handling = {"retry", "retry_when", "retry_backoff", "on_error_resume", "on_error_return", "materialize"}
    error_handling |= {"on_error_complete"}
    ops = plan["ops"]
    first = max(
        (place + 1 for place, op in enumerate(ops) if op[0] in error_handling), default=0
    )  # errors end before it
    parts = {"ops": [*ops[:first], *_heal(ops[first:])]}
    if not first:
        parts["source"] = _heal(plan["source"])
    return {**plan, **parts, "healed": not first, "demand": MAX_DEMAND, "refill": 0, "cancel_after": 0, "steps": []}


def _heal(spec: Json) -> Json:
    if not isinstance(spec, list) or not spec:
        return spec
    if spec[0] == "error":
        return ["empty"]
    if spec[0] in ("raise_on", "fail_on", "none_on"):
        return [spec[0], 7]  # no remainder of a division by 7
    if spec[0] in ("from_supplier", "create"):
        return [*spec[:2], False]
    if spec[0] in ("retry_when", "repeat_when") and spec[-1] == "error":
        return [*spec[:-1], "empty"]
    if spec[0] in ("timed", "hot") and spec[2] == "error":
        return [*spec[:2], "complete", *spec[3:]]
    return [_heal(item) for item in spec]


FAULTS = ("wrong", "lost", "twice", "no end")
"""An element that is another one, is not there, or comes twice; and an end that does not come."""


def excused(plan: Json, ours: Json, theirs: Json, whole: Callable[[], Json]) -> Iterator[tuple[str, str]]:
    """Which faults would not be found in `ours`, which differs already; and a row that hides each of them."""
    signals = ours["signals"]
    for place, signal in enumerate(signals):
        before, after = signals[:place], signals[place + 1 :]
        if signal[1] == "next":
            faults = {"wrong": [[*signal[:2], 999_983]], "lost": [], "twice": [signal, signal]}
        else:
            faults = {} if signal[1] == "cancel" else {"no end": []}
        for fault, instead in faults.items():
            found, rows = difference(plan, {**ours, "signals": [*before, *instead, *after]}, theirs, whole)
            if not found:
                yield (rows[-1] if rows else "", fault)


def of(*some: str) -> Callable[[set[str]], bool]:
    """Plans that have one of these."""
    return lambda found: bool(found & set(some))


def _with(run: Json, **parts: Json) -> Json:
    return {**run, **parts}


NOTHING: Json = {"signals": [], "log": [], "probes": {}}
SAME: Both = (NOTHING, NOTHING)


def bounded(plan: Json) -> bool:
    """Whether elements may have to wait for demand."""
    return bool(plan["demand"] != MAX_DEMAND)


def ended(signals: list[Json], *kinds: str) -> bool:
    """Whether the last signal is one of these."""
    return bool(signals) and signals[-1][1] in kinds


def owed(plan: Json, signals: list[Json]) -> bool:
    """Whether there was demand, and no cancel, after the last element: more has to come, or the end."""
    n = sum(signal[1] == "next" for signal in signals)
    if ended(signals, "cancel", "complete", "error"):
        return False
    left = plan["demand"] + n * plan["refill"] - n
    for _, more in plan["steps"]:
        if left > 0 or not more:
            break
        left += more
    return bool(left > 0)


def held(plan: Json) -> bool:
    """Whether a publisher that an element has become may never end, and so what is behind it is not reached."""
    behind = {*BY_ITERATOR, "flatten", "flat_map_iterable"}
    if names(plan) & {"zip", "zip_with", "merge_comparing"} and names(plan) & behind:
        return True  # the other one waits for its first element, and the error of what is pulled is behind that
    delayed = any(op[0] in FLATTENING and op[1][0] == "raise_on" and op[-1] is True for op in plan["ops"])
    if delayed and names(plan) & {"never", "timed", "hot", "interval"}:
        return True  # an error that comes at the end, and there may be none
    return any(op[0] in FLATTENING and words(op[1]) & {"never", "timed"} for op in plan["ops"])


def values(signals: list[Json]) -> list[Json]:
    """Without the times."""
    return [signal[1:] for signal in signals]


def _end_after_cancel(plan: Json, ours: Json, theirs: Json) -> Both | None:
    signals = theirs["signals"]
    at = next((place for place, signal in enumerate(signals) if signal[1] == "cancel"), None)
    if at is None:
        return None
    time = signals[at][0]
    log = [item for item in theirs["log"] if item in ours["log"] or item[0] < time or item[1] not in ENDS]
    return ours, _with(theirs, signals=signals[: at + 1], log=log)


def _after_the_end(plan: Json, ours: Json, theirs: Json) -> Both | None:
    signals = theirs["signals"]
    end = next((place for place, signal in enumerate(signals) if signal[1] in ("complete", "error")), len(signals))
    return ours, _with(theirs, signals=signals[: end + 1])


def _cancelled_at_once(plan: Json, ours: Json, theirs: Json) -> Both | None:
    return ours, _subscribed(plan, theirs, ours)


def _subscribed(plan: Json, run: Json, other: Json) -> Json:
    """A run without the subscriptions that were cancelled at the same moment, where the other has none."""
    probes = dict(run["probes"])
    for name, seen in probes.items():
        kept = [item for item in seen if item[1] != "request"]
        if other["probes"].get(name) or len(kept) % 2:
            continue
        pairs = zip(kept[::2], kept[1::2], strict=True)
        if all(a[1] == "subscribe" and b[1] == "cancel" and a[0] == b[0] for a, b in pairs):
            probes[name] = []
    log = run["log"]
    if ["take", 0] in plan["ops"] or names(plan) & {"take_until", "sample", "buffer_when", "window_when"}:
        there = Counter(map(str, other["log"]))
        kept = []
        for entry in log:
            if there[str(entry)] > 0 or entry[1] not in (*AT_ONCE, *ENDS):
                there[str(entry)] -= 1
                kept.append(entry)
        log = kept
    if len({item[0] for item in log}) == 1 and {item[1] for item in log} <= AT_ONCE and not other["log"]:
        log = []
    return _with(run, probes=probes, log=log)


AT_ONCE = {"open", "close", "subscribe", "cancel", "finally", "finalize"}


def _begins(plan: Json, ours: Json, theirs: Json) -> Both | None:
    if plan["demand"]:
        return None
    first = next((time for time, n in plan["steps"] if n > 0), None)

    def late(run: Json) -> Json:
        def at_first(entries: list[Json]) -> list[Json]:
            return [[max(entry[0], first), *entry[1:]] for entry in entries]

        if first is None:  # there is no demand at all
            return _with(NOTHING)
        probes = {name: at_first(seen) for name, seen in run["probes"].items()}
        return _with(run, signals=at_first(run["signals"]), log=at_first(run["log"]), probes=probes)

    return late(ours), late(theirs)


def _end_or_cancel(plan: Json, ours: Json, theirs: Json) -> Both | None:
    end = next((item[0] for item in theirs["signals"] if item[1] != "next"), None)

    def rest(run: Json) -> Json:
        either = ("complete", "cancel", "finally", "tap complete")
        log = [item for item in run["log"] if item[0] != end or item[1] not in either]
        return _with(run, log=log)

    return rest(ours), rest(theirs)


def _end_or_cancel_above(plan: Json, ours: Json, theirs: Json) -> Both | None:
    """Of a source: it has given its last element, and ended, before the one who takes them cancels with that."""
    end = next((item[0] for item in ours["signals"] if item[1] == "cancel"), None)
    here, there = dict(ours["probes"]), dict(theirs["probes"])
    for name in here.keys() & there.keys():
        if here[name] and there[name] and here[name][-1][:2] == [end, "end"] and there[name][-1][:2] == [end, "cancel"]:
            asked = [item for item in here[name] if item[1] == "request"]
            requests = [item for item in there[name] if item[1] == "request"]
            if requests[: len(asked)] == asked and all(request[0] == end for request in requests[len(asked) :]):
                there[name] = here[name]
    return _with(ours, probes=here), _with(theirs, probes=there)


def _again(plan: Json, ours: Json, theirs: Json) -> Both | None:
    if not bounded(plan):
        return None
    for name, seen in ours["probes"].items():
        here, there = (events(its, "subscribe") for its in (seen, theirs["probes"][name]))
        if len(here) > len(there) or any(mine < other for mine, other in zip(here, there, strict=False)):
            return None
    return _with(ours, probes={}), _with(theirs, probes={})


def _heard(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = logged(ours["log"]), logged(theirs["log"])
    for function in {*here, *there}:
        one, other = (values(log.get(function, [])) for log in (here, there))
        if one[: len(other)] != other[: len(one)]:
            return None
    return _with(ours, log=[]), _with(theirs, log=[])


def _half_full(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = ours["signals"], theirs["signals"]
    if not ended(here, "error"):
        return None
    if len(there) > len(here) and there[-1] == [here[-1][0], "cancel"]:  # with that batch
        there = there[:-1]
    left, kept = _bag(here[:-1]), []
    for item in there:
        left[str(item)] -= 1
        if item != here[-1] and (item[0] < here[-1][0] or left[str(item)] >= 0):
            kept.append(item)
    return _with(ours, signals=here[:-1]), _with(theirs, signals=kept)


def _end_ahead(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = ours["signals"], theirs["signals"]
    if not bounded(plan) or not ended(there, "complete", "error"):
        return None
    if not here and names(plan) & {"flat_map_iterable", "flatten"}:
        return None  # nothing is under way there that could have one more
    if owed(plan, here) or not (names(plan) & LATER_SOURCES or found_by_calling(plan, there[-1])):
        return None
    if ended(here, "complete", "error"):
        if here[-1][1:] != there[-1][1:] or here[-1][0] < there[-1][0]:
            return None
        here = here[:-1]
    here = [item for item in here if item[1] != "cancel"]
    return _with(ours, signals=here, probes={}), _with(theirs, signals=there[:-1], probes={})


AT_THE_END = {
    *("materialize", "end_with", "default_if_empty", "batch", "first", "last", "element_at", "reduce", "collect"),
    *("to_list", "to_dict", "count", "sum", "min", "max", "all", "any", "contains"),
    *("buffer", "buffer_until", "single", "take_last", "sort"),
}
"""These give an element when their source has ended."""

LATER_SOURCES = {
    "expand",
    "concat",
    "concat_with",
    "start_with",
    "switch_if_empty",
    "flat_map_iterable",
    "flatten",
    *AGAIN,
}
"""Whether these have another element is known when it is asked for."""


def found_by_calling(plan: Json, end: Json) -> bool:
    """Whether a user's code finds the end: an iterator, or a function that is called with an element."""
    if end[1] == "error" and any(word in end[2] for word in OF_FUNCTIONS):
        return True
    return bool(names(plan) & {*BY_ITERATOR, "take_while", "dematerialize"})


ASK_AHEAD = {*OVERTAKEN, "limit_rate", "buffer_timeout", "buffer_time", "debounce", "sample", "delay"}


def _replay_end(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = ours["signals"], theirs["signals"]
    if not bounded(plan) or not ended(here, "complete", "error"):
        return None
    if ended(there, "complete", "error") and (there[-1][1:] != here[-1][1:] or there[-1][0] < here[-1][0]):
        return None
    log = [
        item
        for item in ours["log"]
        if item[0] != here[-1][0] or item[1] not in (*ENDS, *CLOSING) or item in theirs["log"]
    ]
    there = [item for item in there if item[1] == "next"]
    return _with(ours, signals=here[:-1], log=log), _with(theirs, signals=there)


def _later(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = ours["signals"], theirs["signals"]
    if not bounded(plan) or len(here) > len(there) or values(here) != values(there)[: len(here)]:
        return None
    if owed(plan, here) and len(here) < len(there):
        return None
    return None if any(mine[0] < other[0] for mine, other in zip(here, there, strict=False)) else SAME


def _two_ends(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = ours["signals"], theirs["signals"]
    if not ended(here, "complete", "error") or not ended(there, "complete", "error"):
        return None
    return SAME if here[:-1] == there[:-1] and here[-1][0] == there[-1][0] else None


def _order(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = ours["signals"], theirs["signals"]
    failed = ended(there, "error")
    if failed and bounded(plan):  # where it overtakes, what came before is compared
        here, there = ([item for item in run if item[0] < theirs["signals"][-1][0]] for run in (here, there))
        failed = False
    if bounded(plan) and ended(there, "complete") and not ended(here, "error"):  # the end may be found by demand
        here, there = ([item for item in run if item[1] == "next"] for run in (here, there))
    if [item[1] for item in here if item[1] != "next"] != [item[1] for item in there if item[1] != "next"]:
        return None
    if not failed and [item[:2] for item in here] != [item[:2] for item in there]:
        return None  # as many, at the same times
    if not bounded(plan) and not plan["cancel_after"] and not failed and _bag(here) != _bag(there):
        return None
    if ended(theirs["signals"], "complete") and _bag(values(here)) != _bag(values(there)):
        return None
    last = plan["ops"][-1][0] if plan["ops"] else plan["source"][0]
    one, other = _streams(last, here), _streams(last, there)
    for name in {*one, *other}:
        a, b = one.get(name, []), other.get(name, [])
        twins = last == "flat_map" and len(set(a)) + len(set(b)) < len(a) + len(b)  # which is whose, no one can say
        if last not in ("expand", "parallel") and not twins and a[: len(b)] != b[: len(a)]:
            return None
    return SAME


def _elements(signals: list[Json]) -> Counter[str]:
    return _bag(values([signal for signal in signals if signal[1] == "next"]))


def _bag(signals: list[Json]) -> Counter[str]:
    return Counter(map(str, signals))


def _streams(operator: str, signals: list[Json]) -> dict[str, list[str]]:
    """The elements by the source they come from, where they say so."""
    found: dict[str, list[str]] = {}
    for signal in signals:
        if signal[1] == "next":
            element = signal[2]
            if operator == "flat_map":
                source = element % 100 if isinstance(element, int) else ""
            else:
                source = element[0] if isinstance(element, list) and element else element
            found.setdefault(str(source), []).append(str(element))
    return found


SHORT = {
    *("zip", "zip_with", "take", "take_while", "take_until", "first", "element_at", "all", "any", "contains"),
    *("sample", "dematerialize", "buffer_when", "window_when"),
}
"""These may complete before an error of their source is reached."""


def _function_delayed(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = ours["signals"], theirs["signals"]
    delayed = any(op[0] in FLATTENING and op[1][0] == "raise_on" and op[-1] is True for op in plan["ops"])
    if not delayed or not ended(there, "error") or "function" not in there[-1][2]:
        return None
    if here[: len(there) - 1] != there[:-1] or (ended(here, "error") and "function" not in here[-1][2]):
        return None
    return SAME


OF_FUNCTIONS = ("function", "predicate", "none", "missing", "notice", "inner")
"""An operator further down may fail before an error of its source is reached."""


def _overtakes_here(plan: Json, here: list[Json], there: list[Json]) -> bool:
    """Whether one that is known comes before elements that were demanded inside of a signal of the same moment."""
    if not plan["refill"] or not bounded(plan) or not ended(here, "error") or not names(plan) & {*FLATTENING}:
        return False
    rest = there[len(here) - 1 :]
    at_once = all(item[0] == here[-1][0] for item in rest)
    return len(here) > 1 and here[:-1] == there[: len(here) - 1] and here[-1] in rest and at_once


def _overtakes(plan: Json, ours: Json, theirs: Json) -> Both | None:
    here, there = ours["signals"], theirs["signals"]
    if _overtakes_here(plan, here, there):
        return SAME
    if not ended(there, "error") or here[: len(there) - 1] != there[:-1]:
        return None
    rest = here[len(there) - 1 :]
    if rest and rest[0][0] < there[-1][0]:
        return None
    if ended(rest, "error") and rest[-1][2] not in (there[-1][2], *OF_FUNCTIONS):
        return None
    return None if ended(rest, "complete") and not names(plan) & SHORT else SAME


CLOSING = ("finalize", "finally")


def _with_the_chain(plan: Json, ours: Json, theirs: Json) -> Both | None:
    if not ours["signals"] or ours["signals"][-1][1] == "next":  # that element waits still
        left, log = _bag(ours["log"]), []
        for entry in theirs["log"]:
            left[str(entry)] -= 1
            if entry[1] not in CLOSING or left[str(entry)] >= 0:
                log.append(entry)
        return ours, _with(theirs, log=log)
    over = ours["signals"][-1][0]
    earlier = [item for item in theirs["log"] if item[1] in CLOSING]
    log = []
    for entry in ours["log"]:
        if entry[1] in CLOSING and entry[0] == over:
            other = next((it_there for it_there in earlier if it_there[1:] == entry[1:] and it_there[0] <= over), entry)
            if other in earlier:
                earlier.remove(other)
            log.append(other)
        else:
            log.append(entry)
    return _with(ours, log=sorted(log, key=lambda item: item[0])), theirs


ROWS = [
    Row("end-after-cancel", lambda found: True, _end_after_cancel, partial=True),
    Row("nothing-after-the-end", of("skip_while"), _after_the_end, partial=True),
    Row("cancelled-at-once", lambda found: True, _cancelled_at_once, partial=True),
    Row("begins-with-demand", of(*LAZY), _begins, partial=True),
    Row(
        "over-with-the-chain",
        lambda found: of("finalize", "do_finally")(found) and of(*AT_THE_END)(found),
        _with_the_chain,
        partial=True,
    ),
    Row("end-or-cancel", of("do_on_complete", "do_on_cancel", "do_finally", "tap"), _end_or_cancel, partial=True),
    Row("end-or-cancel", of("probe"), _end_or_cancel_above, partial=True),
    Row("again-by-demand", of(*AGAIN), _again, partial=True),
    Row(
        "next-source-by-demand",
        lambda found: of("concat", "concat_with", "start_with")(found) and of(*ASK_AHEAD)(found),
        _again,
        partial=True,
    ),
    Row("heard-when-asked", of(*HOLDING, *SHARED), _heard, partial=True),
    Row("half-full-batch", of("buffer_timeout", "window_timeout"), _half_full),
    Row("end-seen-ahead", of(*LATER_SOURCES, *ASK_AHEAD), _end_ahead),
    Row("replay-end-waits", of("replay"), _replay_end),
    Row("end-asked-for", of("dematerialize"), _replay_end),
    Row("repeat-waits-for-demand", of("repeat"), _later),
    Row(
        "next-source-by-demand",
        lambda found: of(*BY_ITERATOR)(found) and of("concat", "concat_with", "start_with")(found),
        _later,
    ),
    Row("next-inner-by-demand", of(*FLATTENING), _later),
    Row("function-error-delayed", of(*FLATTENING), _function_delayed, more=among),
    Row("two-ends-at-once", of("zip", "zip_with", "merge_comparing", "race"), _two_ends),
    Row("order-between-sources", of(*BETWEEN), _order, more=possible),
    Row("error-overtakes", of(*OVERTAKEN), _overtakes, more=possible),
]
