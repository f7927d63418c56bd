"""`replay(debug=True)` stops in the debugger just before the breach, in the frame of the thread that breaks."""

from __future__ import annotations

import linecache
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from examples.hazards.progress.lock_order import Exchange
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import Failure, explore, replay


class Stock:
    def __init__(self) -> None:
        self.jobs = [1, 2, 3]
        self.taken = 0

    def take(self) -> None:
        if self.jobs:
            self.jobs.pop()
            self.taken += 1

    def actor_a(self) -> None:
        self.take()
        self.take()

    def actor_b(self) -> None:
        self.take()
        self.take()


class Lost(Stock):
    def take(self) -> None:
        self.taken += 1

    def at_end(self) -> None:
        assert self.taken == 4


class Negative(Lost):
    def at_end(self) -> None:
        pass

    def at_each_step(self) -> None:
        assert self.taken < 3, "enough"


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[FrameType]:
    """The frames in which the debugger was called."""
    frames: list[FrameType] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: frames.append(sys._getframe(1)))
    return frames


def failure_of(program: Any, **options: Any) -> Failure:
    failure = explore(program, **options).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize("points", ["shared", "sync"])
def test_it_stops_before_the_line_that_raises(points: Any, stops: list[FrameType]) -> None:
    class Locking(Stock):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

        def take(self) -> None:
            with self.lock:
                left = len(self.jobs)
            with self.lock:
                if left:
                    self.jobs.pop()

    failure = failure_of(Locking, points=points)
    assert failure.breach is not None
    assert linecache.getline(*failure.breach).strip() == "self.jobs.pop()"
    again = failure.replay(debug=True)
    assert again.failure is not None
    assert again.failure.message == failure.message
    (frame,) = stops
    assert (frame.f_code.co_name, frame.f_code.co_filename) == ("take", __file__)
    assert frame.f_locals["left"] >= 1
    assert frame.f_locals["self"].jobs == []


def test_it_stops_once_though_the_line_is_passed_before(stops: list[FrameType]) -> None:
    failure = failure_of(Stock)
    assert failure.message.endswith("IndexError: pop from empty list")
    failure.replay()
    assert stops == []
    failure.replay(debug=True)
    assert [(frame.f_code.co_name, frame.f_locals["self"].jobs) for frame in stops] == [("take", [])]


def test_it_stops_before_an_invariant_that_does_not_hold(stops: list[FrameType]) -> None:
    failure_of(Lost).replay(debug=True)
    failure_of(Negative).replay(debug=True)
    assert [frame.f_code.co_name for frame in stops] == ["at_end", "at_each_step"]
    assert stops[0].f_locals["self"].taken < 4
    assert stops[1].f_locals["self"].taken == 3


def test_it_stops_where_a_thread_waits_for_ever(stops: list[FrameType]) -> None:
    failure = failure_of(Exchange)
    assert failure.kind == "deadlock"
    again = failure.replay(debug=True)
    assert failure.breach is not None
    assert [frame.f_code.co_filename for frame in stops] == [failure.breach[0]]
    assert again.failure is not None
    assert again.failure.kind == "deadlock"


@pytest.mark.parametrize("points", ["line", "opcode"])
def test_it_stops_before_the_last_step_where_lines_are_points(points: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[list[str]] = []

    def stop() -> None:
        frame: FrameType | None = sys._getframe()
        names = []
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        frames.append(names)

    monkeypatch.setattr(sys, "breakpointhook", stop)
    failure_of(Stock, points=points, shrink=False).replay(debug=True)
    assert len(frames) == 1
    assert "take" in frames[0]


def test_what_is_called_in_the_debugger_does_not_lose_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def stop() -> None:
        item = sys._getframe(1).f_locals["self"]
        item.taken = 0
        for _ in range(20):
            item.__class__.count(item)
        seen.append(item.taken)

    class Counting(Stock):
        def count(self) -> None:
            self.taken += 1

        def actor_c(self) -> None:
            self.count()

    monkeypatch.setattr(sys, "breakpointhook", stop)
    failure_of(Counting).replay(debug=True)
    assert seen == [20]


def test_a_schedule_that_holds_now_does_not_stop(stops: list[FrameType]) -> None:
    most = 3

    class Counted(Lost):
        def at_end(self) -> None:
            assert self.taken > most

    token = failure_of(Counted).token
    most = 0
    assert replay(Counted, token, debug=True).holds
    assert stops == []


def test_a_failure_of_another_process_needs_its_scenario() -> None:
    failure = pickle.loads(pickle.dumps(failure_of(Lost)))
    with pytest.raises(ExploreError, match=r"replay\(scenario, failure\.token\)"):
        failure.replay()


SCRIPT = """
from reactive_runtime.explore import explore

class Stock:
    def __init__(self):
        self.jobs = [1]

    def take(self):
        if self.jobs:
            job = self.jobs.pop()

    def actor_a(self):
        self.take()

    def actor_b(self):
        self.take()

explore(Stock).failure.replay(debug=True)
print("went on")
"""


def debugged(tmp_path: Path, commands: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), **variables}
    return subprocess.run(
        [sys.executable, "script.py"],
        input=commands,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_pdb_stops_there_and_sees_the_state(tmp_path: Path) -> None:
    done = debugged(tmp_path, "p self.jobs, 6 * 7\nc\n")
    assert "script.py(10)take()" in done.stdout, done.stderr
    assert "-> job = self.jobs.pop()" in done.stdout
    assert "([], 42)" in done.stdout
    assert "went on" in done.stdout


def test_pdb_may_be_quit(tmp_path: Path) -> None:
    done = debugged(tmp_path, "q\n")
    assert "went on" not in done.stdout
    assert "BdbQuit" in done.stderr


def test_the_variable_names_another_debugger_or_none(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\ndef stop(): print('in', sys._getframe(1).f_code.co_name)\n")
    environment = f"{Path.cwd()}:{tmp_path}"
    assert "in take\nwent on" in debugged(tmp_path, "", PYTHONBREAKPOINT="mine.stop", PYTHONPATH=environment).stdout
    assert debugged(tmp_path, "", PYTHONBREAKPOINT="0").stdout == "went on\n"
