"""The checks of a subscriber, seen from outside (`blackbox`) and from inside (`whitebox`).

Start at `blackbox`; `manual_publishers` are what they drive.

`reactive_runtime.tck` exports its names.
"""
