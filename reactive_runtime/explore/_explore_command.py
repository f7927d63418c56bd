"""What the command runs: a scenario named in the shell, in this process or in several."""

from __future__ import annotations

import contextlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from reactive_runtime._support.shell_names import import_string
from reactive_runtime.errors import ExploreError, ReactiveError
from reactive_runtime.explore._exploration import explore, replay
from reactive_runtime.explore._results import Result, Verdict
from reactive_runtime.explore._schedule.tokens import Token
from reactive_runtime.explore._schedule.watchdog import ends_where_no_thread_runs

__all__ = ["Asked", "explored", "replayed", "saved", "token_in"]

_HOLDING: Final = 3
"""Times that a thread may be blocked no thread may have run, before the process is ended."""


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line; the fields are those of `explore`."""

    target: str
    schedules: int
    seed: int
    strategy: str
    points: str
    modules: tuple[str, ...]
    bound: int | None
    limit: int
    engine: str
    gil: str
    early_timeouts: int
    pause: float
    hang: float
    job: int | None = None


def explored(asked: Asked, jobs: int = 1) -> Result:
    """Explore in so many processes, each with a seed and a core of its own; they share the schedules."""
    if jobs == 1:
        return _run(asked)
    if asked.strategy in ("bounded", "dpor", "brute-force"):
        raise ReactiveError(f"--jobs {jobs}: the strategy {asked.strategy} is one search, and has no parts to share")
    import_string(asked.target)  # what is wrong with it is reported once, and here
    parts = [
        replace(asked, seed=asked.seed + job, job=job, schedules=-(-asked.schedules // jobs)) for job in range(jobs)
    ]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        results = list(pool.map(_run, parts))
    failed = [result for result in results if result.failure is not None]
    if failed:
        return failed[0]
    unseen = list(dict.fromkeys(call for result in results for call in result.not_looked_into))
    uncontrolled = next((result.uncontrolled for result in results if result.uncontrolled), "")
    if not unseen and not uncontrolled and any(result.verdict.kind == "exhausted" for result in results):
        return next(result for result in results if result.verdict.kind == "exhausted")
    schedules = sum(result.schedules for result in results)
    longest = max(result.seconds for result in results)
    estimates = [item for result in results if (item := result.verdict.coverage) is not None]
    # The mean: all together have seen at least what each of them has.
    coverage = sum(estimates) / len(estimates) if len(estimates) == len(results) else None
    early = [item for result in results if (item := result.verdict.early_timeouts) is not None]
    verdict = Verdict("held", schedules, coverage=coverage, early_timeouts=max(early, default=None))
    if unseen or uncontrolled:
        verdict = Verdict("incomplete", schedules)
    return replace(
        results[0],
        schedules=schedules,
        seconds=longest,
        verdict=verdict,
        not_looked_into=unseen,
        uncontrolled=uncontrolled,
    )


def _run(asked: Asked) -> Result:
    options: dict[str, Any] = {name: value for name, value in vars(asked).items() if name != "target"}
    with ends_where_no_thread_runs(_HOLDING * asked.hang):
        return explore(import_string(asked.target), **options)


def replayed(
    target: str, file: Path, modules: tuple[str, ...] = (), hang: float = 10.0, *, debug: bool = False
) -> Result:
    """Run the schedule that was saved to `file`; `debug`: and stop in the debugger, for as long as that takes."""
    with contextlib.nullcontext() if debug else ends_where_no_thread_runs(_HOLDING * hang):
        return replay(import_string(target), token_in(file), modules=modules, hang=hang, debug=debug)


def token_in(file: Path) -> str:
    """The token in a file: its one line that is no comment. ExploreError where there is none."""
    try:
        text = file.read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        raise ExploreError(f"{file}: can't be read: {error}") from error
    if len(lines) != 1:
        raise ExploreError(f"{file}: one line with the token of a schedule is needed, and there are {len(lines)}")
    Token.parse(lines[0])
    return lines[0].strip()


def saved(result: Result, file: Path) -> None:
    """Write the failing schedule to `file`: its token, and as a comment what it shows."""
    assert result.failure is not None
    comment = "".join(f"# {line}\n" for line in str(result).splitlines() + result.failure.diagram().splitlines())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{comment}{result.failure.token}\n", encoding="utf-8", errors="backslashreplace")
