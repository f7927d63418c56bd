"""Nights in tables of Delta and Iceberg: traces and verdicts, each night a version that a reader can travel to.

Start at `kept_nights` (`keep_nights`); `lake_tables` writes a table and finds its versions, `night_rows` has the rows.
"""
