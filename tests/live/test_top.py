"""`top` in the terminal: a row for each flow, the cause of the chosen one, and the line of a process that is gone."""

from __future__ import annotations

import asyncio
import html
import os
import re
from pathlib import Path

from sinks import PATIENCE
from textual.widgets import DataTable, Static

from reactive_runtime import MAX_DEMAND, Flow, live
from reactive_runtime._cli.top import Top


async def until_shown(top: Top, name: str, text: str) -> str:
    """The text of a part of the screen, once it has that."""
    for _ in range(int(PATIENCE * 50)):
        shown = str(top.query_one(f"#{name}", Static).content)
        if text in shown:
            return shown
        await asyncio.sleep(0.02)
    raise AssertionError(f"{text!r} was not shown in {shown!r}")


def test_it_shows_flows_with_their_causes_and_an_end(tmp_path: Path) -> None:
    folder = tmp_path / "sockets"
    live.open(folder)
    top = Top(os.getpid(), 0.5, folder)

    async def watched() -> None:
        async with top.run_test(size=(110, 30)) as pilot:
            await until_shown(top, "process", "2 live flows, 1 stalled")
            table = top.query_one(DataTable)
            assert [str(cell) for cell in table.get_row_at(0)][2:] == ["2", "0", "0", "0", "range(9) map(str)"]
            assert "no demand from" in await until_shown(top, "flow", "STALLED")
            await pilot.press("down")
            assert "a timer of" in await until_shown(top, "flow", "IDLE")
            live.close()
            await until_shown(top, "process", "has no socket")
            await pilot.press("q")

    try:
        with (
            Flow.range(9).map(str).subscribe(print, demand=2),
            Flow.interval(3600).subscribe(print),
        ):
            asyncio.run(watched())
    finally:
        live.close()


class Unasked(Top):
    """It shows what a test gives it: there may be a process of that PID, or none."""

    def look(self) -> None:
        pass


PICTURE = Path("docs/how-to/top.svg")


def test_the_picture_of_the_docs_shows_what_top_shows() -> None:
    """WRITE_DOCS=1 draws it anew; else the words in it have to be those of the screen."""
    cause = live.Cause("lock", "`map(save)` waits for the lock `lock`, in save at app.py:12, on thread io_0", 40.2)
    stages = (
        live.Stage(0, "| to_list()", 'pool "cpu"', None, MAX_DEMAND, 0, None, 40.2),
        live.Stage(1, "range(1000) map(save)", 'pool "io"', "io_0", 64, None, 213, 40.2),
    )
    stuck = live.FlowState("7f01", "sink", "stalled", cause, stages, 213, 0.0)
    ticks = live.Cause("timer", "a timer of `interval(60 s)`", 12.0)
    timer = (live.Stage(0, "interval(60 s)", "caller", None, MAX_DEMAND, None, None, 12.0),)
    idle = live.FlowState("7f02", "subscriber made of functions", "idle", ticks, timer, None, None)
    rows = (live.Stage(0, "from_iterable(generator) map(parse)", 'pool "io"', "io_1", MAX_DEMAND, None, 91_204, 0.0),)
    moving = live.FlowState("7f03", "sink", "moving", None, rows, 91_204, 8_310.0)
    top = Unasked(4242, 3600.0)

    async def drawn() -> str:
        async with top.run_test(size=(120, 24)) as pilot:
            top.show(live.Snapshot(4242, (stuck, idle, moving)))
            await pilot.pause()
            return top.export_screenshot(title="reactive-runtime top 4242")

    picture = asyncio.run(drawn())
    if os.environ.get("WRITE_DOCS"):
        PICTURE.write_text(picture)
    assert words(PICTURE.read_text()) == words(picture)


def words(picture: str) -> list[str]:
    return [html.unescape(text).strip() for text in re.findall(r">([^<>\n]*)</text>", picture)]
