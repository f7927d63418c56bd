"""Run all cells, or those whose name has a text in it, and print how many hold, by operator.

PYTHONPATH=tests:. python -m nesting [text]
"""

from __future__ import annotations

import sys
from collections import Counter

from nesting.cells import CONSUMERS, FAILURES, MAKERS, all_cells
from nesting.watching import findings

text = " ".join(sys.argv[1:])
cells = [cell for cell in all_cells() if text in str(cell)]
ran: Counter[tuple[str, str]] = Counter()
wrong: list[str] = []
for cell, found in findings(cells):
    ran[cell.maker, cell.consumer] += 1
    if found is not None:
        wrong.append(found)
        print(found, file=sys.stderr, flush=True)
widest = max(map(len, CONSUMERS))
print(" " * widest, *(f"{maker:>{len(maker)}}" for maker in MAKERS), sep="  ")
for consumer in CONSUMERS:
    print(f"{consumer:{widest}}", *(f"{ran[maker, consumer]:{len(maker)}}" for maker in MAKERS), sep="  ")
print(*(f"{fails}: {sum(cell.fails == fails for cell in cells)} cells" for fails in FAILURES), sep="\n")
print(f"{sum(ran.values())} cells, {len(wrong)} of which do not hold")
sys.exit(bool(wrong))
