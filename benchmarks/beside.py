"""Six programs of reactive_runtime beside the same by hand, in asyncio, aiostream, reactivex, RxJava and Reactor.

    make bench PART=beside
    WRITE_DOCS=1 make bench PART=beside

Each way does a program once for small counts, then in whole rounds: one way after the other, then all of them again.
A run whose result is not the program's ends the measurement with status 1. A ratio is that of a round: the time an
element takes in a peer, to that in reactive_runtime; printed are the median of the rounds and the quartiles. A JVM runs
one program of one library, and does it `WARM_UP` times before it is measured. The memory of the slow consumer's rows is
measured in a run of its own. WRITE_DOCS=1 writes the table and the picture of the docs too.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import beside_programs
from beside_programs import RESULTS, WAITED, WAYS
from rich.table import Table
from side_by_side import console

ROOT = Path(__file__).resolve().parent.parent
PAGE, PICTURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "beside.svg"
BLOCK = re.compile(r"(?<=<!-- beside -->\n).*?(?=<!-- end -->)", re.DOTALL)

OURS = "reactive_runtime"
PEERS = (OURS, "loop", "queue.Queue", "Executor.map", "asyncio.Queue", "aiostream", "reactivex", "RxJava", "Reactor")
JVM = ("RxJava", "Reactor")
WARM_UP = 20
TIMES = "\N{MULTIPLICATION SIGN}"


class Program(NamedTuple):
    """A program: its title, its elements on Python, and those of a first try."""

    title: str
    elements: int
    small: int


PROGRAMS = {
    "chain": Program("1. map, filter, map on one thread", 400_000, 1_000),
    "boundary": Program("2. a boundary between two threads", 200_000, 1_000),
    "calls": Program("3. calls of 1 ms on 8 threads, results in order", 1_600, 50),
    "short calls": Program("3b. the same, calls that return at once", 8_000, 200),
    "flatten": Program("4. flat_map of many inner flows of 10", 100_000, 1_000),
    "group": Program("5. group_by, a sum for each of 50 groups", 50_000, 1_000),
    "slow": Program("6. a fast producer before a slow consumer", 10_000, 200),
}

SHARES = {
    ("chain", "aiostream"): 0.1,
    ("boundary", "Executor.map"): 0.2,
    ("boundary", "reactivex"): 0.2,
    ("short calls", "reactivex"): 0.2,
    ("short calls", "aiostream"): 0.2,
    ("flatten", "aiostream"): 0.1,
    **{(program, peer): 20.0 for program in ("chain", "boundary", "flatten", "group") for peer in JVM},
    **{("short calls", peer): 4.0 for peer in JVM},
}
"""Ways that are so slow, or so fast, that they get fewer elements, or more."""


class Run(NamedTuple):
    """One run: its time, its result, and for the slow consumer how many rows waited and how many bytes they took."""

    seconds: float
    result: str
    waiting: int = 0
    alive: int = 0


Runner = Callable[..., Run]


class Figures(NamedTuple):
    """A peer in a program: seconds an element in each round; how many rows waited, and how many bytes they took."""

    seconds: list[float]
    waiting: int
    alive: int


def here(program: str, peer: str) -> Runner:
    """A way of Python, in this process."""

    def runner(n: int) -> Run:
        gc.collect()
        begin = time.perf_counter()
        result = WAYS[program][peer](n)
        return Run(time.perf_counter() - begin, str(result))

    return runner


def held(program: str, peer: str, n: int) -> Run:
    """A way of Python with every allocation counted."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = WAYS[program][peer](n)
        alive = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return Run(0, str(result), WAITED[0], alive)


