"""Tables as the pipeline writes them, made without it; and a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

NASTY = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
"""What a trace from elsewhere may carry."""

LONG = (
    "flat_map_of_boundaries_on_two_pools_{}",
    "timeout_{}",
    "group_by_with_a_key_that_never_comes_again_and_a_slow_subscriber_{}",
    "processors.replay_limited_by_time.WithoutAnyUnderscoreWhereALineCouldBreak{}",
)
"""Names of scenarios, as long as they get."""

DEMAND, SILENCE = "demand → element", "cancel → silence"


def write(tables: Path, name: str, run: str | None, rows: list[dict[str, Any]], written: bool = True) -> None:
    """A table; not `written`, it has the columns of these rows, and none of them."""
    folder = tables / name if run is None else tables / name / f"run={run}"
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    parquet.write_table(table if written else table.slice(0, 0), folder / "part-0.parquet")


def history(
    folder: Path,
    runs: int = 3,
    broken: bool = True,
    given_up: dict[str, str] | None = None,
    scenarios: int = 4,
    long_names: bool = False,
) -> Path:
    """The tables of some runs; the newest breaks rule 1.3, and one scenario of it is slower.

    `long_names`: scenarios have such, beside `scenario_1`, and the load of each is known.
    """
    tables = folder / "verdict"
    loaded, signals = range(1, 4), [9] * 4
    names = {at: f"scenario_{at}" if at else NASTY for at in range(max(scenarios, 4))}
    if long_names:
        loaded, signals = range(scenarios), [9 * 10 ** (at % 8) for at in range(scenarios)]
        names |= {at: LONG[at % len(LONG)].format(at) for at in range(3, scenarios)}
    for number in range(runs):
        run, newest = f"night-{number}", number == runs - 1
        write(
            tables,
            "runs",
            run,
            [
                {
                    "started": f"2026-11-2{number}T02:15:00+00:00",
                    "complete": True,
                    "version": "0.1.0",
                    "commit": "0123456789ab",
                    "python": "3.11.7",
                    "machine": NASTY,
                    "seed": 7 + number,
                    "threads": 12,
                    "seconds": 30.0,
                    "records": 1_000 * (number + 1),
                    "load": json.dumps(
                        {
                            names[at]: {
                                "rounds": 20 + at,
                                "signals": signals[at],
                                "seconds": 0.5,
                            }
                            for at in loaded
                        }
                        | ({} if long_names else {"scenario_1": [1]})
                    ),
                    "given_up": json.dumps((given_up or {}) if newest else {}),
                }
            ],
        )
        summary, latency, counts = [], [], []
        for at in range(scenarios):
            name = names[at]
            summary.append(
                {
                    "scenario": name, "subscriptions": 10 * at + 1, "cancelled": at,
                    "broken": 3 if broken and newest and at == 1 else 0,
                    "signals": 1_000 - 100 * at if at < 10 else at,
                    "late_max": at % 2 if at else None, "late_inside_max": 0 if at else None,
                }
            )  # fmt: skip
            p50 = 1_000 * (at + 1) * (5 if at == 2 and newest else 1)
            for what in (DEMAND, SILENCE):
                latency.append(
                    {"scenario": name, "what": what, "count": 9, "p50": p50, "p90": p50, "p99": 2 * p50, "max": 3 * p50}
                )
                counts += [
                    {"scenario": name, "what": what, "bucket": 80 + 4 * at + n, "count": n + 1, "largest": p50}
                    for n in range(5)
                ]
        write(tables, "summary", run, summary)
        write(tables, "latency", run, latency)
        write(tables, "histogram", run, counts)
        breaches = [
            {"scenario": "scenario_1", "subscription": n, "rule": "1.3", "count": 2, "first": 40} for n in range(3)
        ]
        write(tables, "violations", run, breaches, broken and newest)
        examples = [
            {
                "scenario": "scenario_1", "subscription": 5, "rule": "1.3", "seen": NASTY,
                "diagram": f"        thread 1    thread 2\n  >> 7  on_next(1)\n     8  {NASTY}",
            }
        ]  # fmt: skip
        write(tables, "examples", run, examples, broken and newest)
    slower = [
        {
            "run": f"night-{runs - 1}", "scenario": "scenario_2", "what": DEMAND, "now": 15_000, "runs": 14,
            "usual": 3_000, "ratio": 5.0, "spread": 1.1, "slower": True,
        }
    ]  # fmt: skip
    write(tables, "regressions", None, slower, broken)
    (tables / "verdict.json").write_text(json.dumps({"runs": [f"night-{runs - 1}"], "unable": []}))
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, headless.

    Playwright has an event loop running on this thread as long as it is there; so it goes with its module, and the
    tests that come after can run loops of their own.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium on the PATH (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()
