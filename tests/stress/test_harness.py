"""The harness: a clean verdict on what is right, and each planted fault caught and named."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import itertools
import random
import re
import sys
import threading
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow
from reactive_runtime._core.runtime import eventloop, primitives
from reactive_runtime.errors import ScenarioError
from reactive_runtime.explore import explore
from reactive_runtime.stress import (
    WORKLOADS,
    Context,
    Load,
    Result,
    Scenario,
    Workload,
    find,
    planted,
    run,
    scenario,
)
from reactive_runtime.stress import (
    _cancellation_metrics as cancellation_metrics,
)
from reactive_runtime.stress import (
    _harness as harness,
)
from reactive_runtime.stress._shares import Share, next_of, short
from reactive_runtime.testing import Recorder, Violation, check

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
try:
    from load import all_have_their_least  # type: ignore[import-not-found]
finally:
    sys.path.pop(0)

FOLDER = Path("stress")


def found(names: list[str], seconds: float, seed: int = 1) -> tuple[Result, list[Violation], int]:
    recorder = Recorder("stress")

    def over(so_far: Result) -> bool:
        """A busy machine may take all of the time for one round, in which an actor may have no call."""
        return so_far.seconds >= seconds and len({record.thread for record in recorder.records()}) >= 8

    result = run(find(FOLDER, names), Load(8, seconds + PATIENCE, seed), recorder, over)
    records = recorder.records()
    return result, check(records), len({record.thread for record in records})


@pytest.mark.parametrize("name", [item.name for item in find(FOLDER)])
def test_a_conformant_publisher_is_not_accused(name: str, no_thread_left: None) -> None:
    result, violations, threads = found([name], seconds=0.3)
    assert result.failures == []
    assert not violations, f"{violations[0]}\nand {len(violations) - 1} more"
    assert result.rounds >= 1
    assert threads >= 8


def test_there_are_forty_scenarios_of_every_kind() -> None:
    scenarios = find(FOLDER)
    assert len(scenarios) >= 40
    assert {workload for item in scenarios for workload in item.workloads} == set(WORKLOADS)
    assert not (silent := [item.name for item in scenarios if not item.summary]), f"{silent}: no docstring, for --list"


def test_the_right_subscription_is_back_after_a_fault() -> None:
    with planted("forgotten-cancel"):
        pass
    assert found(["range_on_the_callers"], seconds=0.3)[1] == []


def test_the_switch_interval_is_as_it_was(no_thread_left: None) -> None:
    before = sys.getswitchinterval()
    found(["range_on_the_callers"], seconds=0.1)
    assert sys.getswitchinterval() == before


def test_a_fault_that_is_none_is_named_with_those_there_are() -> None:
    with pytest.raises(ScenarioError, match="no fault 'none'; there are: lost-demand"), planted("none"):
        pass


def test_a_scenario_that_is_none_is_named_with_those_there_are() -> None:
    with pytest.raises(ScenarioError, match="no scenario 'none' in stress; there are: three_executors"):
        find(FOLDER, ["none"])


def test_a_module_may_have_the_scenarios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs.py").write_text(
        "from reactive_runtime import Flow\n"
        "from reactive_runtime.stress import scenario\n"
        "@scenario(elements=3)\n"
        "def three(context):\n"
        "    return Flow.range(3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert [item.name for item in find("theirs")] == ["three"]
    with pytest.raises(ScenarioError, match="theirs_too: no scenario files"):
        find("theirs_too")


def test_a_mix_that_is_none_is_named_with_those_there_are() -> None:
    with pytest.raises(ScenarioError, match="no workload 'none'; there are: mixed"):
        scenario(elements=1, workload="none")


def test_a_folder_without_scenarios_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no scenario files"):
        find(tmp_path)


def test_a_scenario_file_that_does_not_import_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(ScenarioError, match=r"broken\.py: can't be imported: ModuleNotFoundError"):
        find(tmp_path)


def test_the_only_file_that_does_not_import_is_named(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text("1 / 0")
    skipped: list[Path] = []
    with pytest.raises(ScenarioError, match=r"theirs\.py: can't be imported: ZeroDivisionError"):
        find(tmp_path, skipped=lambda file, error: skipped.append(file))
    assert skipped == [tmp_path / "theirs.py"]


def test_a_scenario_file_that_ends_the_process_is_named(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(ScenarioError, match=r"ends\.py: can't be imported: SystemExit: 0"):
        find(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import asyncio\n\nraise asyncio.CancelledError('late\\nand more')\n", "CancelledError: late and more"),
        ("\n\nclass Own(BaseException): ...\nraise Own('mine')\n", "Own: mine"),
    ],
    ids=["CancelledError", "BaseException of one's own"],
)
def test_what_is_no_exception_and_is_raised_by_an_import_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(text)
    line = text[: text.index("raise ")].count("\n") + 1
    file = re.escape(str(tmp_path / "raises.py"))
    with pytest.raises(ScenarioError, match=rf"^{file}: can't be imported: {said}, at {file}:{line}$"):
        find(tmp_path)


def test_two_scenarios_of_one_name_are_refused_with_their_files(tmp_path: Path) -> None:
    one = "from reactive_runtime import Flow\nfrom reactive_runtime.stress import scenario\n"
    one += "@scenario(elements=1)\ndef twin(context):\n    return Flow.range(1)\n"
    (tmp_path / "a.py").write_text(one)
    (tmp_path / "b.py").write_text(one)
    with pytest.raises(ScenarioError, match=r"two scenarios are named 'twin', in .*a\.py and in .*b\.py: rename one"):
        find(tmp_path)


@pytest.mark.parametrize("made_in", ["a.py", "b.py"])
def test_two_scenarios_of_one_function_are_refused(
    made_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text(
        "from reactive_runtime import Flow\nfrom reactive_runtime.stress import scenario\n"
        "def of(size):\n    @scenario(elements=size)\n    def counted(context):\n        return Flow.range(size)\n"
        "    return counted\nsmall = of(10)\n"
    )
    with (tmp_path / made_in).open("a") as file:
        file.write("large = of(1000)\n" if made_in == "a.py" else "from a import of\nlarge = of(1000)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a", raising=False)
    with pytest.raises(
        ScenarioError, match=r"two scenarios are named 'counted', in .*a\.py:4 and in .*a\.py:4: rename"
    ):
        find(tmp_path)


def test_a_scenario_that_another_file_imports_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = "from reactive_runtime import Flow\nfrom reactive_runtime.stress import scenario\n"
    one += "@scenario(elements=1)\ndef twin(context):\n    return Flow.range(1)\n"
    (tmp_path / "once_more.py").write_text(one)
    (tmp_path / "uses.py").write_text("from once_more import twin\nagain = twin\n")
    (tmp_path / "asks.py").write_text("from once_more import twin\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [item.name for item in find(tmp_path)] == ["twin"]


@pytest.mark.parametrize(
    ("wrong", "should"),
    [
        ({"elements": 2**63}, r"elements is wrong; it should be: None, or an int from 0 to 2\*\*63 - 1"),
        ({"elements": -1}, "elements is wrong"),
        ({"elements": 2.0}, "elements is wrong"),
        ({"live": 2.0}, "live is wrong; it should be: an int, 1 or more"),
        ({"live": True}, "live is wrong"),
        ({"subscribers": "sloow"}, "subscribers is wrong; it should be: plain, slow, raising"),
        ({"workload": ()}, "workload is wrong; it should be: one or more of mixed, "),
        ({"tags": "smoke"}, "tags is wrong; it should be: a list of tags, and not one text"),
    ],
)
def test_an_argument_that_can_not_be_is_refused_by_name(wrong: dict[str, Any], should: str) -> None:
    def mine(context: Context) -> Flow[int]:
        return Flow.range(1)

    with pytest.raises(ScenarioError, match=f"scenario 'mine': {should}"):
        scenario(**({"elements": 1} | wrong))(mine)


def test_what_is_no_function_is_no_scenario() -> None:
    declare: Any = scenario(elements=1)
    with pytest.raises(ScenarioError, match=r"^scenario: should be over a function, not over <class '.*\.Context'>$"):
        declare(Context)


def test_no_scenario_has_the_name_of_the_links_of_another() -> None:
    def mine(context: Context) -> Flow[int]:
        return Flow.range(1)

    mine.__name__ = "theirs, link"
    with pytest.raises(ScenarioError, match="scenario 'theirs, link': so the links of 'theirs' are named: rename it"):
        scenario(elements=1)(mine)


def test_a_wrapper_of_a_scenario_is_refused_as_it_would_not_run(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        "import functools\nfrom reactive_runtime import Flow\nfrom reactive_runtime.stress import scenario\n"
        "def halved(make):\n    @functools.wraps(make)\n    def made(context):\n        return make(context).take(1)\n"
        "    return made\n"
        "@halved\n@scenario(elements=2)\ndef two(context):\n    return Flow.range(2)\n"
    )
    why = r"scenario 'two' \(.*theirs\.py:9\): <function two at .*> wraps it, and would not be run: put @scenario over"
    with pytest.raises(ScenarioError, match=why):
        find(tmp_path)


LOST = {
    "name": "def theirs(context): ...\n@scenario(elements=2)\ndef theirs(context): ...\n",
    "loop": "def first(context): ...\nfor n in (1, 2):\n    @scenario(elements=n)\n    def theirs(context): ...\n",
    "decorator": "def theirs(context): ...\ntheirs = print\n",
}


@pytest.mark.parametrize("how", LOST)
def test_a_scenario_that_has_lost_its_name_is_refused(how: str, tmp_path: Path) -> None:
    """The last of two functions of a name was run alone, and the run was clean."""
    file = tmp_path / "theirs.py"
    file.write_text(f"from reactive_runtime.stress import scenario\n@scenario(elements=1)\n{LOST[how]}")
    line = 5 if how == "loop" else 2
    with pytest.raises(ScenarioError) as raised:
        find(tmp_path)
    said = str(raised.value)
    assert said.startswith(f"scenario 'theirs' ({file}:{line}) would not be run: another one has taken its name, or ")


def test_a_wrong_declaration_leaves_the_other_files(tmp_path: Path) -> None:
    one = "from reactive_runtime import Flow\nfrom reactive_runtime.stress import scenario\n"
    (tmp_path / "a.py").write_text(f"{one}@scenario(elements=1, live=2.5)\ndef half(context): ...\n")
    (tmp_path / "b.py").write_text(f"{one}@scenario(elements=1)\ndef right(context): ...\n")
    said: list[str] = []
    assert [item.name for item in find(tmp_path, skipped=lambda _, error: said.append(str(error)))] == ["right"]
    assert "scenario 'half': live is wrong" in said[0]
    assert said[0].endswith(f", at {tmp_path / 'a.py'}:3")


def scenarios(folder: Path, body: str) -> list[Scenario]:
    """Those of a file, and one that is right."""
    (folder / "theirs.py").write_text(
        "from reactive_runtime import Flow\n"
        "from reactive_runtime.stress import _harness as harness, scenario\n"
        f"@scenario(elements=1)\ndef theirs(context):\n    {body}\n"
        "@scenario(elements=1)\ndef right(context):\n    return Flow.range(1)\n"
    )
    return find(folder)


def survived(
    of: list[Scenario], load: Load, recorder: Recorder, over: Callable[[Result], object] = lambda _: None
) -> Result:
    """What the load amounted to. An exit that leaves it fails the test, and does not end all tests."""
    try:
        return run(of, load, recorder, over)
    except BaseException as left:
        name = type(left).__name__
    pytest.fail(f"the load was ended by {name}")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise OSError('no database')", r"its factory \(.*theirs\.py\) raised OSError\('no database'\)"),
        ("raise TimeoutError('slow')", r"its factory \(.*theirs\.py\) raised TimeoutError\('slow'\)"),
        ("raise SystemExit(3)", r"its factory \(.*theirs\.py\) raised SystemExit\(3\)"),
        ("raise KeyboardInterrupt", r"its factory \(.*theirs\.py\) raised KeyboardInterrupt\(\)"),
        ("raise harness.OddError", r"its factory \(.*theirs\.py\) raised <OddError, whose repr raised SystemExit>"),
        ("return harness.Odd()", r"its factory \(.*theirs\.py\) raised SystemExit\(4\)"),
        ("context.feed(lambda: exit(5)); return Flow.range(1)", r"a feeder raised SystemExit\(5\)"),
        ("return 7", r"its factory \(.*theirs\.py\) returned a int, which is no publisher"),
        ("context.feed(lambda: 1 // 0); return Flow.range(1)", r"a feeder raised ZeroDivisionError"),
        (
            "broken = harness.primitives.BrokenBarrierError('theirs')\n"
            "    context.feed(lambda: (_ for _ in ()).throw(broken))\n    return Flow.range(1)",
            r"a feeder raised BrokenBarrierError\('theirs'\)",
        ),
        (
            "for _ in range(4): context.feed(lambda: None)\n    return Flow.range(1)",
            r"raised ValueError\('feed: a round has up to 3 feeders, and this is one more",
        ),
    ],
)
def test_a_scenario_that_can_not_go_on_is_named_and_the_others_go_on(
    body: str, why: str, tmp_path: Path, no_thread_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OddError(Exception):
        def __repr__(self) -> str:
            raise SystemExit(4)

    class Odd:
        @property
        def subscribe(self) -> Any:
            raise SystemExit(4)

    monkeypatch.setattr(harness, "OddError", OddError, raising=False)
    monkeypatch.setattr(harness, "Odd", Odd, raising=False)
    recorder = Recorder()
    result = survived(scenarios(tmp_path, body), Load(2, 60.0, 1), recorder, over_after(3, failures=1))
    (failure,) = result.failures
    assert (failure.scenario, failure.stuck) == ("theirs", False)
    assert re.search(why, failure.why)
    assert result.rounds >= 3
    assert result.subscriptions == len(recorder.subscriptions)
    assert {record.scenario for record in recorder.records()} >= {"right"}


def short_in(step: str, of: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """That step of a round of the scenario `of` may take no more than `seconds`.

    The others are patient: on a busy machine a step that does not hang takes long too.
    """
    call, fire, patience = harness._Caller.call, harness._Workers.fire, harness.PATIENCE
    wait_until_over = harness._Stage._wait_until_over

    def at(name: str, next_step: str) -> None:
        monkeypatch.setattr(harness, "PATIENCE", seconds if (name, next_step) == (of, step) else patience)

    def called(caller: Any, name: str, what: str, function: Any) -> Any:
        at(name, what)
        return call(caller, name, what, function)

    def fired(workers: Any, burst: Any, name: str, hint: str = "") -> None:
        at(name, "fire")
        fire(workers, burst, name, hint)
        at(name, "idle")

    def waited_for(stage: Any, no_loop: bool) -> None:
        at(stage.scenario.name, "over")
        wait_until_over(stage, no_loop)

    monkeypatch.setattr(harness._Caller, "call", called)
    monkeypatch.setattr(harness._Workers, "fire", fired)
    monkeypatch.setattr(harness._Stage, "_wait_until_over", waited_for)


@pytest.mark.parametrize(
    ("body", "step", "why", "hangs_in"),
    [
        (
            "return Flow.range(1).map(lambda n: harness.release.wait() and n).subscribe_on(context.pool(1))",
            "idle",
            "a pool is still busy after 1 s",
            "",
        ),
        (
            "harness.release.wait(); return Flow.range(1)",
            "its factory",
            "its factory did not return within 1 s",
            "theirs",
        ),
        (
            "context.feed(lambda: harness.release.wait()); return Flow.range(1)",
            "fire",
            "a round did not end within 1 s",
            "",
        ),
        ("return harness.Hangs('subscribe')", "subscribe", "subscribe did not return within 1 s", "subscribe"),
        ("return harness.Hangs('cancel')", "cancel", "cancel did not return within 1 s", "cancel"),
    ],
    ids=["a task", "the factory", "a feeder", "subscribe", "cancel"],
)
def test_what_is_stuck_is_named_with_all_stacks_and_the_others_go_on(
    body: str, step: str, why: str, hangs_in: str, tmp_path: Path, dropped: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    short_in(step, "theirs", 1.0, monkeypatch)
    release = threading.Event()
    monkeypatch.setattr(harness, "release", release, raising=False)

    class Hangs:
        """A publisher that waits for ever in one of its methods; what it waits for is never set while it is judged."""

        def __init__(self, method: str) -> None:
            self.method = method

        def subscribe(self, subscriber: Any, /) -> None:
            if self.method == "subscribe":
                release.wait()
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None: ...

        def cancel(self) -> None:
            if self.method == "cancel" and threading.current_thread().name == "caller":
                release.wait()

    monkeypatch.setattr(harness, "Hangs", Hangs, raising=False)
    try:
        result = run(scenarios(tmp_path, body), Load(4, 60.0, 1), Recorder(), over_after(3, failures=1))
    finally:
        release.set()
    (failure,) = result.failures
    said, _, place = failure.why.partition("; it is at ")
    assert (failure.scenario, failure.stuck, said) == ("theirs", True, why)
    assert re.fullmatch(rf".*\.py:\d+, in {hangs_in}" if hangs_in else "", place)
    assert "release.wait()" in failure.stacks
    assert result.rounds >= 3


def test_two_threads_that_ask_for_a_pool_get_the_same() -> None:
    class Asking:
        def __init__(self) -> None:
            self.context = Context(Recorder(), "asking")
            self.found: list[object] = []

        def actor_a(self) -> None:
            self.found.append(self.context.pool(1))

        def actor_b(self) -> None:
            self.found.append(self.context.pool(1))

        def at_end(self) -> None:
            assert len({id(finding) for finding in self.found}) == 1

    explore(Asking, strategy="bounded", bound=2, modules=["reactive_runtime.stress._declaring"]).assert_holds()


@pytest.mark.parametrize("lent", ["pool", "clock"])
def test_no_pool_is_idle_before_the_callbacks_of_a_task(lent: str) -> None:
    """A drain that went on in a callback of a timer's future was accused of lost demand."""
    context = Context(Recorder(), "theirs")
    inside, go_on = threading.Event(), threading.Event()
    executor = context.pool() if lent == "pool" else context.clock()

    def callback(future: concurrent.futures.Future[bool]) -> None:
        inside.set()
        assert go_on.wait(PATIENCE)

    begin = threading.Event()
    executor.submit(begin.wait, PATIENCE).add_done_callback(callback)
    begin.set()
    assert inside.wait(PATIENCE)
    assert not context.wait_until_idle(0.0)
    go_on.set()
    assert context.wait_until_idle(PATIENCE)
    context.close()


