"""Shows an exercise, checks the class as it stands, and gives a hint or the solution where it is asked for."""

from __future__ import annotations

import argparse
import sys

from examples.hazards.exercises import EXERCISES, exercise, source_of_solution


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; the exit status is 1 where the class still fails."""
    parser = argparse.ArgumentParser(prog="python -m examples.hazards.exercises", description=__doc__)
    parser.add_argument("name", nargs="?", choices=EXERCISES, help="which exercise; none: list them")
    parser.add_argument("--hint", action="store_true", help="where to look")
    parser.add_argument("--solution", action="store_true", help="a class that holds")
    asked = parser.parse_args(arguments)
    if asked.name is None:
        for name in EXERCISES:
            print(f"{exercise(name).group}  {name:<10} {exercise(name).title}")
        return 0
    item = exercise(asked.name)
    if asked.hint:
        print(_flat(item.hint))
        return 0
    if asked.solution:
        print(source_of_solution(asked.name), end="")
        return 0
    print(f"{item.title}\n{'=' * len(item.title)}\n\n{_flat(item.task)}\n")
    result = item.checked()
    print(result if result.failure is None else result.failure.diagram())
    print(
        "\nIt holds."
        if result.holds
        else f"\nMend it in {asked.name}.py, and run this again; --hint says where to look."
    )
    return not result.holds


def _flat(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
