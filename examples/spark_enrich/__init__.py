"""A job of Spark that calls a slow service for each row: bounded, retried, rate-limited, and resumed after a kill.

    python -m examples.spark_enrich --rows 1000000 --out enriched

What Spark has for this is a thread pool inside `mapPartitions`, written by hand. Here it is a flow inside each task.
"""
