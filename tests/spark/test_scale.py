"""`make bench PART=scale`: its traces are what they say, its verdicts are checked, and what it starts is ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from judges import by_reference
from sinks import until

from reactive_runtime.judging import judge_runs
from reactive_runtime.judging._files import footers
from reactive_runtime.spark import judge_frame
from reactive_runtime.testing.trace import check_files, read_trace

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))
try:
    import scale  # type: ignore[import-not-found]
    from made_traces import Run, ended, write  # type: ignore[import-not-found]
finally:
    sys.path.remove(str(BENCHMARKS))

SHAPES = {
    "alike": Run("alike", 70, first=1_000, length=100),
    "one": Run("one", 1, length=30),
    "half in one": Run("half in one", 64, long=6_400, length=100),
    "half of all in one, blocks not full": Run("not full", 70, first=3, long=3_010, length=50),
    "nearly all in one": Run("nearly all", 3, long=9_000, length=30),
    "little in a long one": Run("little", 130, long=30, length=60),
}


def planted(run: Run, *numbers: int) -> Run:
    return Run(run.name, run.subscriptions, run.first, run.long, numbers, run.length)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trace_keeps_all_rules_and_has_what_it_says(shape: str, tmp_path: Path) -> None:
    run = SHAPES[shape]
    write(run, tmp_path)
    records = read_trace(tmp_path)
    assert len(records) == run.records
    assert {record.subscription for record in records} == set(run.numbers)
    tickets = [ticket for record in records for ticket in (record.begin, record.end)]
    assert len(set(tickets)) == 2 * run.records
    assert sum(record.signal == "on_next" for record in records) == run.elements
    found = by_reference(records)
    assert found["violations"] == Counter()
    lengths = Counter(record.subscription for record in records)
    assert {lengths[number] for number in run.numbers if number != run.longest} == {run.length}
    assert run.longest is None or lengths[run.longest] == run.long


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_planted_is_what_the_reference_finds(shape: str, tmp_path: Path) -> None:
    run = SHAPES[shape]
    last = run.numbers[-1]  # the long one, where there is one
    for numbers in {(last,), (run.first, last) if last != run.first else (last,)}:
        broken = planted(run, *numbers)
        folder = tmp_path / str(len(numbers))
        write(broken, folder)
        found = by_reference(read_trace(folder))["violations"]
        rows = sorted((name, number, rule, count, first) for name, _, number, rule, count, first in found.elements())
        assert rows == broken.findings()
        assert {number for _, number, *_ in rows} == set(numbers)


def test_a_long_subscription_lives_from_the_beginning_of_its_run_to_the_end(tmp_path: Path) -> None:
    run = Run("long", 640, long=64_000, length=100)
    write(run, tmp_path)
    begins = [item.begin for item in read_trace(tmp_path) if item.subscription == run.longest]
    gaps = {later - earlier for earlier, later in pairwise(begins)}
    assert begins[0] < 8 * 5
    assert begins[-1] > 8 * (run.records - 5)
    assert max(gaps) <= 8 * 4


def test_files_are_in_the_layout_by_which_a_judge_plans(tmp_path: Path) -> None:
    run = Run("layout", 300, first=7, long=60_000)
    place = write(run, tmp_path)
    groups = footers(check_files(tmp_path))
    assert len(groups) > 2
    assert {group.run for group in groups} == {run.name}
    assert all(group.low >= run.first and group.high == run.longest for group in groups)
    assert (place / "metadata.json").is_file()


def test_a_breach_in_the_subscription_that_has_half_is_found_in_every_plan(spark: Any, tmp_path: Path) -> None:
    data = scale.skewed(3, 40_000)
    folders: dict[Run, Path] = {}
    for run in {*data.clean, *data.broken}:
        folders[run] = write(run, tmp_path / str(len(folders)))
    (broken,) = set(data.broken) - set(data.clean)
    assert broken.broken == (broken.longest,)
    due = scale.Verdict.due(data.broken)
    assert [(run, number, rule) for run, number, rule, *_ in due.violations] == [(broken.name, broken.longest, "1.1")]
    assert scale.Verdict.due(data.clean).violations == []
    places = [folders[run] for run in data.broken]  # two of them keep all rules
    for way in ("ranges", "moved"):
        made, plan = scale.verdict(spark, places, way)
        assert plan.startswith(way)
        assert made == due
    found = judge_frame(spark.read.parquet(*(str(file) for place in places for file in check_files(place)))).violations
    rows = found.select("run", "subscription", "rule", "count", "first").collect()
    assert sorted(map(tuple, rows)) == due.violations
    assert at_once(places) == due
    assert at_once([folders[run] for run in data.clean]) == scale.Verdict.due(data.clean)


def at_once(places: Sequence[Path]) -> scale.Verdict:
    """Without Spark."""
    judged = judge_runs(places)
    rows = judged.violations.select(["run", "subscription", "rule", "count", "first"]).to_pylist()
    violations = sorted(tuple(row.values()) for row in rows)
    return scale.Verdict(len(judged.subscriptions), pc.sum(judged.subscriptions["elements"]).as_py(), violations)


class Local:
    """Judges in this process, and may change what it found."""

    def __init__(self, name: str, change: Callable[[scale.Verdict], scale.Verdict]) -> None:
        self.name = name
        self._change = change

    def judge(self, folders: Sequence[Path]) -> tuple[scale.Verdict, str]:
        return self._change(at_once(folders)), "at once: "

    def used(self) -> float:
        return 0.0


def one_less(made: scale.Verdict) -> scale.Verdict:
    return scale.Verdict(made.subscriptions, made.elements, made.violations[1:])


def once_less(made: scale.Verdict) -> scale.Verdict:
    return scale.Verdict(
        made.subscriptions,
        made.elements,
        [(*violation[:3], violation[3] - 1, violation[4]) for violation in made.violations],
    )


def one_more(made: scale.Verdict) -> scale.Verdict:
    false = ("skewed-000", 1, "1.3", 1, 1)
    return scale.Verdict(made.subscriptions, made.elements, sorted([*made.violations, false]))


def unseen(made: scale.Verdict) -> scale.Verdict:
    return scale.Verdict(made.subscriptions - 1, made.elements, made.violations)


def whole(made: scale.Verdict) -> scale.Verdict:
    return made


@pytest.mark.parametrize("change", [whole, one_less, once_less, one_more, unseen])
def test_a_verdict_that_is_not_right_is_said_and_is_the_exit_status(
    change: Callable[[scale.Verdict], scale.Verdict], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = scale.skewed(2, 4_000)
    written = {run: write(run, tmp_path / str(number)) for number, run in enumerate({*data.clean, *data.broken})}

    class Places:
        def places(self, runs: Sequence[Run]) -> list[Path]:
            return [written[run] for run in runs]

    took = scale.Took()
    scale.take(Local("local", change), data, Places(), took)
    assert took.right is (change is whole)
    assert len(took.seconds) == len(took.used) == 2
    assert ("WRONG" in capsys.readouterr().out) is (change is not whole)
    assert scale.status([took]) == (0 if change is whole else 1)
    assert scale.status([took, scale.Took(right=False)]) == 1


def test_how_far_from_linear() -> None:
    assert scale.away(44.0, 10.0, 4) == pytest.approx(0.1)
    assert scale.away(38.0, 10.0, 4) == pytest.approx(-0.05)


@contextmanager
def with_a_child(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that starts another and waits for it, as a worker of Spark does."""
    command = f"sleep 600 & echo $! > {folder}/child.next && mv {folder}/child.next {folder}/child; wait"
    with ended(subprocess.Popen(["sh", "-c", command], start_new_session=True)) as process:
        until((folder / "child").exists)
        yield process


def is_there(process: int) -> bool:
    """Whether it runs: a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_what_was_started_is_ended_however_it_ends(error: type[BaseException], tmp_path: Path) -> None:
    seen = []

    def fails() -> None:
        with with_a_child(tmp_path) as process:
            seen.extend([process.pid, int((tmp_path / "child").read_text())])
            assert all(map(is_there, seen))
            raise error

    with pytest.raises(error):
        fails()
    until(lambda: not any(map(is_there, seen)))


def test_processor_time_is_of_a_process_and_all_below_it() -> None:
    busy = "import time\nbegin = time.process_time()\nwhile time.process_time() < begin + 0.3: pass\n"
    shell = f"{sys.executable} -c '{busy}'; {sys.executable} -c '{busy}'; echo done; read it"
    with ended(
        subprocess.Popen(["sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            assert process.stdout.readline() == b"done\n"
            assert scale.processor_seconds(process.pid) >= 0.55
            assert (
                scale.processor_seconds(os.getpid(), without=process.pid) <= scale.processor_seconds(os.getpid()) - 0.5
            )
