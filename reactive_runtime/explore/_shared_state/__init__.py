"""Which fields, cells and containers threads share, so that only these are made steps.

Start at `watching`.

The session, the stand-ins and what rewrites code import it.
"""