def test_a_cancelled_timer_does_not_keep_the_clock_busy() -> None:
    context = Context(Recorder(), "theirs")
    timers = [context.clock().schedule(1_000, int) for _ in range(3)]
    assert all(timer.cancel() for timer in timers)
    assert context.wait_until_idle(0.0)
    context.close()


def test_what_goes_to_the_hook_under_load_is_counted_and_named(tmp_path: Path) -> None:
    late = "from reactive_runtime._core.failures import dropping; dropping.error_dropped('for a test', OSError('late'))"
    right = scenarios(tmp_path, f"{late}; return Flow.range(1)")
    result = run(right, Load(2, 60.0, 1), Recorder(), over_after(2))  # a round of each
    assert result.dropped["OSError, for a test"] >= 1


def test_a_publisher_that_keeps_its_subscribers_is_reported(
    dropped: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    everyone: list[Any] = []

    class Keeps:
        def subscribe(self, subscriber: Any, /) -> None:
            everyone.append(subscriber)
            Flow.range(5).subscribe(subscriber)

    @scenario(elements=5, live=3)
    def keeps(context: Context) -> Any:
        return Keeps()

    monkeypatch.setattr(harness, "EVERY", 1)
    monkeypatch.setattr(cancellation_metrics, "PATIENCE", 0.1)
    result = run([keeps.scenario], Load(2, 60.0, 1), Recorder("run", lambda _: None), over_after(2))
    assert result.rounds == 2  # it goes on
    (failure,) = result.failures
    assert (failure.scenario, failure.rule) == ("keeps", "3.13")
    assert "3 of 3 subscribers that had cancelled can't be collected" in failure.why


def test_subscribers_leave_one_of_each_eight_rounds(dropped: list[Any]) -> None:
    """A scenario of twenty rounds was one of fourteen that had no such round: nothing looked for what is kept."""

    @scenario(elements=2)
    def brief(context: Context) -> Any:
        return Flow.range(2)

    left: list[int] = []
    for seed in range(12):
        seen: list[int] = []

        def look(so_far: Result, seen: list[int] = seen) -> bool:
            seen.append(len(so_far.cancellation_metrics["brief"].idle))
            return so_far.rounds == 16

        run([brief.scenario], Load(1, 60.0, seed), Recorder("run", lambda _: None), look)
        assert (seen[7], seen[15]) == (1, 2)
        left.append(seen.index(1))
    assert len(set(left)) > 1  # it is drawn which


def test_a_thread_that_is_slow_to_end_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop's thread has been seen to come more than a second late, on a machine with other work."""
    held = [Sink()]
    subscribers = [weakref.ref(item) for item in held]
    clock = iter([0.0, 2.0])

    def two_seconds_later() -> float:
        now = next(clock)
        if now:
            held.clear()
        return now

    monkeypatch.setattr(primitives, "monotonic", two_seconds_later)
    assert cancellation_metrics.collected(subscribers) == 0


@pytest.mark.parametrize("every", [1, 10**9])
def test_a_round_is_over_when_no_coroutine_can_signal_any_more(
    every: int, dropped: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal in the next round looked like one that came before `on_subscribe`."""
    begun: list[int] = []
    closed: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        begun.append(1)
        try:
            for n in range(200):
                yield n
                await asyncio.sleep(0)
        finally:
            try:
                await asyncio.sleep(0.05)
            finally:  # a cancel may end the sleep
                closed.append(1)

    @scenario(elements=None, live=3, settles=False)
    def numbers_of_a_loop(context: Context) -> Any:
        return Flow.from_async(numbers)

    seen: list[tuple[int, int]] = []

    def look(so_far: Result) -> bool:
        seen.append((len(begun), len(closed)))
        return so_far.rounds == 5

    monkeypatch.setattr(harness, "EVERY", every)
    result = run([numbers_of_a_loop.scenario], Load(2, 60.0, 1), Recorder("run", lambda _: None), look)
    assert result.failures == []
    assert seen[-1][0] > 0
    assert all(began == ended for began, ended in seen), seen


def test_a_coroutine_that_does_not_end_is_reported(dropped: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[asyncio.AbstractEventLoop] = []

    class Waits:
        def subscribe(self, subscriber: Any, /) -> None:
            waiting.append(eventloop.borrow())
            Flow.range(5).subscribe(subscriber)

    @scenario(elements=5, live=1)
    def waits(context: Context) -> Any:
        return Waits()

    assert eventloop.wait_until_ended(PATIENCE)  # one that an earlier test has left would not be waited for
    short_in("over", "waits", 0.5, monkeypatch)
    try:
        result = run([waits.scenario], Load(2, 60.0, 1), Recorder("run", lambda _: None), lambda _: None)
    finally:
        for loop in waiting:
            eventloop.give_back(loop)
        assert eventloop.wait_until_ended(60.0)
    (failure,) = result.failures
    assert failure.stuck
    assert failure.why == "a coroutine still runs on the event loop 0.5 s after all had cancelled"


def test_what_is_left_after_a_cancel_is_measured(dropped: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    @scenario(elements=50, live=3)
    def leaves(context: Context) -> Any:
        return Flow.from_supplier(context.opened(lambda: range(50))).subscribe_on(context.pool(2))

    monkeypatch.setattr(harness, "EVERY", 1)
    result = run([leaves.scenario], Load(2, 60.0, 1), Recorder("run", lambda _: None), over_after(8))
    facts = result.cancellation_metrics["leaves"].facts()
    assert (facts["kept"], facts["subscribers"]) == (0, 3 * facts["rounds"])
    assert 0 <= facts["idle_ms"]["p50"] <= facts["idle_ms"]["max"]
    assert 0 <= facts["closed_ms"]["p50"] <= facts["closed_ms"]["max"]


@pytest.mark.parametrize("kind", ["slow", "raising"])
def test_subscribers_that_are_slow_or_raise_break_no_rule_of_ours(kind: Any, dropped: list[Any]) -> None:
    @scenario(elements=30, live=3, subscribers=kind)
    def served(context: Context) -> Any:
        return Flow.range(30).subscribe_on(context.pool(2))

    recorder = Recorder()

    def have_raised() -> bool:
        return any("a subscriber that raises" in (record.error or "") for record in recorder.records())

    def over(so_far: Result) -> bool:
        return so_far.rounds >= 8 and (kind == "slow" or have_raised())

    result = run([served.scenario], Load(2, 60.0, 1), recorder, over)
    assert result.failures == []
    assert check(recorder.records()) == []
    assert have_raised() == (kind == "raising")


@pytest.mark.parametrize(
    ("late", "error", "told"),
    [
        (16, ValueError, "scenario: late_signals must be at most 15, not 16"),
        (-1, ValueError, "scenario: late_signals must be at least 0, not -1"),
        (1.5, TypeError, "scenario: late_signals must be an int, not float"),
        (True, TypeError, "scenario: late_signals must be an int, not bool"),
    ],
)
def test_late_signals_out_of_range_are_refused(late: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        scenario(elements=1, late_signals=late)


def test_an_endless_source_that_was_asked_for_all_says_what_helps(
    dropped: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    short_in("fire", "endless", 0.2, monkeypatch)
    monkeypatch.setitem(WORKLOADS, "all", Workload((1,), one=0, unbounded=100))
    over = threading.Event()

    @scenario(elements=None, workload="all")
    def endless(context: Context) -> Flow[int]:
        return Flow.from_iterable(iter(lambda: over.wait(0.001), True)).map(int)

    result = run([endless.scenario], Load(threads=2, seconds=60.0, seed=1), Recorder("stress"), lambda _: None)
    over.set()
    (failure,) = result.failures
    assert failure.stuck
    assert "; an endless source needs workload='requests' or 'to and fro'" in failure.why


def test_a_subscriber_that_never_hears_on_subscribe_is_judged_at_no_rest(
    dropped: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "HEARD", 0.01)

    class Forgets:
        """Calls every other subscriber."""

        def __init__(self) -> None:
            self.calls = itertools.count()

        def subscribe(self, subscriber: Any, /) -> None:
            if next(self.calls) % 2:
                Flow.range(5).subscribe(subscriber)

    @scenario(elements=5, live=4, settles=False)
    def forgets(context: Context) -> Any:
        return Forgets()

    recorder = Recorder("stress")
    result = run([forgets.scenario], Load(threads=2, seconds=0.2, seed=1), recorder, lambda _: None)
    assert result.failures == []
    assert {violation.rule for violation in check(recorder.records())} == {"1.9"}


@pytest.mark.parametrize("linked", [False, True])
def test_an_element_that_can_not_be_compared_ends_its_scenario(linked: bool, dropped: list[Any]) -> None:
    @scenario(elements=3)
    def floats(context: Context) -> Any:
        descending = Flow.from_iterable([3.0, 2.0, 1.0])
        return context.link(descending).map(lambda n: 3 - int(n)) if linked else descending

    result = run([floats.scenario], Load(threads=2, seconds=60.0, seed=1), Recorder("stress"), lambda _: None)
    (failure,) = result.failures
    assert failure.why.startswith(f"an element{' of a link' if linked else ''} is of type float, and no int: order and")
    assert not failure.stuck


def test_an_on_subscribe_that_comes_late_breaks_no_rule(dropped: list[Any]) -> None:
    @scenario(elements=5, live=2, settles=False)
    def late(context: Context) -> Flow[int]:
        return Flow.range(5).subscribe_on(elsewhere)

    class Slow(concurrent.futures.ThreadPoolExecutor):
        def submit(self, fn: Any, /, *of: Any, **named: Any) -> Any:
            return super().submit(lambda: (primitives.sleep(0.05), fn(*of, **named)))

    recorder = Recorder("stress")
    with Slow(4) as elsewhere:
        run([late.scenario], Load(threads=2, seconds=0.2, seed=1), recorder, lambda _: None)
    assert not check(recorder.records())


def test_a_publisher_that_raises_from_subscribe_is_judged_and_stops_nothing(dropped: list[Any]) -> None:
    class Raises:
        def subscribe(self, subscriber: Any, /) -> None:
            Flow.range(5).subscribe(subscriber)
            raise OSError("no database")

    @scenario(elements=5, live=3)
    def raises(context: Context) -> Any:
        return Raises()

    recorder = Recorder()
    result = run([raises.scenario], Load(2, 60.0, 1), recorder, over_after(2))
    assert result.rounds == 2
    assert {item.rule for item in check(recorder.records())} == {"1.9"}


class SilentError(Exception):
    """One of which nothing can be said."""

    def __repr__(self) -> str:
        raise SystemExit(4)


EXITS = [asyncio.CancelledError, SystemExit, GeneratorExit, KeyboardInterrupt, SilentError]


@pytest.mark.parametrize("method", ["subscribe", "request", "cancel"])
@pytest.mark.parametrize("error", EXITS)
def test_a_method_that_raises_an_exit_is_judged_and_stops_nothing(
    error: type[BaseException], method: str, dropped: list[Any]
) -> None:
    class Raises:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_subscribe(self)
            self.left("subscribe")

        def request(self, n: int, /) -> None:
            self.left("request")

        def cancel(self) -> None:
            self.left("cancel")

        def left(self, at: str) -> None:
            if at == method:
                raise error

    @scenario(elements=5, live=3)
    def raises(context: Context) -> Any:
        return Raises()

    recorder = Recorder()
    result = survived([raises.scenario], Load(2, 60.0, 1), recorder, over_after(2))
    assert result.rounds == 2
    assert result.failures == []
    assert ("1.9" if method == "subscribe" else "3.16") in {item.rule for item in check(recorder.records())}


def shared_out(costs: dict[str, tuple[float, int]], seconds: float) -> dict[str, Share]:
    """What each has had at the end of a load, where a round costs so many seconds and has so many signals."""
    shares = {name: Share() for name in costs}
    while sum(share.seconds for share in shares.values()) < seconds:
        name = next_of(list(shares), list(shares.values()), seconds)
        cost, signals = costs[name]
        shares[name].add(signals, cost)
    return shares


def test_each_scenario_has_its_least_load_and_an_equal_part_of_the_rest() -> None:
    quick = {f"quick {n}": (0.004, 500) for n in range(60)}
    had = shared_out({**quick, "few signals": (0.02, 60), "dear": (0.045, 3_000), "timer": (0.4, 10)}, 30.0)
    assert all(item.rounds >= 20 for name, item in had.items() if name != "timer")
    assert all(item.signals >= 2_000 for name, item in had.items() if name != "timer")
    assert 1.0 < had["timer"].seconds < 3.0  # it is slow by itself, and takes no more than four parts of 64
    of_the_quick = [item.seconds for name, item in had.items() if name in quick]
    assert max(of_the_quick) - min(of_the_quick) < 0.01
    assert min(of_the_quick) > 0.3


def costs_by_round(rng: random.Random, scenarios: int) -> list[list[tuple[float, int]]]:
    """Seconds and signals of each round: much noise, some that the machine held up, none that is slow by itself."""
    made = []
    for _ in range(scenarios):
        mean, signals = rng.uniform(0.3, 2.0), rng.choice((80, 300, 1_000))
        rounds = [(mean * rng.lognormvariate(0, 0.7), round(signals * rng.uniform(0.5, 1.5))) for _ in range(200)]
        made.append([(cost * (20 if rng.random() < 0.01 else 1), told) for cost, told in rounds])
    return made


def rounds_of_the_least(rounds: list[tuple[float, int]]) -> int:
    """After how many rounds this scenario has its least load."""
    signals = list(itertools.accumulate(told for _, told in rounds))
    return max(20, next(at for at, told in enumerate(signals, 1) if told >= 2_000))


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_each_has_its_least_wherever_the_time_is_enough_for_all(first: int) -> None:
    for seed in range(first, first + 100):
        rounds = costs_by_round(random.Random(seed), 16)
        needed = sum(cost for item in rounds for cost, _ in item[: rounds_of_the_least(item)])
        scale = 0.99 * 30.0 / needed  # so it just fits
        shares = {name: Share() for name in range(16)}
        spent = 0.0
        while spent < 30.0:
            name = next_of(list(shares), list(shares.values()), 30.0)
            cost, signals = rounds[name][shares[name].rounds]
            shares[name].add(signals, cost * scale)
            spent += cost * scale
        assert short(shares, 30.0) == [], seed
        assert all(share.rounds >= 20 and share.signals >= 2_000 for share in shares.values())


def test_those_that_are_short_of_their_least_are_named() -> None:
    had = {"enough": Share(20, 2_000), "few rounds": Share(19, 9_000), "few signals": Share(90, 1_999)}
    assert short(had, 30.0) == ["few rounds", "few signals"]
    assert short(had, 15.0) == []


def test_the_benchmark_of_the_load_fails_where_one_is_short_that_is_not_slow_by_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = find(FOLDER, ["range_on_a_thread", "slow_subscribers"])
    enough, few = Share(20, 2_000), Share(19, 9_000)
    assert all_have_their_least(there, Result(load={"range_on_a_thread": enough, "slow_subscribers": few}), 30.0)
    assert "fewer than 20 rounds or 2,000 signals: none\n" in capsys.readouterr().out
    assert not all_have_their_least(there, Result(load={"range_on_a_thread": few, "slow_subscribers": enough}), 30.0)
    assert "signals: range_on_a_thread (19 rounds, 9,000 signals)\n" in capsys.readouterr().out


def test_a_first_round_that_was_held_up_makes_no_scenario_a_slow_one() -> None:
    shares = {f"scenario {n}": Share() for n in range(40)}
    shares["scenario 0"].add(100, 6.0)  # twice what a slow one gets in all
    while sum(share.seconds for share in shares.values()) < 30.0:
        shares[next_of(list(shares), list(shares.values()), 30.0)].add(100, 0.02)
    assert short(shares, 30.0) == []


def test_what_costs_less_gets_more_rounds_and_not_less_time() -> None:
    had = shared_out({"dear": (0.1, 3_000), "quick": (0.001, 500)}, 30.0)
    its_least = 20 * 0.1
    assert had["dear"].seconds - had["quick"].seconds == pytest.approx(its_least, abs=0.2)
    assert had["quick"].rounds > 50 * had["dear"].rounds


def test_a_load_that_is_longer_or_shorter_has_as_much_more_or_less_of_each() -> None:
    costs = {**{f"quick {n}": (0.004, 500) for n in range(30)}, "few signals": (0.02, 60)}
    few, many = (shared_out(costs, seconds)["few signals"].signals for seconds in (6.0, 60.0))
    assert few >= 2_000 * 6 / 30
    assert many >= 2_000 * 60 / 30


def test_a_round_that_the_machine_held_up_takes_nothing_from_its_scenario() -> None:
    shares = {name: Share() for name in ("held up", "not")}
    shares["held up"].add(100, 5.0)
    while sum(share.seconds for share in shares.values()) < 15.0:
        name = next_of(list(shares), list(shares.values()), 15.0)
        shares[name].add(100, 0.02)
    assert shares["held up"].rounds > 0.9 * shares["not"].rounds


def test_what_a_run_amounts_to_is_counted_by_scenario(dropped: list[Any]) -> None:
    recorder = Recorder()
    result = run(find(FOLDER, ["range_*", "merged"]), Load(3, 60.0, 1), recorder, over_after(6))
    found = Counter(record.scenario for record in recorder.records())
    assert {name: item.signals for name, item in result.load.items()} == found
    assert result.signals == sum(found.values())
    assert result.rounds == sum(item.rounds for item in result.load.values())


def test_what_a_round_fires_depends_on_the_seed_the_scenario_and_its_number_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: dict[str, list[float]] = {}

    def throws(stage: Any, workers: object, caller: object, rng: random.Random) -> None:
        drawn.setdefault(stage.scenario.name, []).append(rng.random())

    monkeypatch.setattr(harness._Stage, "round", throws)
    rounds: list[list[float]] = []
    for names in (["merged"], ["merged", "zipped", "rails"]):
        drawn.clear()
        three = run(find(FOLDER, names), Load(1, 60.0, 5), Recorder(), lambda _: len(drawn.get("merged", ())) == 3)
        rounds.append(drawn["merged"])
        assert set(three.load) == set(names)
    assert rounds[0] == rounds[1]
    assert len(set(rounds[0])) == 3


def test_the_load_ends_when_the_one_who_looks_on_says_so() -> None:
    result = run(find(FOLDER, ["a_trampoline"]), Load(2, 60.0, 1), Recorder(), over_after(2))
    assert result.rounds == 2


def test_switch_intervals_are_of_four_kinds_and_none_uses_the_time_up_by_itself() -> None:
    """Each thread that waits wakes up once an interval: at five microseconds sixteen of them do nothing else."""
    assert len(set(harness.INTERVALS)) >= 4
    assert min(harness.INTERVALS) >= 5e-5
    assert max(harness.INTERVALS) >= 5e-3


def test_a_look_for_kept_subscribers_does_not_go_through_all_that_the_process_has(
    dropped: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[tuple[int, ...]] = []
    collect = gc.collect

    def counted(*generation: int) -> int:
        looks.append(generation)
        return collect(*generation)

    monkeypatch.setattr(gc, "collect", counted)
    monkeypatch.setattr(harness, "EVERY", 1)
    result = run(find(FOLDER, ["fused_steps"]), Load(2, 60.0, 1), Recorder("run", lambda _: None), over_after(5))
    assert result.cancellation_metrics["fused_steps"].kept == 0
    assert looks == [(0,)] * 5
    assert gc.isenabled()


def over_after(rounds: int, failures: int = 0) -> Callable[[Result], bool]:
    """End the load after so many rounds and failures, however long they take."""
    return lambda result: result.rounds >= rounds and len(result.failures) >= failures
