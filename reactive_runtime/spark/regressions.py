"""Is a run slower than those before it? By a test that noise does not pass, and a lasting change does not wear out.

A series is the median latency of one scenario, run by run (`latency`, p50, no less than a microsecond), as logarithm;
its history are the complete runs before, on the same machine and Python. The history is gone through from its
beginning, a night at a time, and each night is held against what was usual by then:

1. A night on which everything is slow says something of the machine, or of all scenarios: the median, over the series,
   of how far each is from its usual is taken off all of them, where there are 8 of them or more; it is a series of its
   own, `all scenarios`.
2. Usual is the median of the latest 28 nights that counted as usual, and the spread is their median absolute deviation
   (times 1.4826), or the median of the spreads of all series where that is larger, and never below 2%. A series with
   fewer than 7 such nights is not judged.
3. How far a night is from usual is counted in spreads, of which there seem to be too few where there are few nights.
   Slower is what three nights agree on: their sum, no night with more than 4, is above 8, and two of them are more
   than 15% above the usual. Or at once, what is more than 12 spreads and more than twice the usual.
4. From then on, no night counts as usual, until two nights in a row are nearer to the usual than to what was slow. So
   the change is named for as long as it lasts, on each of its nights, and one bad night moves nothing: it is neither
   usual itself, nor does it raise what the next is held against.

`python benchmarks/regressions.py` prints, on made-up histories, how often this cries wolf, and what it finds when.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from reactive_runtime.errors import TraceError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ALL", "FEWEST", "Seen", "gone_through", "regressions"]

ALL: Final = "all scenarios"

FEWEST: Final = 7
"""Usual nights that a series needs to be judged."""

_WINDOW: Final = 28
_SERIES: Final = 8
_FLOOR: Final = 0.02
_CAP: Final = 4.0
_AGREED: Final = 8.0
_LEAST: Final = math.log(1.15)
_AT_ONCE: Final = 12.0
_TWICE: Final = math.log(2)
_FEW: Final = 5
"""A spread taken from few nights may be far too small by chance: from 7 it counts 1.7 times, from 28 1.2 times."""

_USUAL: Final = 3.0
"""Spreads above which a night does not count as usual."""

Name = tuple[str, str]
"""Of a series: the scenario, and what was measured."""


@dataclass(frozen=True)
class Seen:
    """What came of one series on the last night."""

    now: float
    """ns"""
    ratio: float
    """How many times the usual, with what is slow for all taken off."""
    spread: float
    """As a factor."""
    nights: int
    """That usual was taken from."""
    slower: bool
    since: str | None
    """The run in which the change was first seen, if it is slower."""


@dataclass
class _Series:
    """What is known of one series by a night."""

    usual: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    recent: deque[tuple[str, float, float]] = field(default_factory=lambda: deque(maxlen=2))
    """The two nights before: run, distance from the usual, the same in spreads."""
    since: str | None = None
    shift: float = 0.0
    """How far from usual it was when that began."""
    back: int = 0
    """Nights in a row that were nearer to the usual."""

    def centre(self) -> float:
        """What is usual."""
        return median(self.usual)

    def own(self) -> float:
        """The spread."""
        centre = self.centre()
        return 1.4826 * median(abs(it - centre) for it in self.usual)

    def night(self, run: str, value: float, spread: float) -> bool:
        """One more night; whether it is slower."""
        if len(self.usual) < FEWEST:
            self.usual.append(value)
            return False
        far = value - self.centre()
        nights = [*self.recent, (run, far, far / spread)]
        self.recent.append(nights[-1])
        if self.since is None:
            self._begins(nights)
        else:
            self.back = self.back + 1 if far < self.shift / 2 else 0
            if self.back == 2:
                self.since, self.back = None, 0
                self.recent.clear()
        if self.since is None and far <= _USUAL * spread:
            self.usual.append(value)
        return self.since is not None and self.back == 0

    def _begins(self, nights: Sequence[tuple[str, float, float]]) -> None:
        _, far, spreads = nights[-1]
        agreed = sum(min(it, _CAP) for _, _, it in nights) > _AGREED
        above = [it for it in nights if it[1] > _LEAST]
        if agreed and len(above) > 1 and nights[-1] in above:
            self.since, self.shift = above[0][0], median(it for _, it, _ in above)
        elif spreads > _AT_ONCE and far > _TWICE:
            self.since, self.shift = nights[-1][0], far


def gone_through(nights: Iterable[tuple[str, Mapping[Name, float]]]) -> Iterator[dict[Name, Seen]]:
    """Go through a history, the oldest night first: run, and the median of each series in ns.

    For each night, what came of each series that has enough usual nights before it, and of `ALL`.
    """
    series: dict[Name, _Series] = {}
    everything = _Series()
    for run, values in nights:
        logs = {name: math.log(max(value, 1_000)) for name, value in values.items()}
        known = {name: it for name in logs if (it := series.setdefault(name, _Series())).usual}
        judged = [name for name, it in known.items() if len(it.usual) >= FEWEST]
        spreads = {name: known[name].own() for name in judged}
        pooled = median(spreads.values()) if spreads else 0.0
        tonight = median(logs[name] - it.centre() for name, it in known.items()) if len(known) >= _SERIES else 0.0
        found: dict[Name, Seen] = {}
        if len(judged) >= _SERIES:
            found[ALL, ""] = _seen(everything, run, tonight, 0.0, math.exp(tonight))
        elif len(known) >= _SERIES:
            everything.usual.append(tonight)
        for name, value in logs.items():
            it = series[name]
            if name not in spreads:
                it.usual.append(value - tonight)
                continue
            found[name] = _seen(it, run, value - tonight, max(spreads[name], pooled), values[name])
        yield found


def _seen(it: _Series, run: str, value: float, spread: float, now: float) -> Seen:
    if len(it.usual) < FEWEST:
        it.usual.append(value)
        return Seen(now, 1.0, 1.0, len(it.usual), False, None)
    centre, nights = it.centre(), len(it.usual)
    spread = max(spread or it.own(), _FLOOR) * (1 + _FEW / nights)
    slower = it.night(run, value, spread)
    return Seen(now, math.exp(value - centre), math.exp(spread), nights, slower, it.since if slower else None)


_COLUMNS: Final = {
    "run": "string",
    "scenario": "string",
    "what": "string",
    "now": "int64",
    "usual": "int64",
    "ratio": "float64",
    "spread": "float64",
    "runs": "int64",
    "slower": "bool_",
    "since": "string",
}


def regressions(tables: Path, latency: pyarrow.Table, runs: pyarrow.Table) -> pyarrow.Table | None:
    """Hold the newest of these runs, one for each machine and Python, against those before it below `tables`.

    `latency` and `runs` are the tables of the runs just judged, which replace what `tables` has of them. A row a
    series, the slowest first: run, scenario, what, now, usual (ns; of all scenarios: how many times the usual, in
    thousandths), ratio, spread (as a factor), runs, slower, since. None where there is no history to judge by.
    """
    import pyarrow as pa

    judged = {it["run"]: it for it in runs.to_pylist()}
    known = {it["run"]: it for it in _rows(tables / "runs")} | judged
    medians: dict[str, dict[Name, float]] = {}
    for it in [*(it for it in _rows(tables / "latency") if it["run"] not in judged), *latency.to_pylist()]:
        if it["p50"] is not None:
            medians.setdefault(it["run"], {})[it["scenario"], it["what"]] = it["p50"]
    rows: list[dict[str, Any]] = []
    for newest in _newest(judged.values()):
        before = sorted(
            (_when(it), it["run"])
            for it in known.values()
            if it.get("complete") and _place(it) == _place(newest) and _when(it) < _when(newest)
        )
        history = [run for _, run in before if run in medians and run != newest["run"]]
        if newest["run"] not in medians:
            continue
        *_, last = gone_through((run, medians[run]) for run in [*history, newest["run"]])
        for (scenario, what), one in last.items():
            now = int(one.now * (1_000 if scenario == ALL else 1))
            told = (newest["run"], scenario, what, now, int(now / one.ratio), one.ratio, one.spread)
            rows.append(dict(zip(_COLUMNS, (*told, one.nights, one.slower, one.since), strict=True)))
    if not rows:
        return None
    rows.sort(key=lambda it: (not it["slower"], -it["ratio"]))
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, getattr(pa, it)()) for name, it in _COLUMNS.items()]))


def _newest(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    newest: dict[tuple[Any, Any], dict[str, Any]] = {}
    for it in sorted(runs, key=_when):
        newest[_place(it)] = it
    return list(newest.values())


def _place(run: Mapping[str, Any]) -> tuple[Any, Any]:
    return run.get("machine"), run.get("python")


def _when(run: Mapping[str, Any]) -> tuple[str, str]:
    return run.get("started") or "", run["run"]


def _rows(table: Path) -> list[dict[str, Any]]:
    """All rows of a table that is partitioned by run. TraceError names a file that can't be read."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    found: list[dict[str, Any]] = []
    for file in sorted(table.glob("run=*/*.parquet")):
        run = unquote(file.parent.name.removeprefix("run="))
        try:
            found.extend({**row, "run": run} for row in parquet.ParquetFile(file).read().to_pylist())
        except (OSError, pa.ArrowException) as error:
            raise TraceError(f"{file}: is no whole Parquet file ({next(iter(str(error).splitlines()), '')})") from error
    return found
