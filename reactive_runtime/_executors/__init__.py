"""The executors of the package and the clocks of flows: `executors` exports what users need of them.

Start at `in_order` for executors without a clock, at `timers` and `virtual_time` for those with one.

Imported by `executors`, which everything else imports; it stands on `_core`.
"""
