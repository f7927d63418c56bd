"""Which schedules are run: strategies that sample, searches that exhaust, and shrinking.

Start at `strategies`, then `bounded` and `dpor`.

`explore` imports it.
"""
