"""Errors: what is added to them on the way, how they pass a boundary, and where lost signals go.

Start at `dropping`, the hooks, and at `assembly`, the notes that name an operator and its line.

Every module of `_core` and the operators import it.
"""
