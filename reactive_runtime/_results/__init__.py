"""The results of a run: states, figures in words, and files that CI servers read.

Start at `states`, the one place that decides what is clean, broken or incomplete.

The harness, the report and the commands import it.
"""
