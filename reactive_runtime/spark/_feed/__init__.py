"""Segments: files that a flow fills and a streaming query empties, a bounded number at a time.

Start at `segments`.

The sinks import it; the verdict uses its locks.
"""
