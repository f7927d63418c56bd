"""What runs at night: the workflow asks for targets that there are, and a night is judged, compared and kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path.cwd()
MAKEFILE = Path("Makefile")
WORKFLOW = Path(".github/workflows/ci.yml").read_text(encoding="utf-8")
ABOVE = {"GROUP", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "PART", "PYTHON_FT"}  # of a make that runs this test
OWN = {name: value for name, value in os.environ.items() if name not in ABOVE}


def asked() -> list[str]:
    """The arguments of make in the jobs of the workflow."""
    return re.findall(r"- run: make (.+)$", WORKFLOW, re.MULTILINE)


def parts(target: str) -> set[str]:
    """The parts of a target that the jobs of the workflow name."""
    (matrix,) = re.findall(r"^ +part: \[(.+)\]$", WORKFLOW, re.MULTILINE)
    named = set(re.findall(rf"\b{target} PART=(\S+)", "\n".join(asked())))
    return (named - {"${{"}) | (set(matrix.split(", ")) if "${{" in named else set())


def listed() -> dict[str, list[str]]:
    """The targets that `make help` lists, by group."""
    printed = subprocess.run(["make", "help"], capture_output=True, text=True, check=True).stdout
    groups = [group.splitlines() for group in printed.split("\n\n")]
    return {group[0]: [line.split()[1] for line in group if line.startswith("  make ")] for group in groups}


def test_help_lists_every_target_in_three_groups() -> None:
    targets = [target for group in listed().values() for target in group]
    (phony, *_) = re.findall(r"^\.PHONY: (.+)$", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed()) == 4  # the first is `make help`
    assert sorted(targets) == sorted(phony.split())
    assert len(targets) <= 20


def test_the_workflow_makes_what_help_lists() -> None:
    targets = {target for group in listed().values() for target in group}
    assert {arguments.split()[0] for arguments in asked()} <= targets
    assert {"core"} | parts("test-part") == {"core", "threads", "spark", "jvm", "browser", "rest"}


def test_every_test_is_in_a_part_that_the_workflow_runs() -> None:
    """`make check` runs the core's; another part names each file that stands alone, and each folder with tests."""
    named = set()
    for part in {"core"} | parts("test-part"):
        printed = subprocess.run([".ci/tests", "--files", part], capture_output=True, text=True, check=True).stdout
        named |= set(printed.split())
    there = {str(file) for file in Path("tests").glob("test_*.py")}
    there |= {str(file.parent) for file in Path("tests").glob("*/test_*.py")}
    assert there <= named


BY_HAND = {"smoke", "soak", "thread-sanitizer"}
"""Parts of `make nightly` that no night runs."""


def test_the_workflow_runs_each_part_of_the_night() -> None:
    printed = subprocess.run([".ci/nightly", "--list"], capture_output=True, text=True, check=True).stdout
    assert {line.split(":")[0] for line in printed.splitlines()} == parts("nightly") | BY_HAND


