"""The wheel, installed where there is no clone: what is missing is one line, and the scenarios are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from installed.environments import build_wheel, environment, run
from reactive_runtime._cli.commands import app

pytestmark = pytest.mark.xdist_group("installed")

COMMANDS = {
    "stress": [],
    "verify": ["runs"],
    "report": ["runs"],
    "compact": ["runs"],
    "prune": ["runs", "--nights", "1"],
    "tables": ["runs", "--into", "lake.nights", "--format", "iceberg"],
    "tck": ["program:publisher"],
    "explore": ["program:lost"],
    "ps": ["1"],
    "top": ["1"],
}
"""Arguments with which each command does its work, where everything is installed."""

PROGRAM = """
import threading

from reactive_runtime import Flow


def publisher(elements):
    return Flow.range(elements)


def lost():
    held = [0]

    def add():
        held[0] += 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held[0] == 2
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    return environment(tmp_path_factory.mktemp("bare") / "env", wheel, [])


@pytest.fixture(scope="module")
def with_typer(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    return environment(tmp_path_factory.mktemp("with_typer") / "env", wheel, ["typer", "rich"])


@pytest.fixture(scope="module")
def with_cli(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    return environment(tmp_path_factory.mktemp("with_cli") / "env", wheel, ["typer", "rich", "numpy", "pyarrow"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bare folder, but for a program of a user."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "runs").mkdir()
    return tmp_path


def says_what_installs(programs: Path, arguments: list[str], folder: Path, package: str, extra: str) -> None:
    done = run(programs / "reactive-runtime", *arguments, cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("reactive-runtime: ")
    assert package in line
    assert line.endswith(f"pip install 'reactive-runtime[{extra}]'")


def test_every_command_is_tried() -> None:
    names = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback is not None
    }
    assert names == set(COMMANDS)


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_without_extras_each_command_is_one_line(bare: Path, folder: Path, command: str | None) -> None:
    arguments = [] if command is None else [command, *COMMANDS[command]]
    says_what_installs(bare, arguments, folder, "typer", "cli")


def test_without_extras_the_module_says_the_same(bare: Path, folder: Path) -> None:
    done = run(bare / "python", "-m", "reactive_runtime", "stress", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == "reactive-runtime: typer is needed, and not installed: pip install 'reactive-runtime[cli]'\n"


def test_without_extras_the_core_works(bare: Path, folder: Path) -> None:
    done = run(bare / "python", "-c", "from reactive_runtime import Flow; print(list(Flow.range(3)))", cwd=folder)
    assert done.stdout == "[0, 1, 2]\n", done.stderr


@pytest.mark.parametrize(
    "call", ["Flow.from_dataframe(None)", "Flow.from_stream(None)", "Flow.range(3).to_spark(None, None)"]
)
def test_without_extras_the_bridge_to_spark_names_its_own(bare: Path, folder: Path, call: str) -> None:
    done = run(bare / "python", "-c", f"from reactive_runtime import Flow; {call}", cwd=folder)
    assert done.returncode == 1
    assert "MissingDependencyError: Spark needs " in done.stderr
    assert done.stderr.endswith(": pip install 'reactive-runtime[spark]'\n")


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["stress", "--list"], "numpy", "cli"),
        (["compact", "runs"], "numpy", "cli"),
        (["verify", "runs"], "pyspark", "spark"),
        (["tables", "runs", "--into", "lake.nights", "--format", "iceberg"], "pyspark", "spark"),
        (["report", "runs"], "jinja2", "report"),
        (["explore", "program:lost", "--engine", "greenlets"], "greenlet", "greenlet"),
        (["explore", "program:lost", "--svg", "lost.svg"], "jinja2", "report"),
        (["explore", "program:lost", "--play"], "textual", "play"),
        (["top", "1"], "textual", "play"),
    ],
    ids=lambda item: " ".join(item[::2]) if isinstance(item, list) else item,
)
def test_with_typer_alone_the_extra_is_named(
    with_typer: Path, folder: Path, arguments: list[str], package: str, extra: str
) -> None:
    says_what_installs(with_typer, arguments, folder, package, extra)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["tck", "program:publisher", "--skip-stochastic", "--no-signals-timeout", "0.01"], 0),
        (["explore", "program:lost"], 1),
        (["prune", "runs", "--nights", "1"], 0),
    ],
    ids=lambda item: item[0] if isinstance(item, list) else str(item),
)
def test_with_typer_alone_the_others_do_their_work(
    with_typer: Path, folder: Path, arguments: list[str], status: int
) -> None:
    done = run(with_typer / "reactive-runtime", *arguments, cwd=folder)
    assert done.returncode == status, done.stdout + done.stderr
    # Of the kit and the explorer, on a machine where they take longer.
    progress = re.compile(r" +check \d+ of \d+, .*|explore: rewriting \d+ files .*")
    assert [line for line in done.stderr.splitlines() if not progress.fullmatch(line)] == []


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["stress", "--verify"], "pyspark", "spark"),
        (["stress", "--verify", "--report", "report.html"], "pyspark", "spark"),
        (["verify", "runs"], "pyspark", "spark"),
        (["report", "runs"], "jinja2", "report"),
    ],
    ids=lambda item: " ".join(item[:2]) if isinstance(item, list) else item,
)
def test_with_the_extra_cli_what_needs_more_says_so_before_any_work(
    with_cli: Path, folder: Path, arguments: list[str], package: str, extra: str
) -> None:
    says_what_installs(with_cli, arguments, folder, package, extra)
    assert list((folder / "runs").iterdir()) == []


@pytest.mark.parametrize("pool", ["threads", "processes-per-scenario"])
def test_the_scenarios_run_from_a_bare_folder(with_cli: Path, folder: Path, pool: str) -> None:
    load = ["range_on_the_callers", "merged", "--seconds", "6", "--threads", "2", "--seed", "1", "--pool", pool]
    done = run(with_cli / "reactive-runtime", "stress", *load, "--verify", "--engine", "local", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 scenarios" in done.stdout
    assert "clean    no rule was broken" in done.stdout


def test_a_folder_of_ones_own_comes_first(with_cli: Path, folder: Path) -> None:
    (folder / "stress").mkdir()
    (folder / "stress" / "mine.py").write_text(
        "from reactive_runtime import Flow\n"
        "from reactive_runtime.stress import scenario\n\n\n"
        "@scenario(elements=3)\n"
        "def mine(context):\n"
        "    return Flow.range(3)\n"
    )
    done = run(with_cli / "reactive-runtime", "stress", "--list", cwd=folder)
    assert "mine" in done.stdout, done.stderr
    assert "merged" not in done.stdout


def test_every_scenario_of_the_clone_is_in_the_wheel(with_cli: Path, folder: Path) -> None:
    from reactive_runtime.stress import find

    code = "from reactive_runtime.stress import find; from reactive_runtime.stress._declaring import default_folder"
    code += "; print(*(item.name for item in find(default_folder())))"
    done = run(with_cli / "python", "-c", code, cwd=folder)
    assert done.stdout.split() == [item.name for item in find("stress")], done.stderr
