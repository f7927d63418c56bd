"""The commands of the lecture print what its page shows."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from searching import by_day

PAGE = Path("docs/lecture.md")
COMMAND = re.compile(r"```sh\n(.*)\n```\n\n```text\n(.*?)```", re.DOTALL)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
STEP = re.compile(r"^## (\d):(\d\d) .+$", re.MULTILINE)


def steps() -> list[str]:
    return re.split(r"(?m)^(?=## )", PAGE.read_text())[1:]


def commands() -> list[str]:
    return [match[1] for step in steps() if (match := COMMAND.search(step))]


def printed(command: str, folder: Path) -> str:
    """The output of a command, in a folder that has the file that the page saves."""
    program, _, wanted = command.partition(" | grep ")
    name, *arguments = program.split()
    module = {"python": [], "reactive-runtime": ["-m", "reactive_runtime"]}[name]
    (folder / "barrier.py").write_text(CODE.findall(PAGE.read_text())[-1])
    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *module, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    lines = [line.rstrip() for line in done.stdout.splitlines() if wanted in line]
    return "\n".join(lines).strip("\n") + "\n"


def same_every_time(text: str) -> str:
    """Without the time that it took, and without the token, which depends on the source."""
    text = re.sub(r" in [\d.]+ s \([\d,]+ a second\)", "", text)
    return re.sub(r"token rr2-\S+", "token rr2-…", text)


def test_the_steps_fill_half_an_hour() -> None:
    minutes = [int(hour) * 60 + int(minute) for hour, minute in STEP.findall(PAGE.read_text())]
    assert minutes == sorted(minutes)
    assert minutes[0] == 0
    assert 25 <= minutes[-1] < 30
    assert len(minutes) == len(steps()) == 10
    assert all("{.say}" in step for step in steps())


@pytest.mark.parametrize("command", by_day(4, commands()))
def test_a_command_of_the_lecture_prints_what_is_shown(command: str, tmp_path: Path) -> None:
    text = PAGE.read_text()
    found = same_every_time(printed(command, tmp_path))
    head = f"```sh\n{command}\n```\n\n```text\n"
    begin = text.index(head) + len(head)
    end = text.index("```", begin)
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(text[:begin] + found + text[end:])
    differs = "\n".join(difflib.unified_diff(text[begin:end].splitlines(), found.splitlines(), lineterm="", n=0))
    assert not differs or os.environ.get("WRITE_DOCS"), f"WRITE_DOCS=1 EXPLORE_SCHEDULES=1 pytest {__file__}\n{differs}"