@pytest.mark.parametrize("script", ["tests", "nightly", "bench", "check", "show"])
def test_an_unknown_part_is_one_line_and_status_2(script: str) -> None:
    done = subprocess.run([f".ci/{script}", "nothing"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0].startswith(f"{script}: ")


@pytest.mark.parametrize(("stress", "prune", "status"), [(0, 0, 0), (1, 0, 1), (2, 0, 2), (0, 4, 2), (1, 4, 1)])
def test_a_night_fails_where_the_run_or_the_retention_does_and_is_pruned_anyhow(
    tmp_path: Path, stress: int, prune: int, status: int
) -> None:
    command = tmp_path / "reactive-runtime"
    ends = f"[ $1 = stress ] && exit {stress}; exit {prune}"
    command.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\n{ends}\n')
    command.chmod(0o755)
    makefile, own = str(MAKEFILE), f"BIN={tmp_path}"
    night = ["make", "--file", makefile, "--old-file", ".venv/ready", own, "NIGHTS=3", "nightly"]
    done = subprocess.run(night, env=OWN, capture_output=True, text=True, check=False)
    assert [int(found) for found in re.findall(r"nightly\] Error (\d)", done.stderr)] == [status] * bool(status)
    first, last = (tmp_path / "called").read_text().splitlines()
    asked = {"--verify", "--fail-on-regression", "runs/summary.md", "runs/stress.xml", "runs/report.html"}
    assert asked <= set(first.split())
    assert last == "prune runs --nights 3 --verdicts 365"


def copied(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def planned(tmp_path: Path, marker: str, *arguments: str) -> str:
    """What make would run in a checkout whose set-up has left `marker`."""
    copied(tmp_path, "Makefile", "pyproject.toml", "requirements.lock", ".ci/setup")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / marker).touch()
    command = ["make", "--dry-run", *arguments]
    return subprocess.run(command, cwd=tmp_path, env=OWN, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("marker", "arguments", "sets_up"),
    [
        ("ready", (), False),
        ("ready", ("GROUP=test",), True),
        ("ready-test", ("GROUP=test",), False),
        ("ready-test", (), True),
    ],
)
def test_a_set_up_of_a_group_is_not_taken_for_the_whole(
    marker: str, arguments: tuple[str, ...], sets_up: bool, tmp_path: Path
) -> None:
    assert (".ci/setup" in planned(tmp_path, marker, *arguments, "test-part", "PART=core")) is sets_up


@pytest.mark.parametrize(
    ("target", "needs"),
    [("check", False), ("test", True), ("run", True), ("test-part PART=core", False), ("test-part PART=spark", True)],
)
def test_only_what_runs_spark_asks_for_java(target: str, needs: bool, tmp_path: Path) -> None:
    assert (".ci/java" in planned(tmp_path, "ready", *target.split())) is needs


def test_a_missing_java_is_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run([ROOT / ".ci/java"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout + done.stderr == (
        "set-up: Spark needs Java 17 or newer (found: none); install it, or point JAVA_HOME at it\n"
    )


def executable(folder: Path, name: str, *lines: str) -> Path:
    """An executable of that name, a script."""
    folder.mkdir(exist_ok=True)
    made = folder / name
    made.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    made.chmod(0o755)
    return made


def interpreter(folder: Path, name: str, *, gil: bool) -> Path:
    """What looks like a Python: it says what it is, or by its status whether it has a GIL."""
    return executable(folder, name, f'case "$2" in *print*) echo {name};; *) exit {int(gil)};; esac')


@pytest.mark.parametrize(("given", "sets_up"), [("", False), ("first", False), ("other", True), ("missing", True)])
def test_another_python_without_a_gil_has_its_environment_made_anew(tmp_path: Path, given: str, sets_up: bool) -> None:
    done = made_free_threaded(tmp_path, given, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert (".ci/setup" in done.stdout) is sets_up
    assert ("rm -rf .venv-free-threaded" in done.stdout) is sets_up


def test_a_python_with_a_gil_is_refused_though_there_is_an_environment(tmp_path: Path) -> None:
    done = made_free_threaded(tmp_path, "with-gil")
    assert done.returncode == 2
    first, *rest = done.stderr.splitlines()
    assert first == f"free-threaded: PYTHON_FT={tmp_path}/bin/with-gil is no Python that was built without a GIL"
    assert all(line.startswith("make") for line in rest)
    assert (tmp_path / ".venv-free-threaded" / "ready-test").exists()


def made_free_threaded(tmp_path: Path, given: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`make` with that PYTHON_FT, in a checkout whose environment was made from `first`."""
    copied(tmp_path, "Makefile", "pyproject.toml", "requirements.lock", ".ci/setup", ".ci/free-threaded")
    for name in ("first", "other", "with-gil"):
        interpreter(tmp_path / "bin", name, gil=name == "with-gil")
    environment = tmp_path / ".venv-free-threaded"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python").symlink_to(tmp_path / "bin/first")
    (environment / "ready-test").touch()
    asked = ["make", *options, *([f"PYTHON_FT={tmp_path}/bin/{given}"] if given else []), "test-free-threaded"]
    return subprocess.run(asked, cwd=tmp_path, env=OWN, capture_output=True, text=True, check=False)


NONE = "free-threaded: there is no Python without a GIL here: install one"
TOOLS = ["env", "bash", "awk", "cat", "dirname", "grep", "head", "mkdir", "mktemp", "rm", "sed", "tr"]


def looked_for(tmp_path: Path, script: Path = ROOT / ".ci/free-threaded", **given: str) -> tuple[int, str, str]:
    """What the script does where there is nothing but TOOLS and what the test has put into `bin`."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or "")
    environment = {"PATH": f"{tmp_path / 'bin'}", "XDG_CACHE_HOME": f"{tmp_path / 'cache'}", **given}
    environment = {name: value for name, value in environment.items() if value}
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("found", ["exit 1", "echo {bin}/with-gil", "echo {bin}/without"])
def test_what_uv_finds_is_asked_whether_it_has_a_gil(tmp_path: Path, found: str) -> None:
    folder = tmp_path / "bin"
    interpreter(folder, "with-gil", gil=True)
    without = interpreter(folder, "without", gil=False)
    executable(folder, "uv", '[ "$2" = install ] && exit 0', found.format(bin=folder))
    status, printed, said = looked_for(tmp_path)
    if found.endswith("without"):
        assert (status, printed, said) == (0, f"{without}\n", "")
    else:
        assert (status, printed, said.count("\n")) == (2, "", 1)
        assert said.startswith(NONE)


@pytest.mark.parametrize("named", [True, False])
def test_a_python_without_a_gil_is_found_without_a_home(tmp_path: Path, named: bool) -> None:
    python = interpreter(tmp_path / "bin", "python3.14t", gil=False)
    given = f"{python}" if named else ""
    assert looked_for(tmp_path, XDG_CACHE_HOME="", PYTHON_FT=given) == (0, f"{python}\n", "")


DOCKER = "Types: deb\nURIs: https://download.docker.com/linux/debian\nSuites: trixie\nComponents: stable\n"
DEBIAN = """Types: deb
# http://snapshot.debian.org/debian
URIs: http://deb.debian.org/debian-security
Suites: trixie-security

Types: deb
URIs: http://deb.debian.org/debian
Suites: trixie trixie-updates
"""
LISTED = "# deb http://old.example/debian trixie main\ndeb http://other.example/debian stable main\n"


def test_a_build_that_fails_is_of_debians_own_archive_and_names_its_log(tmp_path: Path) -> None:
    files = {"a.sources": DOCKER, "b.sources": DEBIAN, "c.list": LISTED}
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "etc/apt/sources.list.d" / name).write_text(text)
    (tmp_path / "etc/os-release").write_text("ID=debian\nVERSION_CODENAME=trixie\n")
    copied(tmp_path, ".ci/thread-sanitizer", ".ci/free-threaded")
    script = tmp_path / ".ci/free-threaded"
    script.write_text(script.read_text().replace(" /etc/", f" {tmp_path}/etc/"))
    for name in ("make", "cc"):
        executable(tmp_path / "bin", name)
    executable(tmp_path / "bin", "apt-get", "cat ../sources.list", "exit 1")
    status, printed, said = looked_for(tmp_path, tmp_path / ".ci/thread-sanitizer")
    log = tmp_path / "cache/reactive_runtime/thread-sanitizer.log"
    assert " http://deb.debian.org/debian trixie main\n" in log.read_text()
    assert (status, printed) == (2, "")
    assert said.splitlines()[1:] == [f"free-threaded: it could not be built: {log} says why"]


def test_what_only_a_build_can_be_says_what_it_takes(tmp_path: Path) -> None:
    status, printed, said = looked_for(tmp_path, ROOT / ".ci/thread-sanitizer")
    assert (status, printed) == (2, "")
    assert (
        said == "free-threaded: this one has to be built: from a source package of Debian, with apt-get, make and cc\n"
    )


def test_check_asks_the_type_checkers_about_the_docs(tmp_path: Path) -> None:
    assert ".ci/check pages" in planned(tmp_path, "ready", "check")
    assert "tests/test_docs.py -k type_checkers" in (ROOT / ".ci/check").read_text()


ENDS_ITS_WORKER = """
import os, pytest
@pytest.mark.parametrize("n", range(40))
def test_alone(n):
    if n == 17:
        os._exit(1)
"""


def test_one_that_ends_its_worker_fails_once_and_the_others_go_on(tmp_path: Path) -> None:
    for name in ("conftest.py", "released.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / name)
    (tmp_path / "test_ends.py").write_text(ENDS_ITS_WORKER)
    command = [sys.executable, "-m", "pytest", "--dist", "loadgroup", "--numprocesses", "2", "test_ends.py"]
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=100, check=False)
    assert "1 failed, 39 passed" in done.stdout, done.stdout + done.stderr


SCRIPTS = [path for path in sorted(Path(".ci").iterdir()) if path.is_file() and b"bash" in path.read_bytes()[:30]]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_can_be_parsed(script: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run([bash, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_change_gives_make_whole_lines_and_files_that_are_there(tmp_path: Path) -> None:
    """Behind the end of a line make takes the next one for a command of its own."""
    programs = tmp_path / ".ci"
    programs.mkdir()
    shutil.copy(".ci/run", programs)
    told = tmp_path / "told"
    stub = f'#!/bin/sh\nfor argument; do printf "%s\\0" "$argument" >> {told}; done\necho python3\n'
    for name in ("tools", "servers", "kafka", "free-threaded", "make"):
        (programs / name).write_text(stub)
        (programs / name).chmod(0o755)
    environment = {**OWN, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([programs / "run"], env=environment, check=True, capture_output=True)
    arguments = told.read_text().split("\0")
    assert [argument for argument in arguments if "\n" in argument] == []
    (tests,) = [argument.partition("=")[2] for argument in arguments if argument.startswith("FREE_TESTS=")]
    assert [file for file in tests.split() if file != "--ignore" and not Path(file).exists()] == []
