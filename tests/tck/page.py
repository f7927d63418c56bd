"""Tables of docs/tck-evidence.md, or another page, that tests make: compared, or, with WRITE_DOCS=1, written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tck-evidence.md"


def table_is(name: str, rows: Iterable[str], page: Path = PAGE) -> None:
    """The rows of the table between `<!-- name -->` and `<!-- end -->`, below its head, are these."""
    before, head, old, after = _parts(name, page)
    rows = list(rows)
    if os.environ.get("WRITE_DOCS"):
        page.write_text("\n".join([*before, *head, *rows, *after]) + "\n")
    else:
        differs = "\n".join(unified_diff(old, rows, "the page", "the tests", lineterm="", n=0))
        assert not differs, f"table {name!r} in {page.name}: {_by_itself()} writes what the tests found\n{differs}"


def row_is(name: str, row: str, page: Path = PAGE) -> None:
    """The table has this row; what stands in the first column says which it is."""
    before, head, rows, after = _parts(name, page)
    key = row.split(" | ")[0] + " |"
    if os.environ.get("WRITE_DOCS"):
        rows = [row if item.startswith(key) else item for item in rows]
        page.write_text("\n".join([*before, *head, *rows, *([] if row in rows else [row]), *after]) + "\n")
    else:
        was = "".join(f"\n-{item}" for item in rows if item.startswith(key))
        assert row in rows, f"table {name!r} in {page.name}: {_by_itself()} writes what the tests found{was}\n+{row}"


def _by_itself() -> str:
    """The command that runs the tests at hand, and writes."""
    return f"WRITE_DOCS=1 pytest {os.environ['PYTEST_CURRENT_TEST'].partition('::')[0]}"


def _parts(name: str, page: Path) -> tuple[list[str], list[str], list[str], list[str]]:
    lines = page.read_text().splitlines()
    begin = lines.index(f"<!-- {name} -->") + 1
    end = lines.index("<!-- end -->", begin)
    return lines[:begin], lines[begin : begin + 2], lines[begin + 2 : end], lines[end:]
