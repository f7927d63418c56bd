"""The workflow of CI runs commands that there are, under the Pythons that the package says it works on."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from installed.environments import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs() -> list[tuple[str, dict[str, Any]]]:
    return [(name, job) for file in FILES for name, job in yaml.safe_load(file.read_text())["jobs"].items()]


def targets() -> list[str]:
    """The targets of make that the jobs name, with those of a matrix filled in."""
    found = []
    for _, job in jobs():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            for arguments in re.findall(r"^make (.+)$", step.get("run", ""), re.MULTILINE):
                for name, values in matrix.items():
                    arguments = arguments.replace(f"${{{{ matrix.{name} }}}}", " ".join(values))  # noqa: PLW2901
                found += [item for item in arguments.split() if "=" not in item]
    return found


def test_there_are_jobs() -> None:
    assert {"check", "threads", "spark", "jvm", "browser"} <= {name for name, _ in jobs()}


@pytest.mark.parametrize("target", targets())
def test_each_target_is_one_of_the_makefile(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_each_python_of_the_classifiers_has_a_job() -> None:
    (matrix,) = (job["strategy"]["matrix"] for name, job in jobs() if name == "threads")
    said = re.findall(
        r"Programming Language :: Python :: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.M
    )
    assert [item for item in matrix["python"] if not item.endswith("t")] == said
    assert "3.14t" in matrix["python"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest"]


def test_what_contributors_need_is_not_published() -> None:
    assert set(PROJECT["project"]["optional-dependencies"]) == {"cli", "spark", "jvm", "report", "greenlet"}
    assert {"test", "dev"} <= set(PROJECT["dependency-groups"])


def test_each_extra_that_a_message_names_is_one() -> None:
    from reactive_runtime.cli.missing import EXTRAS

    extras = PROJECT["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        if package != "markupsafe":  # comes with jinja2
            assert any(re.match(rf"{package}\d?\b", item, re.IGNORECASE) for item in extras[extra]), (package, extra)
