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
   A night speaks for a change by so much as it is likelier with it than without, as a logarithm; likely is what
   Student's t with four degrees of freedom makes likely, whose tails are heavy: so one night that is far off says
   little. Slower is what the two or three latest nights speak for with more than 7 together, if their median is more
   than 15% above the usual; or the latest alone with more than 9, if it is more than twice the usual.
4. From then on, no night counts as usual, and the change is what is median on its nights. It is over when the nights
   since the last that spoke for it speak against it, with more than 6 together; one night is not enough to end a
   change of three. So it is named on each of its nights for as long as it lasts, and one bad night moves nothing: it
   is neither usual itself, nor does it raise what the next is held against. When it is over, it is named for a night
   or two more.

`python benchmarks/regressions.py` prints, on made-up histories, how often this raises a false alarm, and
when it finds what.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Final

__all__ = ["ALL", "FEWEST", "History", "Name", "Seen", "gone_through"]

ALL: Final = "all scenarios"

FEWEST: Final = 7
"""Usual nights that a series needs to be judged."""

_WINDOW: Final = 28
_SERIES: Final = 8
_FLOOR: Final = 0.02
_NIGHTS: Final = 3
_TAILS: Final = 4.0
_ENOUGH: Final = 7.0
_OVER: Final = 6.0
_LEAST: Final = math.log(1.15)
_AT_ONCE: Final = 9.0
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
    took: tuple[float, ...] = ()
    """The medians of the nights since then, in ns, without the last."""


@dataclass
class _Series:
    """What is known of one series by a night."""

    usual: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    recent: deque[_Night] = field(default_factory=lambda: deque(maxlen=_NIGHTS))
    """The latest nights, of which none is part of a change that is over."""
    since: str | None = None
    slow: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    """How far from usual it was on the nights of that change."""
    back: list[_Night] = field(default_factory=list)
    """The nights that speak for it being over."""
    over: float = 0.0
    """How much they do."""
    took: list[float] = field(default_factory=list)
    """ns, of the nights since then."""

    def centre(self) -> float:
        """What is usual."""
        return median(self.usual)

    def own(self) -> float:
        """The spread."""
        centre = self.centre()
        return 1.4826 * median(abs(item - centre) for item in self.usual)

    def night(self, run: str, value: float, spread: float, now: float) -> bool:
        """One more night; whether it is slower."""
        tonight = _Night(run, value - self.centre(), spread, now)
        if self.since is not None:
            self.took.append(now)
            self._goes_on(tonight)
        else:
            self.recent.append(tonight)
        if self.since is None:
            self._begins()
        if self.since is None and tonight.far <= _USUAL * spread:
            self.usual.append(value)
        return self.since is not None

    def _begins(self) -> None:
        """Whether the latest nights speak for a change, and enough."""
        nights = list(self.recent)
        for these in (nights[at:] for at in range(len(nights))):
            shift = median(item.far for item in these)
            enough = _AT_ONCE if len(these) == 1 else _ENOUGH
            least = _TWICE if len(these) == 1 else _LEAST
            if shift > least and sum(item.speaks_for(shift) for item in these) > enough:
                self.since = next(item.run for item in these if item.far > shift / 2)
                self.slow = deque((item.far for item in these), maxlen=_WINDOW)
                first = next(at for at, item in enumerate(these) if item.run == self.since)
                self.took = [item.now for item in these[first:]]
                self.recent.clear()
                return

    def _goes_on(self, tonight: _Night) -> None:
        """One more night of a change, unless it is over."""
        shift = median(self.slow)
        against = -tonight.speaks_for(shift)
        if len(self.slow) >= _NIGHTS:
            against = min(against, _OVER)  # one night does not end what three agree on
        self.over = max(0.0, self.over + against)
        if not self.over:
            self.slow.extend(item.far for item in (*self.back, tonight))
            self.back.clear()
            return
        self.back.append(tonight)
        if self.over > _OVER:
            far = [item.far for item in self.back]
            if median(far) > max(_LEAST, _USUAL * tonight.spread):  # it has become less
                self.slow = deque(far, maxlen=_WINDOW)
            else:
                self.since = None
                self.took.clear()
                self.recent.extend(self.back)
            self.over = 0.0
            self.back.clear()


