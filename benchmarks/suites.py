"""The suites of packages of PyPI under `pytest --explore`: how many of their tests start threads, and are explored.

python benchmarks/suites.py [--seconds 120] [--folder build/suites] [NAME ...]

Pip downloads the source distribution of each package, whose tests it takes, and installs the package and what its tests
import into a folder of its own. Pytest runs each suite in a process of its own; nothing of the environment changes. The
table counts a test with threads as explored if the explorer controlled it, and gives schedules a second of the
processor, with the first look at the package's source. A package's own settings of pytest that need
further plugins are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Package:
    """A package whose source distribution has tests that start threads."""

    version: str
    tests: str
    """The files of its tests that start threads, or their folder, in the source distribution."""
    needs: tuple[str, ...] = ()
    """Further packages that its tests import."""


PACKAGES = {
    "cachetools": Package("8.0.2", "tests"),
    "dbutils": Package("3.2.0", "tests"),
    "dogpile.cache": Package(
        "1.5.0", "tests/test_backgrounding.py tests/test_lock.py tests/util/test_nameregistry.py", needs=("mako",)
    ),
    "fasteners": Package("0.20", "tests/test_decorators.py tests/test_helpers.py tests/test_lock.py"),
    "injector": Package("0.24.0", "injector_test.py"),
    "more-itertools": Package("11.2.1", "tests/test_more.py"),
    "python-statemachine": Package(
        "3.2.2",
        "tests/test_contrib_timeout.py tests/test_internal_triggers.py tests/test_threading.py",
    ),
    "transitions": Package("0.9.3", "tests/test_threading.py", needs=("pycodestyle", "dill", "mock")),
    "watchdog": Package("7.1.0", "tests/test_observer.py tests/test_observers_api.py tests/test_skip_repeats_queue.py"),
    "wrapt": Package("2.5.2", "tests/core/test_memoize.py tests/core/test_post_import_hooks.py"),
}


def installed(name: str, package: Package, folder: Path) -> Path:
    """Download and install it, once. Returns the folder of its source."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    base = folder / f"{name}-{package.version}"
    source, target = base / "source", base / "installed"
    if not (base / "done").exists():
        source.mkdir(parents=True, exist_ok=True)
        pinned = f"{name}=={package.version}"
        download = ["download", "--no-deps", "--no-binary", ":all:", "--dest", str(base), pinned]
        if not list(base.glob("*.tar.gz")):
            subprocess.run([*pip, *download], check=True)
        with tarfile.open(next(base.glob("*.tar.gz"))) as opened:
            opened.extractall(source, filter="data")
        subprocess.run([*pip, "install", "--target", str(target), pinned, *package.needs], check=True)
        (base / "done").touch()
    return next(path for path in source.iterdir() if path.is_dir())


def ran(name: str, package: Package, folder: Path, seconds: float) -> dict[str, Any]:
    """Run its suite in a process. Returns what `worker` wrote."""
    source = installed(name, package, folder)
    out = folder / f"{name}.json"
    out.unlink(missing_ok=True)
    target = source.parent.parent / "installed"
    paths = os.pathsep.join([str(HERE), str(target)])
    command = [sys.executable, str(Path(__file__).resolve()), "--worker", str(out.resolve()), *package.tests.split()]
    command += ["--explore", f"--explore-seconds={seconds:g}", "-q", "--continue-on-collection-errors"]
    command += [f"--override-ini={setting}=" for setting in ("addopts", "filterwarnings", "required_plugins")]
    command += ["-p", "no:xdist", "-p", "no:cacheprovider"]
    with (folder / f"{name}.txt").open("w") as log:
        subprocess.run(
            command, cwd=source, stdout=log, stderr=subprocess.STDOUT, timeout=20 * seconds + 600, check=False,
            env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"},
        )  # fmt: skip
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def worker(out: Path, arguments: list[str]) -> None:
    """Run pytest, and write the number of tests and what became of those with threads."""
    import pytest

    class Collected:
        tests: set[str] = set()  # noqa: RUF012
        explored: dict[str, Any] = {}  # noqa: RUF012

        def pytest_runtest_logreport(self, report: Any) -> None:
            self.tests.add(report.nodeid)
            if explored := getattr(report, "explored", None):
                self.explored[report.nodeid] = explored

    collected = Collected()
    status = pytest.main(arguments, [collected])
    out.write_text(json.dumps({"status": int(status), "tests": len(collected.tests), "explored": collected.explored}))


def row(name: str, package: Package, found: dict[str, Any]) -> tuple[str, Counter[str]]:
    """The row of the table, and the reasons for which tests were left out."""
    told = list(found["explored"].values())
    explored = [item for item in told if item["outcome"] != "left out"]
    reasons = Counter(item["reason"] for item in told if item["outcome"] == "left out")
    failed = sum(item["outcome"] == "failed" for item in explored)
    schedules = sum(item["schedules"] for item in explored)
    seconds = sum(item["seconds"] for item in explored)
    rate = f"{schedules / seconds:,.0f}" if seconds else "-"
    cells = [f"{name} {package.version}", found["tests"], len(told), len(explored), f"{schedules:,}", rate, failed]
    return f"| {' | '.join(map(str, cells))} |", reasons


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        worker(Path(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--folder", type=Path, default=HERE / "build" / "suites")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print("| suite | tests | with threads | explored | schedules | a second | failed |")
    print("| --- |" + " ---: |" * 6, flush=True)
    threaded = explored = 0
    reasons: Counter[str] = Counter()
    for name in given.names or PACKAGES:
        found = ran(name, PACKAGES[name], given.folder, given.seconds)
        line, left = row(name, PACKAGES[name], found)
        print(line, flush=True)
        reasons += left
        threaded += len(found["explored"])
        explored += len(found["explored"]) - left.total()
    print(f"\n{explored} of {threaded} tests with threads are explored ({explored / max(threaded, 1):.0%}).")
    for reason, count in reasons.most_common():
        print(f"left out: {count} {reason}")


if __name__ == "__main__":
    main()
