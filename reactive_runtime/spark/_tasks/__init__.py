"""Flows inside of Spark's tasks (`map_flow`), and what all tasks of a job share.

Start at `task_flows`; `coordinator` is the driver's end of what is shared, `link` the task's.

`reactive_runtime.spark` exports its names. A worker of Spark imports it, so it has to be quick to import.
"""
