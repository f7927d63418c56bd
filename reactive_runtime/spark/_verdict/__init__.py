"""The verdict: recorded runs judged by Spark's tasks, with their tables and their history.

Start at `traces` (`verify`), then `judging`.

The commands and `reactive_runtime.spark` import it.
"""
