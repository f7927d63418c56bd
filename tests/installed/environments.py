"""The wheel, and environments that have it and some of its dependencies: as users have it, without a clone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, timeout: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without the PYTHONPATH of the tests: it has what is installed, and no more."""
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "REACTIVE_RUNTIME"))
    }
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, timeout=timeout, check=False, cwd=cwd, env={**variables, **environment},
    )  # fmt: skip


def pip(*arguments: str | Path, cwd: Path) -> None:
    """Run pip, without network."""
    done = run(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(to: Path) -> Path:
    """Build the wheel of this clone."""
    pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", to, ROOT, cwd=to)
    (wheel,) = to.glob("*.whl")
    return wheel


def environment(folder: Path, wheel: Path, packages: Iterable[str]) -> Path:
    """Make a virtual environment with the wheel and these packages, with all they need; the folder of its programs."""
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    pip("--python", programs / "python", "install", "--no-index", "--no-deps", wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in _with_what_they_need(packages):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
    return programs


def _with_what_they_need(packages: Iterable[str]) -> set[str]:
    found: set[str] = set()
    open_ = list(packages)
    while open_:
        name = open_.pop()
        if name in found:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another platform, or another Python
            continue
        found.add(name)
        open_ += [re.split(r"[^\w.-]", need)[0] for need in needs if "extra ==" not in need]
    return found
