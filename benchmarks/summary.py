"""The results of the benchmarks beside their aims: a table, and docs/benchmarks.svg."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table
from side_by_side import RESULTS, console


def share(result: dict[str, Any]) -> float:
    """How much of what it should be; 1 and more: reached."""
    value, least, most = float(result["value"]), result["at_least"], result["at_most"]
    return float(most) / value if least is None else value / float(least)


def table(results: list[dict[str, Any]]) -> Table:
    shown = Table("work", title="reached", title_justify="left")
    for title in ("must reach", "reached", ""):
        shown.add_column(title, justify="right")
    for result in results:
        aim = f"at most {result['at_most']:g}" if result["at_least"] is None else f"at least {result['at_least']:g}"
        missed = share(result) < 1
        shown.add_row(
            result["work"],
            aim,
            f"{result['value']:.3g}",
            "not reached" if missed else "",
            style="red" if missed else "",
        )
    return shown


def picture(results: list[dict[str, Any]], path: str) -> None:
    """A bar for each, as long as the share of its aim; the line is the aim."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "reactive_runtime"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.4 * len(results) + 1))
    for at, item in enumerate(reversed(results)):
        axes.barh(at, share(item) - 1, left=1, color="#4878a8" if share(item) >= 1 else "#c05a4a")
        axes.text(max(share(item), 1) * 1.03, at, f"{item['value']:.3g}", va="center")
    axes.set_yticks(range(len(results)), [result["work"] for result in reversed(results)])
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("share of the aim, which is the line: to the right of it, it is reached")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    results = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    console.print(table(results))
    picture(results, "docs/benchmarks.svg")


if __name__ == "__main__":
    main()
