"""The exit statuses of all commands that judge: one table, for the help, the docs and the commands themselves."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from typing import Final

from reactive_runtime._results.ci_files import UnwrittenError
from reactive_runtime._results.states import State
from reactive_runtime.errors import MissingDependencyError, ReactiveError, ScenarioError, TargetError

__all__ = [
    "BROKEN",
    "CLEAN",
    "EPILOG",
    "EXITS",
    "INCOMPLETE",
    "STATUS",
    "UNUSABLE",
    "USAGE",
    "status_of",
]

CLEAN: Final = 0
BROKEN: Final = 1
USAGE: Final = 2
INCOMPLETE: Final = 3
UNUSABLE: Final = 4

EXITS: Final = {
    CLEAN: (
        "clean",
        "everything was checked, and no rule was broken; of `stress` without `--verify`: everything was recorded",
    ),
    BROKEN: (
        "broken",
        "a rule was broken, a scenario was stuck, or a schedule failed or showed too little; with"
        " `--fail-on-regression` also: something has become slower; of `ps --fail-after`: a flow has stalled for so"
        " long; of `report --year`: a failure has not ended",
    ),
    USAGE: (
        "usage",
        "the command line is wrong: an option, an argument, a name that leads nowhere; a target of `tck` or `explore`"
        " does not import; or something that it needs is not installed",
    ),
    INCOMPLETE: (
        "incomplete",
        "no rule was broken, but not everything was checked: a scenario had no round, was given up or not judged; a"
        " run was cut off, killed or interrupted, or its disk was full; a check was not run; an exploration was not"
        " controlled; a planted fault was not found",
    ),
    UNUSABLE: (
        "unusable",
        "nothing could be judged: a folder holds no run, is damaged, has an unknown schema or can't be written to; or"
        " every scenario or check failed before it began; or there is no such process, or it gave `ps` no answer",
    ),
}
"""By exit status: its name, and when a command ends with it."""

EPILOG: Final = "\n\n".join(
    ["Exit status:", *(f"{status} {name}: {when}." for status, (name, when) in EXITS.items())]
).replace("`", "")
"""The table, for the help of each command that judges; paragraphs, as Typer takes them."""

STATUS: Final = {
    State.CLEAN: CLEAN,
    State.RECORDED: CLEAN,
    State.BROKEN: BROKEN,
    State.STUCK: BROKEN,
    State.INCOMPLETE: INCOMPLETE,
    State.UNUSABLE: UNUSABLE,
}
"""By what became of all."""


def status_of(error: BaseException) -> int:
    """The exit status where a command ends with this error: usage, where another command line would help."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, BrokenExecutor)):  # the last: a process was killed
        return INCOMPLETE
    if isinstance(error, UnwrittenError):
        return UNUSABLE
    if type(error) is ReactiveError:  # of options that do not go together
        return USAGE
    wrong = (ScenarioError, TargetError, MissingDependencyError, ModuleNotFoundError)
    # Of an option that is checked where it is used; what derives from ValueError comes from a file.
    return USAGE if isinstance(error, wrong) or type(error) is ValueError else UNUSABLE
