"""A lesson as a game: the one who reads the page chooses which thread does its next step.

A page can't run Python. So all positions that the program can come to are computed while the site is built, and
`game.js` goes from one to the next.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any, Final

from examples.hazards.lesson import LIMIT
from reactive_runtime.explore._playing import Node, Play, next_text, step_text

__all__ = ["MOST", "figure", "section"]

MOST: Final = 100
"""Positions of a game on a page, at most: a larger one is played in a terminal."""


def section(program: Any, module: str) -> str:
    """The section of a lesson's page; nothing where no thread can be chosen."""
    play = Play(program, limit=LIMIT)
    if not play.explorers:
        return ""
    command = f"reactive-runtime explore --play {module}:LESSON.broken"
    played = figure(play)
    if played is None:
        return f"## Find the schedule yourself\n\nIn a terminal you are the scheduler:\n\n```\n{command}\n```\n"
    raw = f"```{{raw}} html\n{played}\n```"
    return f"## Find the schedule yourself\n\n{raw}\n\nThe same in a terminal: `{command}`\n"


def figure(play: Play) -> str | None:
    """The game as a part of a page; None where there are too many positions."""
    nodes = play.whole(MOST)
    if nodes is None or any(_numbers_objects(node) for node in nodes):
        return None
    data = json.dumps(
        {"nodes": [_node(node) for node in nodes], "explorers": play.explorers}, separators=(",", ":")
    ).replace("<", "\\u003c")
    return f"""<figure class="game" aria-label="Find the schedule yourself: {escape(play.program.name)}">
<script type="application/json">{data}</script>
<noscript>The game needs JavaScript.</noscript>
</figure>"""


def _node(node: Node) -> dict[str, Any]:
    here = node.position
    return {
        "columns": list(here.columns.items()),
        "threads": [[item.thread, item.state == "ready", next_text(item)] for item in here.threads],
        "outcome": here.outcome,
        "message": here.message,
        "choices": {
            thread: [[[step.thread, step_text(step)] for step in steps], number]
            for thread, (steps, number) in node.choices.items()
        },
    }


def _numbers_objects(node: Node) -> bool:
    """Whether a value is the number of an object: by order of its first use, which another order gives another."""
    return any("#" in step.value for steps, _ in node.choices.values() for step in steps)
