"""Signals as a diagram of text: one column a thread, time downwards.

                 thread 1            thread 2
          300    ┌ on_next(3)
          304    │                   request(1)
          306    │                   cancel
      >>  310    └ on_next(3)

A call in which something else happened has a line for its beginning and one for its end; others have one line.
"""

from __future__ import annotations

from collections.abc import Sequence

from reactive_runtime.testing._records import CUT, Record, Signal, value_as_text

__all__ = ["diagram", "said"]


def said(record: Record) -> str:
    """A signal in a few words: `request(1)`."""
    if record.none:
        return f"{record.signal}(None)"
    if record.signal == Signal.REQUEST:
        return f"request({'?' if record.n is None else record.n})"
    if record.signal == Signal.ON_NEXT:
        return f"on_next({value_as_text(record.value)})"
    return record.signal


def diagram(records: Sequence[Record], marked: int) -> str:
    """The records, in order of time; the one that begins at `marked` has `>>` before it."""
    moments = [(record.begin, True, record) for record in records]
    moments += [(record.end, False, record) for record in records if record.end is not None and record.end < CUT // 2]
    moments.sort(key=lambda moment: moment[0])
    threads = list(dict.fromkeys(record.thread for _, _, record in moments))
    open_calls = dict.fromkeys(threads, 0)
    rows: list[tuple[str, dict[int, str]]] = []
    for at, (tick, begins, record) in enumerate(moments):
        after = moments[at + 1] if at + 1 < len(moments) else None
        before = moments[at - 1] if at else None
        if not begins and before is not None and before[2] is record:
            continue  # one line was enough
        whole = begins and after is not None and after[2] is record
        error = f" {record.error}" if record.error and (whole or not begins) else ""
        bars = {thread: "│" * calls for thread, calls in open_calls.items()}
        if not begins:
            open_calls[record.thread] -= 1
            bars[record.thread] = "│" * open_calls[record.thread]
        sign = "" if whole else "┌ " if begins else "└ "
        bars[record.thread] += f"{sign}{said(record)}{error}"
        if begins and not whole:
            open_calls[record.thread] += 1
        mark = ">>" if begins and record.begin == marked else "  "
        rows.append((f"  {mark} {tick:>10}", bars))
    widths = {
        thread: max(len(f"thread {thread % 100_000}"), *(len(bars[thread]) for _, bars in rows)) for thread in threads
    }
    head = " " * 15 + "".join(f"  {f'thread {thread % 100_000}':<{widths[thread]}}" for thread in threads)
    lines = [label + "".join(f"  {bars[thread]:<{widths[thread]}}" for thread in threads) for label, bars in rows]
    return "\n".join(line.rstrip() for line in (head, *lines))
