"""A year of nights, from the table `nights` of a verdict: what began to fail where and when, and how long things took.

A scenario fails on a night of a machine and Python where a run of it breaks a rule, or is stuck. It *begins* to on the
first such night after one on which it was looked at and did not, or on the first of all. Seven nights on which it is
looked at and does not fail end that: until then it comes and goes. Machines on which the same begins in the same night,
with the same commit, are one entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from reactive_runtime._results.states import State
from reactive_runtime.errors import TraceError
from reactive_runtime.report._report_tables import rows_by_run, tables_of, undisturbed
from reactive_runtime.spark._verdict.nights import rows_of, schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

__all__ = ["DAYS", "OVER", "Began", "Machine", "Percentiles", "ScenarioYear", "Year", "load_year"]

DAYS: Final = 365

OVER: Final = 7
"""Nights without it after which something has ended."""

FAILS: Final = (State.BROKEN.value, State.STUCK.value)

NONE, CLEAN, INCOMPLETE, FAILING = range(4)
"""The states of a machine in a night, the worst last."""

_COLUMNS: Final = (
    "run", "started", "machine", "python", "commit", "complete", "scenario", "state", "rules",
    "load_signals", "load_seconds", "silence_p99",
)  # fmt: skip

UNKNOWN: Final = "not known"


@dataclass(frozen=True)
class Began:
    """Something that began to fail."""

    scenario: str
    rules: tuple[str, ...]
    """Broken ones, or `stuck`."""
    night: str
    """The first on which it fails."""
    commit: str
    places: tuple[tuple[str, str], ...]
    """Machines, each with its Python."""
    before: str | None
    """The commit of the newest night before on which one of these machines looked at it and it did not fail; None:
    there is none, and it may have begun earlier."""
    failed: int
    """On how many nights it has failed since, over all machines."""
    nights: int
    """Of so many, up to the last on which it failed."""
    last: str
    """The last night on which it failed."""
    state: str
    """`fails`: it did on the newest night of a machine; `comes and goes`; `over`; or `not run` since it failed."""

    @property
    def lasts(self) -> bool:
        """Whether it is not over, where it is still run."""
        return self.state in ("fails", "comes and goes")


@dataclass(frozen=True)
class Percentiles:
    """Three percentiles, of a night or of all nights: None where nothing was measured."""

    low: float | None
    middle: float | None
    high: float | None


@dataclass(frozen=True)
class ScenarioYear:
    """One scenario in a year."""

    scenario: str
    nights: int
    """On machines, on which it was looked at."""
    failed: int
    state: str
    """`fails`, `comes and goes`, or `clean` now."""
    silence: Percentiles
    """Of cancel → silence, p99 of a run, in ns: median, p90 and p99 over the nights."""
    throughput: Percentiles
    """Signals and calls a second: p1, p10 and median over the nights."""
    line: tuple[float | None, ...] = ()
    """The medians of `silence`, night by night."""


@dataclass(frozen=True)
class Machine:
    """One machine in a year."""

    machine: str
    nights: int
    failing: int
    incomplete: int
    last: str
    commit: str
    row: bytes
    """A byte a night: what came of it."""


@dataclass(frozen=True)
class Year:
    """The nights of a year."""

    first: str
    last: str
    runs: int
    began: list[Began]
    """The newest first."""
    machines: list[Machine]
    scenarios: list[ScenarioYear]
    silence: list[Percentiles]
    """By night: of all runs and scenarios, of the p99 of cancel → silence: median, p90, p99."""
    throughput: list[Percentiles]
    """By night: p1, p10, median."""
    undated: int = 0
    """Runs that do not say when they began: they are left out."""
    rules: tuple[str, ...] = field(default=())
    """All that were broken."""

    @property
    def nights(self) -> list[str]:
        """All days from the first to the last."""
        begin = date.fromisoformat(self.first)
        return [(begin + timedelta(days=day)).isoformat() for day in range(len(self.silence))]

    @property
    def lasting(self) -> list[Began]:
        """The failures that are not over."""
        return [item for item in self.began if item.lasts]


def load_year(folder: Path | str, days: int = DAYS) -> Year:
    """The year up to the newest run whose verdict is in `folder`, or in `folder`/verdict.

    Args:
        folder: A folder of traces that were judged, or of a verdict.
        days: How many days it has.

    Returns:
        The year.

    Raises:
        TraceError: There is no verdict of a run that says when it began, or a table can't be read.
        MissingDependencyError: There is no pyarrow.
    """
    tables = tables_of(Path(folder))
    return undisturbed(tables, lambda: year_of(_nights(tables), days, tables))


def year_of(nights: pyarrow.Table, days: int = DAYS, where: Path | str = "nights") -> Year:
    """The year of the rows of the table `nights`, wherever they are from.

    Args:
        nights: The rows; of columns, those of `reactive_runtime.spark._verdict.nights` that are used here.
        days: How many days it has.
        where: The place that an error names.

    Returns:
        The year.

    Raises:
        TraceError: No row says when it began.
    """
    import numpy as np

    columns = _Columns(nights.select(list(_COLUMNS)), days)
    if not columns.size:
        raise TraceError(f"{where}: no run that was judged says when it began: there is no year to show")
    began = _began(columns)
    silence = columns.numbers("silence_p99")
    with np.errstate(divide="ignore", invalid="ignore"):
        throughput = columns.numbers("load_signals") / columns.numbers("load_seconds")
    throughput[~np.isfinite(throughput)] = np.nan
    high, low = (50.0, 90.0, 99.0), (1.0, 10.0, 50.0)
    return Year(
        first=columns.dates[0],
        last=columns.dates[-1],
        runs=columns.runs,
        began=began,
        machines=_machines(columns),
        scenarios=_scenarios(columns, began, silence, throughput),
        silence=_percentiles(silence, columns.day, len(columns.dates), high),
        throughput=_percentiles(throughput, columns.day, len(columns.dates), low),
        undated=columns.undated,
        rules=tuple(sorted({rule for item in began for rule in item.rules})),
    )


# -- reading --------------------------------------------------------------------------------------------------


def _nights(tables: Path) -> pyarrow.Table:
    """The rows of the table; and of runs that were judged before there was one, made of the other tables."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    wanted = pa.schema([schema().field(name) for name in _COLUMNS])
    parts = [wanted.empty_table()]
    for file in sorted((tables / "nights").glob("month=*/*.parquet")):
        try:
            parts.append(parquet.ParquetFile(file).read(columns=list(_COLUMNS)).select(list(_COLUMNS)).cast(wanted))
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            why = next(iter(str(error).splitlines()), "")
            raise TraceError(f"{file}: can't be read ({why}): judge its runs again") from error
    found = pa.concat_tables(parts)
    known = set(found["run"].unique().to_pylist())
    names = (unquote(folder.name.removeprefix("run=")) for folder in (tables / "runs").glob("run=*"))
    if others := frozenset(names) - known:
        runs, summary, latency = (rows_by_run(tables / name, others) for name in ("runs", "summary", "latency"))
        rules: dict[tuple[str, str], set[str]] = {}
        for row in rows_by_run(tables / "violations", others, ("scenario", "rule")):
            rules.setdefault((row["run"], row["scenario"]), set()).add(row["rule"])
        made = pa.Table.from_pylist(rows_of(runs, summary, latency, rules), schema=schema())
        found = pa.concat_tables([found, made.select(list(_COLUMNS))])
    return found


