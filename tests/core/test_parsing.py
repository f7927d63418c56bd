"""Fusion parses on any number of threads, also where CPython counts the depth of a tree for all of them together."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from reactive_runtime import Flow


def test_fusion_parses_again_after_a_mismatch_of_the_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, failures = ast.parse, [1]

    def interrupted(*arguments: Any, **others: Any) -> Any:
        if failures[0]:
            failures[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=96, after=92)")
        return parse(*arguments, **others)

    monkeypatch.setattr(ast, "parse", interrupted)
    numbers = Flow.range(9).map(lambda n: n + 1).skip(1).filter(bool).take(5).skip_while(lambda n: n < 3).skip(1)
    assert list(numbers) == [4, 5, 6]
    assert not failures[0], "nothing was parsed: the chain was fused before"
