"""Out of Spark: DataFrames and streaming queries as flows, by demand.

Start at `frames` (`from_dataframe`) and `streams` (`from_stream`).

The methods of `Flow` import it on use, and `_tasks` for the rows that come.
"""