class _Columns:
    """The rows of the year as numbers, and what the numbers stand for."""

    def __init__(self, table: pyarrow.Table, days: int) -> None:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        dates = pc.utf8_slice_codeunits(table["started"].cast(pa.string()), 0, 10)
        known = [str(text) for text in dates.unique().to_pylist() if _is_date(text)]
        self.size = 0
        if not known:
            return
        last = date.fromisoformat(max(known))
        begin = max(date.fromisoformat(min(known)), last - timedelta(days=days - 1))
        self.dates = [(begin + timedelta(days=day)).isoformat() for day in range((last - begin).days + 1)]
        self.undated = len(table.filter(pc.invert(pc.is_in(dates, pa.array(known))))["run"].unique())
        within = pc.is_in(dates, pa.array(self.dates))
        self._table = table = table.filter(within)
        self.size = len(table)
        self.runs = len(table["run"].unique())
        day = pc.index_in(dates.filter(within), pa.array(self.dates))
        self.day: np.ndarray[Any, Any] = day.to_numpy().astype(np.int64)
        self.machine, self.machines = _coded(table["machine"])
        self.python, self.pythons = _coded(table["python"])
        self.scenario, self.scenarios = _coded(table["scenario"])
        self.state, self.states = _coded(table["state"])
        self.place = self.machine * len(self.pythons) + self.python
        of = {name: code for code, name in enumerate(self.states)}
        self.fails = np.isin(self.state, [of[name] for name in FAILS if name in of])
        self.looked_at = self.fails | (self.state == of.get(State.CLEAN.value, -1))
        self.complete = table["complete"].fill_null(pa.scalar(False)).to_numpy().astype(bool)

    def numbers(self, name: str) -> np.ndarray[Any, Any]:
        """A column; NaN where there is none."""
        import numpy as np
        import pyarrow as pa

        found: np.ndarray[Any, Any] = self._table[name].cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
        return found

    def texts(self, name: str, rows: np.ndarray[Any, Any]) -> list[str | None]:
        """A column of some rows."""
        found: list[str | None] = self._table[name].take(rows).to_pylist()
        return found


