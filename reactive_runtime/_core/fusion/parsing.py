"""`ast.parse`, on any number of threads.

Up to CPython 3.12 all threads share one count of the depth of the tree that is being built. A thread that comes in
between changes it, and `ast.parse` raises SystemError ("AST constructor recursion depth mismatch") for text that is
right.
"""

from __future__ import annotations

import ast
from typing import Final

__all__ = ["parsed"]

TIMES: Final = 100
"""How often a text is parsed, at most. Another thread has to come in between each time."""


def parsed(text: str) -> list[ast.stmt]:
    """The statements of a text."""
    for _ in range(TIMES - 1):
        try:
            return ast.parse(text).body
        except SystemError:  # that is the point
            continue
    return ast.parse(text).body
