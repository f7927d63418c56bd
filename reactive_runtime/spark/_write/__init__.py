"""Into Spark: the elements of a flow as rows, in micro-batches.

Start at `spark_sink` (`to_spark`); `schemas` and `values` say which value a column takes.

The methods of `Flow` import it on use.
"""
