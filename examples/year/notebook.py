"""Makes the notebook `look.ipynb` of the cells of `look.py`, which editors show as they are.

python -m examples.year.notebook
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

__all__ = ["NOTEBOOK", "SOURCE", "text_of_notebook"]

SOURCE: Final = Path(__file__).parent / "look.py"
NOTEBOOK: Final = SOURCE.with_suffix(".ipynb")

_ABOUT: Final = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def text_of_notebook() -> str:
    """The text of the notebook's file, without outputs."""
    parts = re.split(r"^# %%(.*)\n", SOURCE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    cells = [_cell(kind, text.strip(), at) for at, (kind, text) in enumerate(zip(parts[::2], parts[1::2], strict=True))]
    notebook = {"cells": cells, "metadata": _ABOUT, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str, at: int) -> dict[str, Any]:
    if "markdown" in kind:
        said = re.sub(r"^# ?", "", text, flags=re.MULTILINE).splitlines(keepends=True)
        return {"cell_type": "markdown", "id": f"year-{at}", "metadata": {}, "source": said}
    code = text.splitlines(keepends=True)
    about: dict[str, Any] = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "id": f"year-{at}", "metadata": {}, "source": code, **about}


if __name__ == "__main__":
    NOTEBOOK.write_text(text_of_notebook(), encoding="utf-8")
