"""How often the test for regressions cries wolf on made-up histories, and how often it finds what is slower.

The arithmetic of `reactive_runtime.spark.regressions`, on 62 scenarios and 300 nights each; a test holds the two equal.
"""

from __future__ import annotations

import numpy as np
from rich.table import Table
from side_by_side import console

SCENARIOS, NIGHTS = 62, 300


def slower(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Which series are: logarithms, a row a run before."""
    usual = np.median(before, axis=0)
    even = before - np.median(before - usual, axis=1)[:, None]
    centre = np.median(even, axis=0)
    own = 1.4826 * np.median(np.abs(even - centre), axis=0)
    spread = np.maximum(own, np.median(own))
    tonight = now - np.median(now - usual)
    limit = np.maximum(6 * spread, np.log(1.5))
    return (tonight - centre > limit) & (tonight - even.max(axis=0) > np.log(1.25))


def main() -> None:
    dice = np.random.default_rng(1)
    table = Table(title=f"{SCENARIOS} scenarios, {NIGHTS} nights", title_justify="left")
    for column in ("runs before", "noise", "tails", "nights with a false alarm", "three times as long: found"):
        table.add_column(column, justify="right")
    for runs in (7, 14):
        for noise in (0.05, 0.1, 0.2):
            for tails in ("normal", "heavy"):
                alarms = found = 0
                for _ in range(NIGHTS):
                    shape = (runs + 1, SCENARIOS)
                    error = dice.normal(0, 1, shape) if tails == "normal" else dice.standard_t(4, shape)
                    machine = dice.normal(0, 0.3, (runs + 1, 1))
                    history = error * noise + machine + dice.normal(11, 1, SCENARIOS)
                    alarms += slower(history[:-1], history[-1]).any()
                    history[-1, 3] += np.log(3)
                    found += slower(history[:-1], history[-1])[3]
                table.add_row(str(runs), f"{noise:.0%}", tails, f"{alarms / NIGHTS:.1%}", f"{found / NIGHTS:.0%}")
    console.print(table)


if __name__ == "__main__":
    main()
