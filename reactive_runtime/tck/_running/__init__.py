"""How checks run: one trial, its time limits, races on purpose, and the process of the command.

Start at `environment`, one trial of one check; `command` and `child` are the two processes of `tck`.

All checks import it.
"""
