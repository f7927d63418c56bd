"""The workflow of CI runs commands that there are, under the Pythons that the package says it works on."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from installed.environments import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs() -> list[tuple[str, dict[str, Any]]]:
    return [(name, job) for file in FILES for name, job in yaml.safe_load(file.read_text())["jobs"].items()]


def commands() -> list[str]:
    """The arguments of make in each job, one for each value of the job's matrix."""
    found = []
    for _, job in jobs():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            for arguments in re.findall(r"^make (.+)$", step.get("run", ""), re.MULTILINE):
                names = [name for name in matrix if f"${{{{ matrix.{name} }}}}" in arguments]
                found += [
                    arguments.replace(f"${{{{ matrix.{name} }}}}", value) for name in names for value in matrix[name]
                ] or [arguments]
    return found


def test_there_are_jobs() -> None:
    assert {"check", "threads", "spark", "jvm", "browser"} <= {name for name, _ in jobs()}


@pytest.mark.parametrize("command", commands())
def test_make_knows_each_command(command: str) -> None:
    done = subprocess.run(
        ["make", "-n", *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


JOB = {"name", "if", "needs", "strategy", "runs-on", "timeout-minutes", "env", "permissions", "steps"}
STEP = {"name", "id", "if", "uses", "with", "run", "env", "working-directory"}
CONTEXTS = {
    "github": {"workflow", "event_name", "ref", "run_id", "run_attempt"},
    "runner": {"os", "arch", "environment"},
}


def faults_of(workflow: dict[str, Any]) -> list[str]:
    """What the workflow has that it may not have. `make workflows` says more, and needs Go."""
    found = []
    for name, job in workflow["jobs"].items():
        found += [f"{name}: {key}" for key in set(job) - JOB]
        found += [f"{name}: no {key}" for key in ("runs-on", "timeout-minutes", "steps") if key not in job]
        needs = job.get("needs", [])
        found += [f"{name}: needs {other}" for other in ([needs] if isinstance(needs, str) else needs)
                  if other not in workflow["jobs"]]  # fmt: skip
        known = {**CONTEXTS, "matrix": set(job.get("strategy", {}).get("matrix", {}))}
        for context, key in re.findall(r"\b(github|runner|matrix)\.(\w+)", yaml.safe_dump(job)):
            if key not in known[context]:
                found.append(f"{name}: {context}.{key}")
        for step in job.get("steps", []):
            found += [f"{name}: {key}" for key in set(step) - STEP]
            if ("uses" in step) == ("run" in step):
                found.append(f"{name}: a step either uses an action or runs a command")
            if not re.fullmatch(r"[\w-]+(/[\w-]+)+@v\d+", step.get("uses", "actions/checkout@v4")):
                found.append(f"{name}: {step['uses']}")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_workflow_has_what_a_workflow_may_have(file: Path) -> None:
    assert faults_of(yaml.safe_load(file.read_text())) == []


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("matrix.part ==", "matrix.prat ==", "nightly: matrix.prat"),
        ("runner.arch", "runner.archi", "nightly: runner.archi"),
        ("runs-on: ubuntu-latest", "run-on: ubuntu-latest", "check: no runs-on"),
        ("runs-on: ubuntu-latest", "runs-on: ubuntu-latest\n    needs: [chekc]", "check: needs chekc"),
        ("- uses: actions/checkout@v4", "- use: actions/checkout@v4", "check: use"),
        ("actions/setup-go@v5", "actions/setup-go", "check: actions/setup-go"),
    ],
)
def test_what_is_wrong_in_a_workflow_is_named(right: str, wrong: str, named: str) -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert right in text
    assert named in faults_of(yaml.safe_load(text.replace(right, wrong)))


def test_each_python_of_the_classifiers_has_a_job() -> None:
    (matrix,) = (job["strategy"]["matrix"] for name, job in jobs() if name == "threads")
    said = re.findall(
        r"Programming Language :: Python :: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.M
    )
    assert [item for item in matrix["python"] if not item.endswith("t")] == said
    assert "3.14t" in matrix["python"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest"]


def test_what_contributors_need_is_not_published() -> None:
    extras = {
        "cli",
        "spark",
        "jvm",
        "report",
        "greenlet",
        "play",
        "otel",
        "postgres",
        "redis",
        "kafka",
        "nats",
        "http",
        "files",
    }
    assert set(PROJECT["project"]["optional-dependencies"]) == extras
    assert {"test", "dev"} <= set(PROJECT["dependency-groups"])


def test_each_extra_that_a_message_names_is_one() -> None:
    from reactive_runtime._cli.missing import EXTRAS

    extras = PROJECT["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        if package != "markupsafe":  # comes with jinja2
            assert any(re.match(rf"{package}\d?\b", item, re.IGNORECASE) for item in extras[extra]), (package, extra)