@contextmanager
def on_jvm(classpath: list[str], program: str, peer: str, *options: str) -> Iterator[Runner]:
    """A way of a JVM that does this alone. With the word `memory` it looks at its heap, eight times in a run."""
    java = ["java", *options, "-cp", os.pathsep.join(classpath), "Beside"]
    with subprocess.Popen([*java, peer, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None
        assert stdout.readline() == "ready\n", f"{peer} has not begun"

        def runner(n: int, word: str = "") -> Run:
            print(n, word, file=stdin, flush=True)
            answer = stdout.readline().strip()
            assert answer, f"{peer} has ended in: {program}"
            nanoseconds, waiting, alive, result = answer.split(" ", 3)
            return Run(int(nanoseconds) / 1e9, result, int(waiting), int(alive))

        yield runner
        process.communicate()


def classpath() -> list[str]:
    """The six programs of Java, compiled, and the jars; empty where there is no Maven or JDK."""
    sys.path.insert(0, str(ROOT / "tests"))
    from jvm.conftest import built, missing

    if reason := missing():
        print(f"without RxJava and Reactor: {reason}")
        return []
    classes, jars = ROOT / "build" / "beside", built()
    source = ROOT / "benchmarks" / "java" / "Beside.java"
    subprocess.run(["javac", "-d", str(classes), "-cp", os.pathsep.join(jars), str(source)], check=True)
    return [str(classes), *jars]


@cache
def result(program: str, n: int) -> str:
    return str(RESULTS[program](n))


def checked(program: str, peer: str, n: int, run: Run) -> Run:
    """The run, whose result is right."""
    right = result(program, n)
    if run.result != right:
        sys.exit(f"{program}, {peer}, {n} elements: the result is {run.result[:80]}, and not {right[:80]}")
    return run


def measure(program: str, jars: list[str], rounds: int, scale: float) -> dict[str, Figures]:
    """Every way of a program, in whole rounds."""
    small = PROGRAMS[program].small
    counts = {}
    with ExitStack() as stack:
        runners = {peer: here(program, peer) for peer in PEERS if peer in WAYS[program]}
        if jars:
            runners |= {peer: stack.enter_context(on_jvm(jars, program, peer)) for peer in JVM}
        for peer, runner in runners.items():
            counts[peer] = max(small, int(scale * PROGRAMS[program].elements * SHARES.get((program, peer), 1)))
            checked(program, peer, small, runner(small))
        for peer in JVM if jars else ():
            for _ in range(WARM_UP if program != "slow" else 1):  # the slow consumer sleeps, compiled or not
                checked(program, peer, counts[peer], runners[peer](counts[peer]))
        seconds: dict[str, list[float]] = {peer: [] for peer in runners}
        for _ in range(rounds):
            for peer, runner in runners.items():
                run = checked(program, peer, counts[peer], runner(counts[peer]))
                seconds[peer].append(run.seconds / counts[peer])
    kept = memory(program, list(runners), counts, jars) if program == "slow" else {}
    return {
        peer: Figures(taken, kept[peer].waiting if kept else 0, kept[peer].alive if kept else 0)
        for peer, taken in seconds.items()
    }


def memory(program: str, peers: list[str], counts: dict[str, int], jars: list[str]) -> dict[str, Run]:
    """One more run of each, with a look at what is alive."""
    kept = {}
    for peer in peers:
        if peer in JVM:  # with these options the heap is counted in bytes, not in regions
            with on_jvm(jars, program, peer, "-XX:+UseSerialGC", "-XX:-UseTLAB") as runner:
                runner(PROGRAMS[program].small)
                run = runner(counts[peer], "memory")
        else:
            run = held(program, peer, counts[peer])
        kept[peer] = checked(program, peer, counts[peer], run)
    return kept


# -- what it says -----------------------------------------------------------------------------------------------------


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """The lower one, the median, the upper one."""
    if len(values) == 1:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def ratios(figures: dict[str, Figures], peer: str, base: str = OURS) -> tuple[float, float, float]:
    """Of each round the time of a peer to that of the base: quartiles."""
    pairs = zip(figures[peer].seconds, figures[base].seconds, strict=True)
    return quartiles([seconds / unit for seconds, unit in pairs])


def digits(value: float) -> str:
    """Two digits that count, or all before the point; three from 0.1 to 10, where a percent counts."""
    places = (2 if 0.1 <= value < 10 else 1) - math.floor(math.log10(value))
    return f"{value:,.{max(0, min(places, 2 if value >= 0.1 else 9))}f}"


def span(low: float, middle: float, high: float) -> str:
    """A median with its quartiles."""
    return f"{digits(middle)} ({digits(low)} to {digits(high)})"


def each(seconds: list[float]) -> str:
    """The time an element takes."""
    taken = statistics.median(seconds)
    return f"{digits(taken * 1e9)} ns" if taken < 1e-6 else f"{digits(taken * 1e6)} µs"


def table(known: dict[str, dict[str, Figures]], rounds: int) -> Table:
    """A row for each way of each program."""
    shown = Table(title=f"time an element, {OURS} = 1; {rounds} rounds", title_justify="left")
    for column in ("program", "way", "an element", "ratio", "quartiles", "rows that waited", "MiB"):
        shown.add_column(column, justify="left" if column in ("program", "way") else "right")
    for program, figures in known.items():
        for peer, item in figures.items():
            low, middle, high = ratios(figures, peer)
            title = PROGRAMS[program].title if peer == OURS else ""
            rows = (f"{item.waiting:,}", f"{item.alive / 2**20:.2f}") if item.waiting else ("", "")
            between = "" if peer == OURS else f"{digits(low)} to {digits(high)}"
            shown.add_row(title, peer, each(item.seconds), digits(middle), between, *rows)
        shown.add_section()
    return shown


def beside(figures: dict[str, Figures]) -> str:
    """Our time as a ratio to that of each peer, from where we are slowest."""
    ours = {peer: ratios(figures, OURS, peer)[1] for peer in figures if peer != OURS}
    return ", ".join(f"{digits(ours[peer])} {TIMES} {peer}" for peer in sorted(ours, key=lambda peer: -ours[peer]))


def aims(known: dict[str, dict[str, Figures]]) -> list[str]:
    """The chain, beside what it must reach."""
    if "chain" not in known:
        return []
    loop, other = ratios(known["chain"], OURS, "loop")[1], ratios(known["chain"], "reactivex")[1]
    return [
        f"The fused chain takes {loop:.2f} {TIMES} the time of the loop; at most 1.10 is the aim"
        f"{'' if loop <= 1.10 else ', which it misses'}.",
        f"reactivex takes {other:.2f} {TIMES} the time of the fused chain; at least 3 is the aim"
        f"{'' if other >= 3 else ', which it misses'}.",
    ]


def conditions(rounds: int, scale: float, load: float, jars: list[str]) -> str:
    """The conditions of the figures: rounds, load and versions."""
    named = [f"{name} {importlib.metadata.version(name)}" for name in ("aiostream", "reactivex")]
    for name in ("rxjava", "reactor-core"):
        named += [Path(jar).stem for jar in jars if Path(jar).name.startswith(f"{name}-")]
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()[:1]
    named += [re.sub(r".*\"(.+)\".*", r"Java \1", line) for line in java]
    cores = os.cpu_count() or 1
    busy = "\nThe machine had other work, so the figures are rough." if load > cores else ""
    return (
        f"{rounds} rounds, counts {TIMES} {scale:g}, {cores} cores,"
        f" load {load:.1f} at the beginning and {os.getloadavg()[0]:.1f} at the end;"
        f" {platform.python_implementation()} {platform.python_version()}, {', '.join(named)}.{busy}"
    )


def page(known: dict[str, dict[str, Figures]], how: str) -> str:
    """The part of docs/benchmarks.md: a row for each way of each program."""
    lines = [how, "", f"| program | way | an element | time, {OURS} = 1 | memory, and rows that waited |"]
    lines.append("| --- " * 5 + "|")
    for program, figures in known.items():
        for peer, item in figures.items():
            title = PROGRAMS[program].title if peer == OURS else ""
            ratio = "1" if peer == OURS else span(*ratios(figures, peer))
            kept = f"{item.alive / 2**20:.2f} MiB, {item.waiting:,}" if item.waiting else ""
            lines.append(f"| {title} | {peer} | {each(item.seconds)} | {ratio} | {kept} |")
    lines += ["", *aims(known), "", f"The time of {OURS}, beside that of each peer; above 1 it is slower:", ""]
    lines += [f"- {PROGRAMS[program].title}: {beside(figures)}." for program, figures in known.items()]
    return "\n".join(lines) + "\n"


def picture(known: dict[str, dict[str, Figures]]) -> None:
    """A panel for each program, a bar for each peer, as long as its time; the line is ours, and red is faster."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "reactive_runtime"
    from matplotlib import pyplot

    figure, grid = pyplot.subplots((len(known) + 2) // 2, 2, figsize=(10, 11))
    panels: list[Any] = list(grid.flat)
    for axes, (program, figures) in zip(panels, known.items(), strict=False):
        names = [peer for peer in reversed(PEERS) if peer in figures]
        values = [ratios(figures, peer)[1] for peer in names]
        bars(axes, names, values, [f"{digits(value)} {TIMES}" for value in values], base=1)
        axes.set_title(f"{PROGRAMS[program].title}: time", fontsize=10, loc="left")
    names = [peer for peer in reversed(PEERS) if peer in known["slow"]]
    values = [known["slow"][peer].alive / 2**20 for peer in names]
    bars(panels[len(known)], names, values, [f"{value:.2f} MiB" for value in values], base=1e-3)
    panels[len(known)].set_title("6. memory in use, at most", fontsize=10, loc="left")
    for axes in panels[len(known) + 1 :]:
        axes.set_axis_off()
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def bars(axes: Any, names: list[str], values: list[float], texts: list[str], base: float) -> None:
    """A bar for each name, from the base to its value, on a scale of powers of ten."""
    least, most = min(*values, base / 2), max(*values, base * 2)
    wide = math.log10(most / least) + 0.2
    for at, (name, value, text) in enumerate(zip(names, values, texts, strict=True)):
        color = "#4878a8" if name == OURS else "#c05a4a" if value < base else "#a8b4c0"
        axes.barh(at, value - base, left=base, color=color)
        axes.text(max(value, base) * 10 ** (0.02 * wide), at, text, va="center", fontsize=8)
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlim(least / 10 ** (0.05 * wide), most * 10 ** (0.25 * wide))
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.axvline(base, color="black", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=11, help="how often each way does each program")
    parser.add_argument("--scale", type=float, default=1, help="a factor of all counts: 0.05 is a try")
    parser.add_argument("--only", choices=PROGRAMS, help="one program")
    options = parser.parse_args()
    jars = classpath()
    missing = [peer for peer in PEERS if peer not in {*WAYS["calls"], "loop", *(JVM if jars else ())}]
    if "aiostream" in missing:
        print("without aiostream, which is not installed")
    if os.environ.get("WRITE_DOCS") and (missing or options.only):
        sys.exit("WRITE_DOCS needs all peers and all programs")
    load = os.getloadavg()[0]
    names = [options.only] if options.only else list(PROGRAMS)
    try:
        known = {name: measure(name, jars, options.rounds, options.scale) for name in names}
    finally:
        beside_programs.close()
    console.print(table(known, options.rounds))
    how = conditions(options.rounds, options.scale, load, jars)
    console.print("\n".join([*aims(known), how]))
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(BLOCK.sub(lambda _: page(known, how), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        picture(known)


if __name__ == "__main__":
    main()
