"""The races that the explorer found in packages of PyPI as pages: the promise, the program, a schedule that fails.

The schedules are kept in examples/found/schedules: no package is installed while the site is built. The nightly run
finds each of them again.
"""

from __future__ import annotations

import inspect
import sys

from examples.found import FINDS, Find, find, schedule_of

__all__ = ["pages"]


def pages() -> dict[str, str]:
    """The text of each page by its path, below the folder of the finds."""
    return {"index.md": _index(), **{f"{name}.md": _page(name) for name in FINDS}}


def _index() -> str:
    rows = "\n".join(_row(name) for name in FINDS)
    entries = "\n".join(FINDS)
    return f"""# Races found elsewhere

The [explorer](../explore.md) found these in packages of PyPI, with programs of some lines.
The packages are good ones, whose authors thought of threads; that is why they are here.
`python -m examples.found` lists them.
`python -m examples.found pykka` installs that package into build/found and shows a schedule.

| package | what happens | with a GIL | against what it promises |
| --- | --- | --- | --- |
{rows}

```{{toctree}}
:hidden:

{entries}
```
"""


def _row(name: str) -> str:
    item = find(name)
    page = f"[{_package(item)}]({name}.md)"
    return f"| {page} | {_title(item)} | {'yes' if item.gil else 'no'} | {'yes' if item.counted else 'no'} |"


def _page(name: str) -> str:
    item = find(name)
    title = _title(item)
    counted = "" if item.counted else "\nIt promises nothing else, so this is no fault of it.\n"
    return f"""# {_package(item)}: {title[0].lower()}{title[1:]}

Its promise: {_paragraph(item.promise)}
{counted}
{_paragraph(item.what)}

To mend it: {_paragraph(item.mended)}

{"It happens with a GIL, too." if item.gil else "It happens only without a GIL."}

## The program

```python
{inspect.getsource(item.program).rstrip()}
```

## A schedule that shows it

```text
{schedule_of(name).read_text(encoding="utf-8").rstrip()}
```

Time goes downwards, and each column is a thread; the [explorer's page](../explore.md) explains the signs.
`python -m examples.found {name}` finds one there and then.
"""


def _package(item: Find) -> str:
    return item.package.replace("==", " ")


def _title(item: Find) -> str:
    """The first sentence of the find's file, without its full stop."""
    return (sys.modules[item.program.__module__].__doc__ or "").strip().splitlines()[0].rstrip(".")


def _paragraph(text: str) -> str:
    return " ".join(text.split())