def _is_date(text: object) -> bool:
    try:
        date.fromisoformat(str(text))
    except ValueError:
        return False
    return text is not None and len(str(text)) == 10


def _coded(column: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """A column of texts as numbers, which rise with the texts."""
    import numpy as np

    coded = column.fill_null(UNKNOWN).combine_chunks().dictionary_encode()
    names = coded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    return rank[coded.indices.to_numpy()], [names[at] for at in order]


# -- what began to fail ---------------------------------------------------------------------------------------


@dataclass
class _Episode:
    """On one machine and Python."""

    rule: str
    day: int
    commit: str
    before: tuple[int, str] | None
    """The night before, and its commit."""
    last: int
    failed: int = 0
    nights: int = 0
    state: str = ""


@dataclass
class _Tonight:
    """One scenario on one machine and Python in one night."""

    day: int
    commit: str
    rules: set[str] = field(default_factory=set)


def _began(columns: _Columns) -> list[Began]:
    import numpy as np

    pair = columns.scenario * (columns.place.max() + 1) + columns.place
    rows = np.flatnonzero(columns.looked_at & np.isin(pair, np.unique(pair[columns.fails])))
    runs = columns.texts("run", rows)
    started = columns.texts("started", rows)
    order = sorted(range(len(rows)), key=lambda at: (pair[rows[at]], started[at] or "", runs[at] or ""))
    rules, commits = columns.texts("rules", rows), columns.texts("commit", rows)
    nights: dict[int, list[_Tonight]] = {}
    for at in order:
        row = rows[at]
        mine = nights.setdefault(int(pair[row]), [])
        if not mine or mine[-1].day != columns.day[row]:
            mine.append(_Tonight(int(columns.day[row]), commits[at] or UNKNOWN))
        if columns.fails[row]:
            if not mine[-1].rules:
                mine[-1].commit = commits[at] or UNKNOWN
            mine[-1].rules |= set((rules[at] or State.STUCK.value).split(", "))
    newest = _newest_days(columns)
    groups: dict[tuple[int, str, tuple[str, ...], str], list[tuple[int, list[_Episode]]]] = {}
    for whose, of in nights.items():
        scenario, place = divmod(whose, int(columns.place.max()) + 1)
        by_night: dict[int, list[_Episode]] = {}
        for episode in _episodes(of, newest[place], len(columns.dates) - 1):
            by_night.setdefault(episode.day, []).append(episode)
        for day, episodes in by_night.items():
            broken = tuple(sorted(item.rule for item in episodes))
            key = (day, columns.scenarios[scenario], broken, episodes[0].commit)
            groups.setdefault(key, []).append((place, episodes))
    found = [_joined(columns, key, of) for key, of in groups.items()]
    return sorted(found, key=lambda item: (item.night, item.scenario, item.rules), reverse=True)


def _newest_days(columns: _Columns) -> np.ndarray[Any, Any]:
    """By place, the newest night with a run."""
    import numpy as np

    newest = np.full(columns.place.max() + 1, -1)
    np.maximum.at(newest, columns.place, columns.day)
    return newest


def _episodes(nights: Sequence[_Tonight], newest: int, today: int) -> Iterable[_Episode]:
    """The failures that began on one machine, rule by rule."""
    for rule in sorted(set().union(*(night.rules for night in nights))):
        now: _Episode | None = None
        clean = 0
        before: tuple[int, str] | None = None
        for night in nights:
            if rule in night.rules:
                if now is None:
                    now = _Episode(rule, night.day, night.commit, before, night.day)
                now.nights += clean + 1
                now.failed, now.last, clean = now.failed + 1, night.day, 0
            elif now is not None:
                clean += 1
                if clean == OVER:
                    now.state = "over"
                    yield now
                    now, clean = None, 0
            before = (night.day, night.commit)
        if now is not None:
            now.state = "not run" if newest < today - OVER else "comes and goes" if clean else "fails"
            yield now


_WORST: Final = ("fails", "comes and goes", "not run", "over")


def _joined(
    columns: _Columns, key: tuple[int, str, tuple[str, ...], str], of: Sequence[tuple[int, list[_Episode]]]
) -> Began:
    """The machines on which the same began."""
    day, scenario, rules, commit = key
    before = [episode.before for _, episodes in of for episode in episodes if episode.before is not None]
    places = [divmod(place, len(columns.pythons)) for place, _ in of]
    return Began(
        scenario,
        rules,
        columns.dates[day],
        commit,
        tuple(sorted((columns.machines[machine], columns.pythons[python]) for machine, python in places)),
        max(before)[1] if before else None,
        sum(max(item.failed for item in episodes) for _, episodes in of),
        sum(max(item.nights for item in episodes) for _, episodes in of),
        columns.dates[max(item.last for _, episodes in of for item in episodes)],
        min((item.state for _, episodes in of for item in episodes), key=_WORST.index),
    )


# -- machines, scenarios, nights ------------------------------------------------------------------------------


def _machines(columns: _Columns) -> list[Machine]:
    import numpy as np

    nights = len(columns.dates)
    level = np.where(columns.looked_at & columns.complete, CLEAN, INCOMPLETE)
    level[columns.fails] = FAILING
    grid = np.zeros(len(columns.machines) * nights, np.uint8)
    np.maximum.at(grid, columns.machine * nights + columns.day, level.astype(np.uint8))
    newest = np.full(len(columns.machines), -1)
    for row in np.lexsort((columns.day,)):
        newest[columns.machine[row]] = row
    commits = columns.texts("commit", newest)
    found = []
    for at, name in enumerate(columns.machines):
        row = grid[at * nights : (at + 1) * nights]
        last = columns.dates[int(columns.day[newest[at]])]
        nights_of, failing, incomplete = (int(of.sum()) for of in (row != NONE, row == FAILING, row == INCOMPLETE))
        found.append(Machine(name, nights_of, failing, incomplete, last, commits[at] or UNKNOWN, row.tobytes()))
    return found


def _scenarios(
    columns: _Columns, began: Sequence[Began], silence: np.ndarray[Any, Any], throughput: np.ndarray[Any, Any]
) -> list[ScenarioYear]:
    import numpy as np

    states: dict[str, str] = {}
    for item in sorted(began, key=lambda item: _WORST.index(item.state), reverse=True):
        if item.lasts:
            states[item.scenario] = item.state
    count = len(columns.scenarios)
    everywhere = np.zeros(columns.size, np.int64)
    found = []
    order = np.argsort(columns.scenario, kind="stable")
    bounds = np.searchsorted(columns.scenario[order], np.arange(count + 1))
    for at, name in enumerate(columns.scenarios):
        rows = order[bounds[at] : bounds[at + 1]]
        night = columns.place[rows] * len(columns.dates) + columns.day[rows]
        waits = [entry.low for entry in _percentiles(silence[rows], columns.day[rows], len(columns.dates), (50.0,) * 3)]
        found.append(
            ScenarioYear(
                name,
                len(np.unique(night[columns.looked_at[rows]])),
                len(np.unique(night[columns.fails[rows]])),
                states.get(name, "clean"),
                _percentiles(silence[rows], everywhere[rows], 1, (50.0, 90.0, 99.0))[0],
                _percentiles(throughput[rows], everywhere[rows], 1, (1.0, 10.0, 50.0))[0],
                tuple(waits),
            )
        )
    return found


def _percentiles(
    values: np.ndarray[Any, Any], group: np.ndarray[Any, Any], groups: int, percents: Sequence[float]
) -> list[Percentiles]:
    """Of the values of each group, those that are numbers: the smallest that so many percent do not exceed."""
    import numpy as np

    known = ~np.isnan(values)
    values, group = values[known], group[known]
    order = np.lexsort((values, group))
    values, group = values[order], group[order]
    bounds = np.searchsorted(group, np.arange(groups + 1))
    found = []
    for begin, end in pairwise(bounds):
        if begin == end:
            found.append(Percentiles(None, None, None))
            continue
        ranks = [begin + max(int(np.ceil(percent / 100 * (end - begin))) - 1, 0) for percent in percents]
        found.append(Percentiles(*(float(values[rank]) for rank in ranks)))
    return found
