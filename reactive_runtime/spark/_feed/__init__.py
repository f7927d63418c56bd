"""Segments: files that a flow fills and a streaming query empties, a bounded number at a time.

Start at `segments`.

The sink of a feed imports it.
"""
