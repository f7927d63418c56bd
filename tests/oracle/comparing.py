"""What two runs of a plan must have in common."""
from __future__ import annotations
from typing import Any
from reactive_runtime import MAX_DEMAND

def totals(seen):
    """Requests, added up by time; subscriptions and cancels by time."""
    total, requests = 0, {}
    for time, what, n in seen:
        if what == "request":
            total = min(total + n, MAX_DEMAND)
            requests[time] = total
    return list(requests.items())

def events(seen):
    return sorted((time, what) for time, what, _ in seen if what != "request")

def logged(log):
    return sorted((it[1], i, it) if it[1] in ("next", "tap") else (it[1], 0, it) for i, it in enumerate(log) if it[1] != "request")

def difference(plan, ours, theirs) -> str:
    if ours["signals"] != theirs["signals"]:
        return "signals"
    if [it[2] for it in logged(ours["log"])] != [it[2] for it in logged(theirs["log"])]:
        return "log"
    for name in theirs["probes"]:
        if events(ours["probes"].get(name, [])) != events(theirs["probes"][name]):
            return "source"
    return ""
