"""An example of each member of `Flow`, as its picture shows it: those of the declarations in `tests/declared`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from docs._site.recording import Example

if (tests := str(Path(__file__).parents[2] / "tests")) not in sys.path:
    sys.path.append(tests)

from declared.table import examples, without

__all__ = ["EXAMPLES", "WITHOUT"]

EXAMPLES: Final[dict[str, Example]] = examples()

WITHOUT: Final = without(Example)
"""Members of `Flow` that have no picture, with the reason."""