@dataclass(frozen=True)
class _Night:
    """One series on one night."""

    run: str
    far: float
    """From the usual."""
    spread: float
    now: float
    """ns"""

    def speaks_for(self, shift: float) -> float:
        """How many times likelier this night is if all is slower by `shift` than if nothing is, as logarithm.

        With the heavy tails of Student's t: so no night speaks for or against much more than what it shows.
        """
        here, there = self.far / self.spread, (self.far - shift) / self.spread
        return (_TAILS + 1) / 2 * math.log((_TAILS + here * here) / (_TAILS + there * there))


class History:
    """The state of all series of one machine and Python after some nights."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        """The nights so far, the oldest first."""
        self._series: dict[Name, _Series] = {}
        self._everything = _Series()

    def night(self, run: str, values: Mapping[Name, float]) -> dict[Name, Seen]:
        """One more night, with the median of each series in ns.

        Returns what came of each series that has enough usual nights before it, and of `ALL`.
        """
        series, everything = self._series, self._everything
        self.runs.append(run)
        logs = {name: math.log(max(value, 1_000)) for name, value in values.items()}
        known = {name: item for name in logs if (item := series.setdefault(name, _Series())).usual}
        judged = [name for name, entry in known.items() if len(entry.usual) >= FEWEST]
        spreads = {name: known[name].own() for name in judged}
        pooled = median(spreads.values()) if spreads else 0.0
        tonight = median(logs[name] - entry.centre() for name, entry in known.items()) if len(known) >= _SERIES else 0.0
        found: dict[Name, Seen] = {}
        if len(judged) >= _SERIES:
            found[ALL, ""] = _seen(everything, run, tonight, 0.0, math.exp(tonight))
        elif len(known) >= _SERIES:
            everything.usual.append(tonight)
        for name, value in logs.items():
            item = series[name]
            if name not in spreads:
                item.usual.append(value - tonight)
                continue
            found[name] = _seen(item, run, value - tonight, max(spreads[name], pooled), values[name])
        return found

    def nights_since(self, run: str | None) -> int:
        """How many nights there are from that one on, without the last."""
        return len(self.runs) - 1 - self.runs.index(run) if run in self.runs else 0

    def kept(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        series = [[*name, _kept(item)] for name, item in self._series.items()]
        return {"runs": self.runs, "series": series, "everything": _kept(self._everything)}

    @classmethod
    def of_kept(cls, kept: Mapping[str, Any]) -> History:
        """The history of which `kept` is this."""
        history = cls()
        history.runs = [str(run) for run in kept["runs"]]
        history._series = {(scenario, what): _of_kept(item) for scenario, what, item in kept["series"]}
        history._everything = _of_kept(kept["everything"])
        return history


def _kept(item: _Series) -> dict[str, Any]:
    nights = {name: [asdict(night) for night in getattr(item, name)] for name in ("recent", "back")}
    numbers = {name: list(getattr(item, name)) for name in ("usual", "slow", "took")}
    return {"since": item.since, "over": item.over, **nights, **numbers}


def _of_kept(kept: Mapping[str, Any]) -> _Series:
    item = _Series(since=kept["since"], over=kept["over"], took=list(kept["took"]))
    item.usual.extend(kept["usual"])
    item.slow.extend(kept["slow"])
    item.recent.extend(_Night(**night) for night in kept["recent"])
    item.back.extend(_Night(**night) for night in kept["back"])
    return item


def gone_through(nights: Iterable[tuple[str, Mapping[Name, float]]]) -> Iterator[dict[Name, Seen]]:
    """Go through a history, the oldest night first: run, and the median of each series in ns.

    For each night, what came of each series that has enough usual nights before it, and of `ALL`.
    """
    history = History()
    for run, values in nights:
        yield history.night(run, values)


def _seen(item: _Series, run: str, value: float, spread: float, now: float) -> Seen:
    if len(item.usual) < FEWEST:
        item.usual.append(value)
        return Seen(now, 1.0, 1.0, len(item.usual), False, None)
    centre, nights = item.centre(), len(item.usual)
    spread = max(spread or item.own(), _FLOOR) * (1 + _FEW / nights)
    slower = item.night(run, value, spread, now)
    since = item.since if slower else None
    return Seen(now, math.exp(value - centre), math.exp(spread), nights, slower, since, tuple(item.took[:-1]))
