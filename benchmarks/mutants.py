"""How many random mutants of the core, the operators and the judge their tests kill, by Cosmic Ray.

python benchmarks/mutants.py [REV ...] [--area core] [--number 40] [--seed 0] [--limit 300]

Cosmic Ray makes every mutant that it knows of an area's modules: another operator, number, condition, keyword, or no
decorator. `--number` of them are drawn: first a place in the source, then one of its mutants. Each is put into a work
tree of the revision (default: HEAD), and the area's tests run there until one fails. A mutant that makes them last
longer than `--limit` seconds counts as killed.

`A | B` is left alone: in this package it is an annotation nearly everywhere. Survivors are printed with their
differences, and the table has the part that was killed, for each revision. The places differ between revisions, so two
rates of n mutants differ by chance by about 1 / √n.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.table import Table
from side_by_side import console

COSMIC_RAY: Final = Path(sys.executable).parent / "cosmic-ray"


@dataclass(frozen=True)
class Area:
    """Modules, and the tests that have to notice a mutant of them."""

    modules: str
    tests: str


AREAS: Final = {
    "core": Area("reactive_runtime/_core", "tests/core tests/connections tests/models tests/operators"),
    "operators": Area("reactive_runtime/_operators", "tests/operators tests/models tests/connections"),
    "judge": Area("reactive_runtime/judging", "tests/judging tests/testing/test_checker.py"),
}

SETTINGS: Final = """
[cosmic-ray]
module-path = [{modules}]
timeout = {limit}
excluded-modules = []
test-command = {command}

[cosmic-ray.distributor]
name = "local"
"""

Place = tuple[str, int, int]
"""A module, a line and a column."""


@dataclass
class Outcome:
    """The mutants of an area at a revision, counted by what became of them."""

    counts: Counter[str] = field(default_factory=Counter)
    survivors: list[str] = field(default_factory=list)

    @property
    def killed(self) -> str:
        """The part that the tests killed, of all that could be tried."""
        tried = self.counts["killed"] + self.counts["survived"]
        return f"{self.counts['killed']} of {tried}" if tried else "-"


def draw(session: Path, number: int, seed: int) -> None:
    """Keep so many mutants of the session: a random place each, and one of its mutants."""
    with sqlite3.connect(session) as database:
        places: dict[Place, list[str]] = {}
        for module, line, column, operator, job in database.execute(
            "select module_path, start_pos_row, start_pos_col, operator_name, job_id from mutation_specs"
            " order by module_path, start_pos_row, start_pos_col, operator_name, occurrence"
        ):
            if "BinaryOperator_BitOr_" not in operator:
                places.setdefault((module, line, column), []).append(job)
        chance = random.Random(seed)
        chosen = chance.sample(sorted(places), min(number, len(places)))
        keep = {chance.choice(places[place]) for place in chosen}
        for table in ("mutation_specs", "work_items"):
            jobs = [job for (job,) in database.execute(f"select job_id from {table}") if job not in keep]
            database.executemany(f"delete from {table} where job_id = ?", [(job,) for job in jobs])


def outcome_of(session: Path) -> Outcome:
    outcome = Outcome()
    with sqlite3.connect(session) as database:
        for tried, worker, difference in database.execute(
            "select test_outcome, worker_outcome, diff from work_results"
        ):
            what = str(tried or worker).lower()
            outcome.counts[what] += 1
            if what == "survived":
                outcome.survivors.append(difference)
    return outcome


def tried(revision: str, area: Area, number: int, seed: int, limit: int) -> Outcome:
    """Draw mutants of an area at a revision, and run its tests on each."""
    with tempfile.TemporaryDirectory() as folder:
        tree, session, settings = Path(folder, "tree"), Path(folder, "session.sqlite"), Path(folder, "settings.toml")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            command = f"env PYTHONPATH=. {sys.executable} -m pytest -q -x -n 2 --dist loadgroup {area.tests}"
            settings.write_text(
                SETTINGS.format(modules=json.dumps(area.modules), limit=limit, command=json.dumps(command))
            )
            subprocess.run([COSMIC_RAY, "init", settings, session], cwd=tree, check=True)
            draw(session, number, seed)
            subprocess.run([COSMIC_RAY, "exec", settings, session], cwd=tree, check=True)
            return outcome_of(session)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], check=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("revisions", nargs="*", default=["HEAD"])
    options.add_argument("--area", choices=AREAS, action="append")
    options.add_argument("--number", type=int, default=40)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--limit", type=int, default=300)
    asked = options.parse_args()
    if not COSMIC_RAY.exists():
        sys.exit("mutants: Cosmic Ray is missing: pip install cosmic-ray")
    areas = asked.area or list(AREAS)
    table = Table("area", *asked.revisions, title="mutants killed", title_justify="left")
    for name in areas:
        row = []
        for revision in asked.revisions:
            outcome = tried(revision, AREAS[name], asked.number, asked.seed, asked.limit)
            row.append(outcome.killed)
            for difference in outcome.survivors:
                console.print(f"survived, {name} at {revision}:\n{difference}", markup=False)
        table.add_row(name, *row)
    console.print(table)


if __name__ == "__main__":
    main()
