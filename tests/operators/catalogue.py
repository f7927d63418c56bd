"""Every operator, source and sink once, as the grid and others run it: the cases of `declared`."""

from __future__ import annotations

from declared.kinds import Case, Place, SinkCase, SourceCase
from declared.table import parts
from declared.values import FAILED, failing, numbers

__all__ = ["CASES", "FAILED", "SINKS", "SOURCES", "Case", "Place", "failing", "numbers"]

CASES = list(parts(Case).values())
"""Operators, on a source of 0 to 9."""

SOURCES = parts(SourceCase)
"""And `concat`, `merge`, `merge_comparing`, `zip`, `combine_latest`, `race`, which are among the operators."""

SINKS = parts(SinkCase)
