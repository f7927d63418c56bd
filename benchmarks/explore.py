"""The explorer beside frontrun 0.7.0 and interleave-test 0.1.0, on the same programs, in one run.

    make bench PART=explore

Each tool gets each broken program for at most 500 schedules and 20 seconds, in a process of its own, since a tool that
does not control what a program does may hang in it. A bug counts as found if the fixed twin of the program is not
accused as well, in 100 schedules. Then each runs a correct program for its speed. Printed are how many bugs were
found, after how many schedules, and schedules a second. Last, each that has a search to its end exhausts three threads
of two locked increments: in how many executions, how many of the 90 orders it came to, and how many a second.
`python benchmarks/explore.py --ours` prints our own speed at all kinds of points, and `--exhaust` the last part alone.
`--sctbench` gives SCTBench's 52 programs to each tool: processor seconds until the fault, without the first time, in
which a tool compiles or traces what a process needs once, and ours as a ratio of them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

TOOLS = ("ours", "frontrun", "interleave-test")
SCHEDULES = 500
SECONDS = 20
POOLS = ("PoolCounter", "OrderOfTasks", "CancelledTooLate", "SubmitAfterShutdown", "CallbackFirst", "WaitingInThePool")
SPAWNED = ("NotJoined", "StartedBeforeSet", "StopIgnored", "TimerAfterCancel", "ParallelPublisher", "LatePublisher")


def programs(*, fixed: bool = False) -> dict[str, Any]:
    from bugs import ALL, LESSONS

    from examples.hazards import lesson
    from reactive_runtime.explore._checks.scenario import scenario_of

    pairs = [(item.broken, item.fixed) for item in map(lesson, LESSONS)] + [tuple(pair) for pair in ALL]
    return {scenario_of(pair[0]).name: scenario_of(pair[1 if fixed else 0]) for pair in pairs}


def sctbench(*, fixed: bool = False) -> dict[str, Any]:
    from explore.sctbench import PROGRAMS

    return {item.name: item.fixed if fixed else item.broken for item in PROGRAMS}


def speed_program() -> Any:
    """Two threads, three requests each, on the textbook's subscription; nothing is asserted, so nothing fails."""
    from examples.hazards.streams.lost_demand import TextbookSubscription
    from reactive_runtime.explore import Scenario

    def three(item: TextbookSubscription) -> None:
        for _ in range(3):
            item.request(1)

    return Scenario(TextbookSubscription, {"a": [three], "b": [three]}, name="speed")


class LockedIncrements:
    """Three threads with two locked increments each: 90 orders of the six."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.order = ""

    def increment(self, name: str) -> None:
        for _ in range(2):
            with self.lock:
                self.count += 1
                self.order += name

    def actor_a(self) -> None:
        self.increment("a")

    def actor_b(self) -> None:
        self.increment("b")

    def actor_c(self) -> None:
        self.increment("c")

    def at_end(self) -> None:
        assert self.count == 6


# -- one tool, one program, in a process of its own -----------------------------------------------------------


def run_ours(scenario: Any, schedules: int, seed: int) -> tuple[int | None, int, float]:
    from reactive_runtime.explore import explore

    result = explore(scenario, schedules=schedules, seed=seed, shrink=False)
    found = None if result.failure is None else result.failure.found_after
    return found, result.schedules, result.seconds


def run_frontrun(scenario: Any, schedules: int, seed: int) -> tuple[int | None, int, float]:
    import frontrun

    raised: list[int] = []  # it does not count an actor that raises as a failure: this does

    def actor(calls: Any) -> Any:
        def work(state: Any) -> None:
            try:
                for call in calls:
                    call(state)
            except Exception:
                raised.append(id(state))

        return work

    def holds(state: Any) -> bool:
        try:
            return id(state) not in raised and scenario.at_end(state) is not False
        except AssertionError:
            return False

    began = time.perf_counter()
    result = frontrun.explore(
        setup=scenario.setup,
        workers=[actor(calls) for calls in scenario.actors.values()],
        invariant=holds,
        max_executions=schedules,
        reproduce_on_failure=0,
    )
    seconds = time.perf_counter() - began
    explored = int(getattr(result, "num_explored", 0) or 0)
    return (None if result.property_holds else explored), explored, seconds


def run_interleave(scenario: Any, schedules: int, seed: int) -> tuple[int | None, int, float]:
    import interleave_test as interleave

    count = 0

    def model() -> None:
        nonlocal count
        count += 1
        state = scenario.setup()
        tasks = [
            interleave.spawn(lambda calls=calls: [call(state) for call in calls]) for calls in scenario.actors.values()
        ]
        for task in tasks:
            task.join()
        assert scenario.at_end(state) is not False

    began = time.perf_counter()
    try:
        interleave.explore(model, iterations=schedules, seed=seed)
    except Exception as error:
        if "Found" not in type(error).__name__ and "Deadlock" not in type(error).__name__:
            raise
        return count, count, time.perf_counter() - began
    return None, count, time.perf_counter() - began


def help_the_others() -> None:
    """The package and SCTBench's programs bind the names of their locks at the import: let the others stand there."""
    import threading

    from explore.sctbench import chess, cs, large, radbench

    from reactive_runtime._core.runtime import primitives

    modules: list[Any] = [primitives, chess, cs, large, radbench]
    for module in modules:
        for name in ("Lock", "RLock", "Condition", "Event", "Semaphore"):
            if hasattr(module, name):
                setattr(module, name, lambda *args, _name=name, **kwargs: getattr(threading, _name)(*args, **kwargs))


