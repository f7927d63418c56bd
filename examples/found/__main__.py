"""Lists the finds, or shows one: `python -m examples.found [name]`."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from examples.found import FINDS, Find, find

FOLDER = Path("build") / "found"


def installed(item: Find, folder: Path = FOLDER) -> None:
    """Install the package where this process imports it from."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*pip, "--target", str(folder), item.package], check=True)
    sys.path.insert(0, str(folder.resolve()))


def shown(item: Find) -> str:
    """What was found, with the schedule."""
    result = item.explored()
    assert result.failure is not None, f"{item.package} holds: {result}"
    text = [item.package, "", f"It promises: {item.promise}", item.what, f"To mend it: {item.mended}"]
    if not item.counted:
        text.append("It promises nothing else, so this is no fault of it.")
    lines = [line for part in text for line in (textwrap.wrap(part, 100) or [""])]
    where = "also with a GIL" if result.failure.gil else "only without a GIL"
    return "\n".join([*lines, "", f"After {result.failure.found_after} schedules ({where}):", result.failure.diagram()])


def main(names: list[str]) -> int:
    """Show those, or list all."""
    wrong = [name for name in names if name not in FINDS]
    if wrong:
        print(f"no find {wrong[0]!r}; there are: {', '.join(FINDS)}", file=sys.stderr)
        return 2
    for name in FINDS if not names else ():
        item = find(name)
        print(f"{name:15} {item.package:24} {'a fault' if item.counted else 'not promised':13} {item.message}")
    for name in names:
        item = find(name)
        installed(item)
        print(shown(item))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
