"""The 52 programs of SCTBench, and some of other collections, each with a twin without its fault.

They are written anew in Python, by what the programs of the collection do (Thomson, Donaldson and Betts, Concurrency
Testing Using Schedule Bounding, 2014; https://github.com/mc-imperial/sctbench). The programs of the sets CS, chess and
safestack have the threads and the accesses of the originals. Those of CB, inspect, parsec, radbench and splash2 are
parts of large programs: here each is the fault that is published of it, with a little work around it.
"""

from __future__ import annotations

from explore.sctbench import chess, cs, large, others, radbench
from explore.sctbench._program import Entry

__all__ = ["OTHERS", "PROGRAMS", "Entry"]

PROGRAMS = [*cs.PROGRAMS, *chess.PROGRAMS, *large.PROGRAMS, *radbench.PROGRAMS]
OTHERS = others.PROGRAMS
