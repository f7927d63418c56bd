"""Which fields, cells and containers threads share, so that only these are made steps.

Start at `watching`.

The session imports it.
"""
