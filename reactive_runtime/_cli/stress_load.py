"""The load of `stress`: run in this process or in others, recorded, and summed up on the terminal."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._cli.console import fault, out
from reactive_runtime._cli.watch import Stop
from reactive_runtime._core.runtime import primitives
from reactive_runtime._results.ci_files import UnwrittenError, write_whole
from reactive_runtime._results.states import State
from reactive_runtime.errors import TraceError

if TYPE_CHECKING:
    from reactive_runtime.stress import Failure, Result, Scenario
    from reactive_runtime.testing.trace import TraceWriter

__all__ = ["StressLoad", "failed_of"]

PROGRESS_SECONDS: Final = 2.0


def failed_of(failures: Iterable[Failure]) -> dict[str, str]:
    """Of the scenarios that were given up, those that failed by that: stuck, or the rule that was broken."""
    return {item.scenario: item.rule or State.STUCK.value for item in failures if item.rule or item.stuck}


@dataclass(frozen=True)
class StressLoad:
    """The plan of a run."""

    scenarios: list[Scenario]
    where: str
    threads: int
    seconds: float
    seed: int
    to: Path
    fault: str
    machine: str
    in_processes: bool
    pythons: list[str]
    stop: Stop
    began_in: Path
    """The working folder before any scenario was imported: one may change it."""
    lost: list[str] = field(default_factory=list)
    """The files that the disk refused, a line each: that run is cut off there."""

    def runs(self, skipped: list[Failure]) -> tuple[list[Path], list[Failure]]:
        """Run it, once for each interpreter, side by side. The folders of the runs, and what was given up."""
        import secrets

        from reactive_runtime.stress._processes import version_of

        # Two hosts may begin in the same second with the same seed.
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{self.seed}-{secrets.token_hex(2)}"
        process = "" if not self.in_processes else ", a process a scenario"
        out().print(
            f"load     {len(self.scenarios)} scenarios, {self.threads} threads, {self.seconds:g} s,"
            f" seed {self.seed}{process}"
        )
        if not self.pythons and not self.in_processes:
            path, failures = self._here(self._writer(name), skipped)
            return [path], failures
        versions = [(python, version_of(python)) for python in self.pythons] or [("", "")]
        writers = []
        for number, (python, version) in enumerate(versions):
            same = sum(version == earlier for _, earlier in versions[:number])
            of = f"-py{version}{f'-{same + 1}' if same else ''}" if version else ""
            writers.append((python, self._writer(f"{name}{of}", version)))
        return self._elsewhere(writers, skipped)

    def _writer(self, name: str, python: str = "") -> TraceWriter:
        from reactive_runtime import __version__
        from reactive_runtime.stress._faults import fault_of
        from reactive_runtime.testing.trace import TraceWriter

        facts = {
            "version": __version__,
            "commit": _commit(self.began_in),
            "scenarios": [scenario.name for scenario in self.scenarios],
            "seed": self.seed,
            "threads": self.threads,
            "fault": self.fault or None,
            "fault_rule": fault_of(self.fault).rule if self.fault else None,
        }
        named = {"python": python, "machine": self.machine}
        return TraceWriter(self.to, name, facts | {what: name for what, name in named.items() if name})

    def _here(self, writer: TraceWriter, skipped: list[Failure]) -> tuple[Path, list[Failure]]:
        """In this process, all scenarios in turn."""
        from reactive_runtime.stress import Load, planted, run

        before = set(primitives.running_threads())
        with (
            planted(self.fault) if self.fault else contextlib.nullcontext(),
            _progress(self.seconds, self.scenarios) as progress,
        ):

            def over(result: Result) -> bool:
                progress(result)
                return writer.failed or self.stop.asked is not None

            result = run(self.scenarios, Load(self.threads, self.seconds, self.seed), writer.recorder(), over)
        left = _still_running(before)
        self._close(writer, result, skipped, left)
        return writer.path, result.failures

    def _elsewhere(
        self, writers: list[tuple[str, TraceWriter]], skipped: list[Failure]
    ) -> tuple[list[Path], list[Failure]]:
        """In processes of their own, those of all interpreters side by side."""
        from reactive_runtime.stress import Load
        from reactive_runtime.stress._processes import Order, Processes, run_in_processes

        names = [scenario.name for scenario in self.scenarios]
        groups = [[name] for name in names] if self.in_processes else [names]
        at_once = max(1, (os.cpu_count() or 1) // len(writers)) if self.in_processes else 1
        seconds = self.seconds * min(at_once, len(groups)) / len(groups)

        processes = Processes()

        def carried_out(python: str, writer: TraceWriter) -> Result:
            orders = [
                Order(
                    self.where,
                    group,
                    Load(self.threads, seconds, self.seed),
                    self.fault,
                    python or sys.executable,
                )
                for group in groups
            ]
            return run_in_processes(orders, writer, at_once, processes)

        with self.stop.heard(processes.stop), ThreadPoolExecutor(len(writers)) as pool:
            results = list(pool.map(lambda item: carried_out(*item), writers))
        for (_, writer), result in zip(writers, results, strict=True):
            self._close(writer, result, skipped)
        return [writer.path for _, writer in writers], [failure for result in results for failure in result.failures]

    def _close(self, writer: TraceWriter, result: Result, skipped: list[Failure], left: Sequence[str] = ()) -> None:
        """The end of a run: what it amounted to, on paper and on the terminal. `left`: threads that still run."""
        stopped = self.stop.asked is not None
        whole = self._written(
            writer,
            {
                "stopped": stopped,
                "cut_short": result.cut_short,
                "threads_left": list(left),
                "seconds": round(result.seconds, 3),
                "load": {name: item.facts() for name, item in result.load.items()},
                "given_up": {item.scenario: item.why for item in (*skipped, *result.failures)},
                "failed": failed_of(result.failures),
                "dropped": dict(result.dropped),
                "leaving": {
                    name: metric.facts() for name, metric in result.cancellation_metrics.items() if metric.idle
                },
            },
        )
        if stopped:
            out().print(f"stopped  after {result.seconds:.1f} of {self.seconds:g} s: what there is by now is judged")
        if left:
            shown = ", ".join(left[:5]) + (", ..." if len(left) > 5 else "")
            out().print(f"threads  {len(left)} that scenarios have started still run: {shown}", soft_wrap=True)
        for what, count in result.dropped.most_common():
            out().print(f"dropped  {count:,} x {what}", soft_wrap=True)
        stacks = "\n".join(
            f"{failure.scenario}: {failure.why}\n\n{failure.stacks}" for failure in result.failures if failure.stuck
        )
        if stacks and whole:
            self._write_stuck(writer.path / "stuck.txt", stacks)
        measured = [metric for metric in result.cancellation_metrics.values() if metric.idle]
        if measured:
            idle = 1e3 * max(seconds for item in measured for seconds in item.idle)
            closed = 1e3 * max((seconds for item in measured for seconds in item.closed), default=0.0)
            out().print(
                f"left     {sum(item.subscribers for item in measured):,} subscribers in mid-stream: nothing of them"
                f" was left on a pool after {idle:.1f} ms, every iterator closed after {closed:.1f} ms,"
                f" {sum(item.kept for item in measured)} could not be collected",
                soft_wrap=True,
            )
        if writer.waited > 0.01 * self.threads * result.seconds:
            out().print(f"recorder held the load up: its threads waited {writer.waited:.1f} s for the files")
        if len(result.load) > 1:
            least = min(result.load.items(), key=lambda item: item[1].signals)
            fewest = min(item.rounds for item in result.load.values())
            out().print(
                f"shared   each scenario had {fewest:,} rounds or more, and {least[1].signals:,} signals or more"
                f" (fewest: {least[0]})",
                markup=False,
                soft_wrap=True,
            )
        rate = writer.rows / max(result.seconds, 1e-9)
        word = "recorded" if whole else "cut off,"
        out().print(
            f"{word} {writer.rows:,} signals and calls of {result.subscriptions:,} subscriptions"
            f" in {result.seconds:.1f} s ({rate:,.0f} a second)\nrun      {writer.path}",
            soft_wrap=True,
        )

    def _write_stuck(self, file: Path, stacks: str) -> None:
        try:
            write_whole(file, stacks.encode())
        except UnwrittenError as error:
            fault(error)
            self.lost.append(str(error))
        else:
            out().print(f"stuck    what all threads were at: {file}", style="red", soft_wrap=True)

    def _written(self, writer: TraceWriter, metadata: dict[str, Any]) -> bool:
        """Finish the run; False where the disk refused a part. The part before that stays, and can be judged."""
        try:
            writer.close(metadata)
        except TraceError as error:
            fault(error)
            self.lost.append(f"{writer.path}: was cut off: {str(error).partition(': ')[2]}")
            return False
        return True


def _still_running(before: set[primitives.Thread]) -> list[str]:
    """The threads that the load has left behind, after a moment in which they may come to their end."""
    patience = primitives.monotonic() + 1.0
    while True:
        left = [
            thread for thread in primitives.running_threads() if thread not in before and thread.name != "trace writer"
        ]
        if not left or primitives.monotonic() > patience:
            return sorted(rest.name for rest in left)
        primitives.Event().wait(0.01)


def _commit(folder: Path) -> str | None:
    """Of the code that the load is put on: what git says of that folder; `+` where it was changed since."""
    ask = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    try:
        answer = subprocess.run(ask, cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


@contextlib.contextmanager
def _progress(seconds: float, scenarios: list[Scenario]) -> Iterator[Callable[[Result], object]]:
    """A bar where there is a terminal, a plain line every two seconds where there is none."""

    def status(result: Result) -> str:
        return f"{result.signals:,} signals in {result.rounds:,} rounds, now {result.running}"

    if not out().is_terminal:
        said = [0.0]

        def say(result: Result) -> None:
            if result.seconds - said[0] >= PROGRESS_SECONDS:
                said[0] = result.seconds
                done = min(1.0, result.seconds / seconds)
                out().print(f"         {done:4.0%} of {seconds:g} s, {status(result)}", markup=False, soft_wrap=True)

        yield say
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("load    "), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[status]}"))
    with Progress(*columns, console=out(), transient=True) as bar:
        task = bar.add_task("load", total=seconds, status="")
        yield lambda result: bar.update(task, completed=result.seconds, status=status(result))
