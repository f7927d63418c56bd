"""What the help of the command says of a default is so."""

from __future__ import annotations

import contextlib
import inspect
import os
import platform
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from reactive_runtime import stress as package
from reactive_runtime._cli import verdict
from reactive_runtime._cli.commands import app
from reactive_runtime.explore import explore
from reactive_runtime.stress._declaring import default_folder
from reactive_runtime.tck import PublisherVerification
from reactive_runtime.tck._running.child import verification_of
from reactive_runtime.testing.trace import TraceWriter, metadata_of

COMMANDS: dict[str, Any] = dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]

OPTIONS = {
    (command, option.name): option
    for command, item in COMMANDS.items()
    for option in item.params
    if hasattr(option, "show_default")
}

TOLD = re.compile(r"default: (.+?)\.?$")

IN_WORDS = {
    ("stress", "where"): "./stress, else those of the package",
    ("stress", "machine"): "host, cores and system",
    ("verify", "out"): "<first>/verdict",
    ("report", "out"): "report.html",
    ("tck", "skip_stochastic"): "as the verification has it",
}
"""What a help says of a default that the function has no value for. Each has a test: here, or of the command."""


def test_a_default_in_words_is_one_that_is_tested_and_has_no_value_beside_it() -> None:
    told = {name: TOLD.search(option.help or "") for name, option in OPTIONS.items()}
    assert {name: message[1] for name, message in told.items() if message} == IN_WORDS
    assert {OPTIONS[name].default for name in IN_WORDS} <= {None, ""}


def test_the_explorer_has_the_same_defaults_from_the_shell() -> None:
    there = inspect.signature(explore).parameters
    here = {
        name: option.default for (command, name), option in OPTIONS.items() if command == "explore" and name in there
    }
    assert {"schedules", "seed", "strategy", "points", "bound", "limit", "engine"} <= set(here)
    assert here == {name: there[name].default for name in here}


def test_a_flag_is_off_or_says_what_it_is() -> None:
    flags = {
        name: option for name, option in OPTIONS.items() if getattr(option, "is_flag", False) and name[1] != "help"
    }
    assert len(flags) >= 8
    assert [name for name, flag in flags.items() if flag.default and name not in IN_WORDS] == []
    assert [name for name, flag in flags.items() if flag.secondary_opts and flag.default is not None] == []


class Skipping(PublisherVerification[Any]):
    """A verification that skips by itself."""

    skip_stochastic_tests = True

    def create_publisher(self, elements: int) -> Any:
        raise NotImplementedError

    def create_failed_publisher(self) -> Any:
        return None


@pytest.mark.parametrize(("given", "skips"), [((), True), (("--no-skip-stochastic",), False)])
def test_a_verification_has_its_own_way_unless_the_option_is_given(
    given: tuple[str, ...], skips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def judged(target: Any, budget: float, memory: float) -> list[Any]:
        made.append(target)
        return []

    monkeypatch.setattr("reactive_runtime.tck._running.command.judged", judged)
    with contextlib.suppress(typer.Exit):  # nothing was judged
        app(["tck", f"{__name__}:Skipping", *given], standalone_mode=False)
    (target,) = made
    assert verification_of(target.name, **target.settings).skip_stochastic_tests is skips  # type: ignore[attr-defined]
    assert verification_of(f"{__name__}:Skipping").skip_stochastic_tests  # type: ignore[attr-defined]


def test_scenarios_are_those_of_the_folder_stress_else_those_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = Path(package.__file__).parent
    assert Path(default_folder()) in (home / "scenarios", home.parents[1] / "stress")
    (tmp_path / "stress").mkdir()
    assert default_folder() == "stress"


def test_a_machine_is_its_host_cores_and_system(tmp_path: Path) -> None:
    facts = metadata_of(TraceWriter(tmp_path, "run").path) or {}
    assert facts["machine"] == f"{platform.node()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def test_a_report_goes_to_report_html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verdict, "reported", lambda _, files: written.extend(files))
    app(["report", str(tmp_path)], standalone_mode=False)
    assert written == [Path("report.html")]
