"""Traces on disk, behind `reactive_runtime.testing.trace`, which has the public names.

Start with `trace_writer` for how a run is written, `trace_files` for what a folder holds, `trace_columns` for the
columns of both. Only `trace` imports from here, and what is in this folder.
"""
