"""Errors: the notes on them, how they pass a boundary, and the hook for lost signals.

Start at `dropping`, the hook, and at `assembly`, the notes that name an operator and its line.

Every module of `_core` and the operators import it.
"""