RUN = {"ours": run_ours, "frontrun": run_frontrun, "interleave-test": run_interleave}


def child(tool: str, name: str, schedules: int, seed: int) -> None:
    if tool != "ours":
        help_the_others()
    if name == "exhaust":
        print("RESULT " + json.dumps(to_the_end(tool, None if seed < 0 else seed)))
        return
    twin = name.removeprefix("fixed ")
    if "." in twin:
        scenario = sctbench(fixed=twin != name)[twin]
        RUN[tool](scenario, schedules, seed)
        began = time.process_time()
        found, count, _ = RUN[tool](scenario, schedules, seed)
        seconds = time.process_time() - began
    else:
        scenario = speed_program() if name == "speed" else programs(fixed=twin != name)[twin]
        found, count, seconds = RUN[tool](scenario, schedules, seed)
    print("RESULT " + json.dumps([found, count, seconds]))


def ask(tool: str, name: str, schedules: int, seed: int = 1, limit: float = SECONDS) -> Any:
    """The verdict of the tool on the program, or why there is none."""
    command = [sys.executable, __file__, "--child", tool, name, str(schedules), str(seed)]
    if tool == "frontrun":  # it needs its own launcher
        command.insert(0, str(Path(sys.executable).parent / "frontrun"))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer in {limit} s"
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    last = done.stderr.strip().splitlines()
    return last[-1][:70] if last else "no answer"


# -- to the end -----------------------------------------------------------------------------------------------


def to_the_end(tool: str, bound: int | None) -> tuple[bool, int, float, int]:
    """Whether the search of the tool came to its end, in how many executions and seconds, and to how many orders."""
    orders: set[str] = set()
    actors = [LockedIncrements.actor_a, LockedIncrements.actor_b, LockedIncrements.actor_c]
    most = 1_000

    def ended(state: LockedIncrements) -> bool:
        orders.add(state.order)
        return state.count == 6

    began = time.perf_counter()
    if tool == "ours":
        from reactive_runtime.explore import Scenario, explore

        scenario = Scenario(LockedIncrements, {name: [actor] for name, actor in zip("abc", actors, strict=True)}, ended)
        how = {"strategy": "dpor"} if bound is None else {"strategy": "bounded", "bound": bound}
        for _ in range(2):  # the first compiles the modules a second time, which a process does once
            orders.clear()
            ours = explore(scenario, schedules=most, **how).assert_holds()
        return ours.verdict.kind == "exhausted", ours.schedules, ours.seconds, len(orders)
    if tool == "frontrun":
        import frontrun

        found = frontrun.explore(
            setup=LockedIncrements,
            workers=actors,
            invariant=ended,
            max_executions=most,
            preemption_bound=bound,
        )
        assert found.property_holds
        return found.num_explored < most, found.num_explored, time.perf_counter() - began, len(orders)
    import interleave_test as interleave

    count = 0

    def model() -> None:
        nonlocal count
        count += 1
        state = LockedIncrements()
        tasks = [interleave.spawn(actor, state) for actor in actors]
        for task in tasks:
            task.join()
        assert ended(state)

    interleave.explore(
        model, iterations=most, strategy="dfs", granularity="line", max_preemptions=100 if bound is None else bound
    )
    return count < most, count, time.perf_counter() - began, len(orders)


def exhausting() -> None:
    """How many executions each needs to say that the locked increments hold, and how many a second it does."""
    print("three threads of two locked increments, 90 orders:")
    for bound in (None, 2):
        for tool in TOOLS:
            if not _there(tool):
                continue
            answers = [ask(tool, "exhaust", 0, -1 if bound is None else bound, 6 * SECONDS) for _ in range(3)]
            known = [answer for answer in answers if not isinstance(answer, str)]
            line = f"{tool:16} {'no bound' if bound is None else f'{bound} preemptions':14}"
            if known:
                done, count, _, orders = known[0]
                rate = statistics.median(number / seconds for _, number, seconds, _ in known)
                end = "to the end in" if done else "not to the end in"
                print(f"{line} {end} {count:,} executions, {orders} orders, {rate:,.0f} a second")
            else:
                print(f"{line} {answers[0]}")


# -- side by side ---------------------------------------------------------------------------------------------


