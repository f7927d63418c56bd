"""The session, the jobs that a flow has Spark do, and Spark's errors in words.

Start at `spark_session`.

All other rooms of `spark` import it.
"""
