"""`top`: the live flows of a process, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from rich.markup import escape
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Static
from textual.worker import get_current_worker

from reactive_runtime.live import FlowState, LiveError, Snapshot, ask

__all__ = ["Top"]

COLUMNS: Final = ("state", "for", "elements", "a second", "demand", "queued", "flow")
COLOURS: Final = {"stalled": "red", "idle": "yellow", "moving": "green"}


class Top(App[None]):
    """A line for each flow; below, the stages and the cause of the one that is chosen.

    Args:
        pid: The process.
        every: Seconds between two looks.
        folder: The folder of its socket.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #process { padding: 0 1; height: 1; }
    DataTable { height: 1fr; }
    VerticalScroll { height: 1fr; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "quit", "quit")]

    def __init__(self, pid: int, every: float, folder: Path | None = None) -> None:
        super().__init__()
        self.pid = pid
        self.every = every
        self.folder = folder
        self.flows: dict[str, FlowState] = {}

    def compose(self) -> ComposeResult:
        """The process, its flows, and the flow that is chosen."""
        yield Static(id="process", markup=False)
        table: DataTable[str] = DataTable(cursor_type="row")
        table.add_columns(*COLUMNS)
        yield table
        with VerticalScroll():
            yield Static(id="flow", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Look at once, and from now on."""
        self.title = f"process {self.pid}"
        self.look()
        self.set_interval(self.every, self.look)

    def look(self) -> None:
        """Ask on a thread: the answer takes a moment, and the keys go on."""
        self.run_worker(self._ask, thread=True, exclusive=True)

    def _ask(self) -> None:
        worker = get_current_worker()
        try:
            found: Snapshot | LiveError = ask(self.pid, self.folder)
        except LiveError as error:
            found = error
        if not worker.is_cancelled:
            self.call_from_thread(self.show, found)

    def show(self, found: Snapshot | LiveError) -> None:
        """Show a snapshot; or why there is none, above the last one.

        Args:
            found: The snapshot, or the error.
        """
        line = self.query_one("#process", Static)
        if isinstance(found, LiveError):
            line.update(str(found))
            return
        line.update(str(found).partition("\n")[0])
        table = self.query_one(DataTable)
        chosen = table.cursor_row
        self.flows = {flow.id: flow for flow in found.flows}
        table.clear()
        for flow in found.flows:
            table.add_row(*_row(flow), key=flow.id)
        table.move_cursor(row=min(chosen, max(0, len(self.flows) - 1)))
        self._detail()

    def on_data_table_row_highlighted(self) -> None:
        """Show the flow that is chosen."""
        self._detail()

    def _detail(self) -> None:
        flows, row = list(self.flows.values()), self.query_one(DataTable).cursor_row
        self.query_one("#flow", Static).update(str(flows[row]) if 0 <= row < len(flows) else "no live flow")


def _row(flow: FlowState) -> tuple[str, ...]:
    first = flow.stages[0]
    queued = sum(stage.queued or 0 for stage in flow.stages)
    return (
        f"[{COLOURS[flow.state]}]{flow.state}[/]",
        f"{first.seconds:.1f} s",
        "" if flow.elements is None else f"{flow.elements:,}",
        "" if flow.rate is None else f"{flow.rate:,.0f}",
        "" if first.demand is None else ("∞" if first.demand >= 2**63 - 1 else f"{first.demand:,}"),
        f"{queued:,}",
        escape(flow.name),
    )