def side_by_side() -> None:
    tools = [tool for tool in TOOLS if _there(tool)]
    names = list(programs())
    assert {*POOLS, *SPAWNED} <= {*names}, "a program has another name now"
    found: dict[str, dict[str, int]] = {tool: {} for tool in tools}
    print(f"{'program':24}" + "".join(f"{tool:>34}" for tool in tools))
    for name in names:
        line = f"{name:24}"
        for tool in tools:
            answer = ask(tool, name, SCHEDULES)
            if isinstance(answer, str):
                line += f"{answer[:32]:>34}"
            elif answer[0] is None:
                line += f"{f'not found in {answer[1]}':>34}"
            elif isinstance(twin := ask(tool, f"fixed {name}", 100), str) or twin[0] is not None:
                line += f"{'accuses the fixed one as well':>34}"
            else:
                found[tool][name] = answer[0]
                line += f"{f'found after {answer[0]}':>34}"
        print(line, flush=True)
    print()
    for tool in tools:
        hits = found[tool]
        median = statistics.median(hits.values()) if hits else float("nan")
        hidden = sum(name in hits for name in (*POOLS, *SPAWNED))
        speeds = [answer for _ in range(3) if not isinstance(answer := ask(tool, "speed", 100), str)]
        rate = statistics.median(count / seconds for _, count, seconds in speeds) if speeds else 0.0
        print(
            f"{tool:16} {len(hits)} of {len(names)} found, median after {median:g} schedules;"
            f" {hidden} of {len(POOLS) + len(SPAWNED)} with pools and threads that threads start;"
            f" {rate:,.0f} schedules/s on the textbook's subscription"
        )


def sctbench_side_by_side() -> None:
    """Each tool on SCTBench: a fault that a tool does not find counts as the seconds in which it looked for it."""
    tools = [tool for tool in TOOLS if _there(tool)]
    seconds: dict[str, dict[str, float]] = {tool: {} for tool in tools}
    found: dict[str, set[str]] = {tool: set() for tool in tools}
    print("| program | " + " | ".join(tools) + " |\n| --- |" + " ---: |" * len(tools))
    for name in sctbench():
        row = [name]
        for tool in tools:
            answer = ask(tool, name, SCHEDULES, limit=6 * SECONDS)
            if isinstance(answer, str):
                row.append(answer)
                continue
            seconds[tool][name] = answer[2]
            if answer[0] is None:
                row.append(f"not in {answer[1]}, {answer[2]:.3f} s")
            elif isinstance(twin := ask(tool, f"fixed {name}", 20, limit=6 * SECONDS), str) or twin[0] is not None:
                row.append("accuses the twin as well")
            else:
                found[tool].add(name)
                row.append(f"after {answer[0]}, {answer[2]:.3f} s")
        print("| " + " | ".join(row) + " |", flush=True)
    for tool in tools[1:]:
        both = sorted(found["ours"] & found[tool])
        looked = sorted(found["ours"] & {*seconds[tool]})
        for names, which in ((both, "both find"), (looked, "this finds, and the other gave an answer for")):
            ratios = [seconds[tool][name] / seconds["ours"][name] for name in names]
            median = statistics.median(ratios) if ratios else float("nan")
            print(f"{tool}: {median:.3g} times the seconds, the median of the {len(names)} programs that {which}")
    print("found: " + ", ".join(f"{tool} {len(names)}" for tool, names in found.items()))


def _there(tool: str) -> bool:
    module = {"ours": "reactive_runtime", "frontrun": "frontrun", "interleave-test": "interleave_test"}[tool]
    try:
        __import__(module)
    except ImportError as error:
        print(f"{tool} is left out: {error}")
        return False
    return True


def ours() -> None:
    """Schedules a second, the median of five, on the textbook's subscription: two threads, three requests each."""
    from reactive_runtime.explore import explore

    scenario = speed_program()
    print(f"{'points':10}{'engine':12}{'random':>12}{'PCT3':>12}{'portfolio':>12}   schedules a second")
    cases = [("sync", "threads"), ("shared", "threads"), ("line", "threads"), ("opcode", "threads")]
    try:
        import greenlet  # noqa: F401

        cases += [("sync", "greenlets"), ("shared", "greenlets")]
    except ImportError:
        print("greenlets are left out: greenlet is not installed")
    for points, engine in cases:
        line = f"{points:10}{engine:12}"
        for strategy in ("random", "pct3", "portfolio"):
            rates = []
            for seed in range(5):
                result = explore(
                    scenario,
                    schedules=2_000,
                    seed=seed,
                    strategy=strategy,
                    points=points,  # type: ignore[arg-type]
                    engine=engine,  # type: ignore[arg-type]
                )
                rates.append(result.schedules / result.seconds)
            line += f"{statistics.median(rates):>12,.0f}"
        print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    elif "--exhaust" in sys.argv:
        exhausting()
    elif "--sctbench" in sys.argv:
        sctbench_side_by_side()
    else:
        ours()
        if "--ours" not in sys.argv:
            print()
            side_by_side()
            print()
            exhausting()
