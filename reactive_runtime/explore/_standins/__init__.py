"""What stands in for locks, conditions, threads, clocks and event loops in an explored program.

Start at `instrumented` (locks), then `patching`, which puts them into the modules of the standard library.

The session imports it.
"""
