"""How often the test for regressions raises a false alarm, and what it finds, when, for how long.

Made-up histories of 62 scenarios. Each has a level and a noise of its own (that of the first is the one given; of the
others around it, a factor of 1.5 to either side is usual), each night as a whole is slower or faster by 10%. Noise is
normal, or has the heavy tails of Student's t with four degrees of freedom. The test is that of
`reactive_runtime.spark._verdict.regressions`, gone through night by night.

python benchmarks/regressions.py [--histories 30]
"""

from __future__ import annotations

import argparse
import math
import random

from rich.table import Table
from side_by_side import console

from reactive_runtime.spark._verdict.regressions import ALL, FEWEST, Seen, gone_through

SCENARIOS, NIGHTS = 62, 60
Night = tuple[str, dict[tuple[str, str], float]]


def history(
    rng: random.Random,
    noise: float,
    heavy: bool,
    nights: int = NIGHTS,
    machine: float = 0.1,
    scenarios: int = SCENARIOS,
) -> list[Night]:
    """Medians, night by night, in which nothing changes."""
    levels = [rng.gauss(11, 1) for _ in range(scenarios)]
    noises = [noise, *(noise * math.exp(rng.gauss(0, 0.4)) for _ in range(scenarios - 1))]

    def error() -> float:
        item = rng.gauss(0, 1)
        return item / math.sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(4)) / 4) if heavy else item

    made = []
    for night in range(nights):
        of_all = rng.gauss(0, machine)
        values = {
            (f"scenario {n}", "demand"): math.exp(levels[n] + of_all + noises[n] * error()) for n in range(scenarios)
        }
        made.append((f"night {night:03}", values))
    return made


def slowed(nights: list[Night], times: float, begin: int, end: int, scenarios: range = range(1)) -> list[Night]:
    """The same, and from `begin` to `end` some scenarios take so many times as long."""
    names = {(f"scenario {n}", "demand") for n in scenarios}
    return [
        (run, {name: value * (times if name in names and begin <= at < end else 1) for name, value in values.items()})
        for at, (run, values) in enumerate(nights)
    ]


def named(said: dict[tuple[str, str], Seen]) -> set[str]:
    """The scenarios that are slower."""
    return {scenario for (scenario, _), item in said.items() if item.slower}


def alarms(rng: random.Random, noise: float, heavy: bool, histories: int) -> tuple[int, int]:
    """False ones, each night that one lasts counted, and series-nights judged, where nothing has changed."""
    found = judged = 0
    for _ in range(histories):
        for said in gone_through(history(rng, noise, heavy)):
            judged += len(said)
            found += len(named(said))
    return found, judged


def nights_to(
    rng: random.Random, times: float, noise: float, heavy: bool, everything: bool = False
) -> tuple[int | None, bool]:
    """On which night a change is found (None: not within thirty), and whether it is named on each night from then."""
    begin, lasts = 40, 30
    nights = slowed(
        history(rng, noise, heavy, begin + lasts), times, begin, begin + lasts, range(SCENARIOS if everything else 1)
    )
    on = [(ALL if everything else "scenario 0") in named(said) for said in gone_through(nights)][begin:]
    since = next((at for at, item in enumerate(on) if item), None)
    return (None, False) if since is None else (since + 1, all(on[since:]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=20)
    histories = parser.parse_args().histories
    rng = random.Random(1)
    wolf = Table(title=f"{histories} histories of {SCENARIOS} scenarios, {NIGHTS} nights", title_justify="left")
    for column in ("noise", "tails", "series-nights", "false alarms", "in 1,000"):
        wolf.add_column(column, justify="right")
    for noise in (0.05, 0.1, 0.2):
        for heavy in (False, True):
            found, judged = alarms(rng, noise, heavy, histories)
            wolf.add_row(
                f"{noise:.0%}", "heavy" if heavy else "normal", f"{judged:,}", str(found), f"{1e3 * found / judged:.2f}"
            )
    console.print(wolf)
    table = Table(title=f"{5 * histories} changes each, for 30 nights after 40", title_justify="left")
    for column in ("change", "of", "noise", "tails", "first night", "by the third", "by the tenth", "each night since"):
        table.add_column(column, justify="right")
    for times, noise, everything in (
        (1.3, 0.05, False),
        (2.0, 0.1, False),
        (3.0, 0.1, False),
        (1.5, 0.05, True),
        (3.0, 0.1, True),
    ):
        for heavy in (False, True):
            changes = [nights_to(rng, times, noise, heavy, everything) for _ in range(5 * histories)]
            shares = [
                sum(finding is not None and finding <= most for finding, _ in changes) / len(changes)
                for most in (1, 3, 10)
            ]
            lasting = [finding for since, finding in changes if since is not None]
            table.add_row(
                f"{times:g} times",
                "all" if everything else "one",
                f"{noise:.0%}",
                "heavy" if heavy else "normal",
                *(f"{item:.1%}" for item in (*shares, sum(lasting) / len(lasting))),
            )
    console.print(table)
    console.print(f"a series is judged when it has {FEWEST} usual nights")


if __name__ == "__main__":
    main()
