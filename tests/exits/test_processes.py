"""A child of a fork, and the end of a script: programs of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

HEAD = """
import asyncio, itertools, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime import Flow
from reactive_runtime.executors import ScheduledExecutor, SerialExecutor
async def plus(n): return n + 1
"""


def ran(body: str) -> subprocess.CompletedProcess[str]:
    code = HEAD + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False)


pytestmark = pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")


FORKED = """
pid = os.fork()
if not pid:
    {child}
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
{parent}
"""


@pytest.mark.parametrize(
    ("before", "child", "parent", "printed"),
    [
        (
            "gate = threading.Event()\n"
            "async def held(n): await asyncio.get_running_loop().run_in_executor(None, gate.wait, 30); return n\n"
            "running = Flow.range(2).flat_map(held).to_list().to_future()",
            "print(sorted(Flow.range(2).flat_map(plus).to_list().block(timeout=30)))",
            "gate.set(); print(sorted(running.result(30)))\n"
            "print(sorted(Flow.range(2).flat_map(plus).to_list().block(timeout=30)))",
            "[1, 2]\n[0, 1]\n[1, 2]\n",
        ),
        (
            "async def ticks():\n    yield 7\nprint(Flow.from_async(ticks).block(timeout=30)); sys.stdout.flush()",
            "print(Flow.from_async(ticks).to_list().block(timeout=30))",
            "print(Flow.from_async(ticks).to_list().block(timeout=30))",
            "7\n[7]\n[7]\n",
        ),
        (
            "clock = ScheduledExecutor(); late = clock.schedule(.3, lambda: os.getpid()); clock.submit(int).result()",
            "print(Flow.timer(.01, clock=clock).block(timeout=30)); clock.shutdown()",
            "print(late.result(30) == os.getpid()); "
            "print(Flow.timer(.01, clock=clock).block(timeout=30)); clock.shutdown()",
            "0\nTrue\n0\n",
        ),
        (
            "late = Flow.timer(.3).map(lambda _: os.getpid()).to_future(); Flow.timer(.01).block()",
            "print(Flow.timer(.01).block(timeout=30))",
            "print(late.result(30) == os.getpid()); print(Flow.timer(.01).block(timeout=30))",
            "0\nTrue\n0\n",
        ),
        (  # the locks of the shared clock, and that it is made under
            "def busy():\n    while True: Flow.never().timeout(9).subscribe(print).cancel()\n"
            "threading.Thread(target=busy, daemon=True).start(); time.sleep(.05)",
            "print(Flow.timer(.01).block(timeout=30))",
            "print('parent'); sys.stdout.flush(); os._exit(0)",
            "0\nparent\n",
        ),
        (  # the locks may be held by another thread at the fork
            "clock = ScheduledExecutor()\n"
            "def busy():\n    while True: clock.schedule(9, int).cancel(); Flow.just(1).flat_map(plus).block()\n"
            "threading.Thread(target=busy, daemon=True).start(); time.sleep(.05)",
            "print(Flow.timer(.01, clock=clock).block(timeout=30), Flow.just(1).flat_map(plus).block(timeout=30))",
            "print('parent'); sys.stdout.flush(); os._exit(0)",
            "0 2\nparent\n",
        ),
    ],
    ids=["coroutines", "async source", "clock", "shared clock", "shared clock in use", "while others use them"],
)
def test_coroutines_and_clocks_begin_anew_in_a_child(before: str, child: str, parent: str, printed: str) -> None:
    done = ran(before + FORKED.format(child=child, parent=parent))
    assert done.stdout == printed, done.stderr


PIPELINES = {
    "boundaries": "Flow.range(20000).subscribe_on(pool).map(lambda n: n).publish_on(pool)",
    "one boundary": "Flow.range(20000).publish_on(pool)",
    "a list": "Flow.from_iterable(list(range(20000))).subscribe_on(pool).publish_on(pool)",
    "serial": "Flow.range(20000).subscribe_on(SerialExecutor(pool)).publish_on(pool)",
    "operators": "Flow.range(20000).subscribe_on(pool).do_on_complete(lambda: None).publish_on(pool).retry(1)",
    "a generator": "Flow.from_supplier(lambda: iter(n for n in range(20000))).subscribe_on(pool)",
    "calls": "Flow.range(20000).subscribe_on(pool).map_parallel(lambda n: n, pool, chunk=50)",
    "tasks": "Flow.range(2000).subscribe_on(pool).flat_map(lambda n: Flow.just(*range(10)).subscribe_on(pool))",
}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_what_is_under_way_at_the_end_of_a_script_is_finished(pipeline: str) -> None:
    done = ran(f"""
        from reactive_runtime._core.failures import exits
        exits.GRACE = 60.0  # a busy machine may take longer than the three seconds of a stream without end
        pool = ThreadPoolExecutor(2)
        seen = []
        {PIPELINES[pipeline]}.subscribe(seen.append, on_complete=lambda: print("done", len(seen)))""")
    assert (done.stdout, done.stderr) == ("done 20000\n", "")
    assert done.returncode == 0


@pytest.mark.parametrize(
    "pipeline",
    [
        "Flow.from_supplier(itertools.count).subscribe_on(pool)",
        "Flow.from_supplier(itertools.count).subscribe_on(pool).publish_on(pool)",
        "Flow.from_supplier(itertools.count).map_parallel(lambda n: n, pool)",
        "Flow.range(2 ** 62).subscribe_on(pool)",
        "Flow.just(1).subscribe_on(pool).repeat()",
        "Flow.from_supplier(itertools.count).publish_on(SerialExecutor(pool))",
    ],
)
def test_a_flow_without_end_does_not_keep_a_script_from_its_own(pipeline: str) -> None:
    done = ran(f"""
        pool = ThreadPoolExecutor(2)
        begun = threading.Event()
        {pipeline}.subscribe(lambda n: begun.set(), on_error=lambda error: print(type(error).__name__))
        begun.wait(30)""")
    assert done.returncode == 0
    assert done.stdout == "RejectedError\n", done.stderr


def test_a_fork_on_a_thread_of_the_shared_clock_leaves_it_of_use_in_both() -> None:
    done = ran("""
        def fork(_):
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                return "parent"
            return "child"

        def told(what):
            print(what, Flow.timer(.01).to_future().result(30), flush=True)
            done.set() if what == "parent" else os._exit(0)

        done = threading.Event()
        Flow.timer(.01).map(fork).subscribe(lambda what: threading.Thread(target=told, args=(what,)).start())
        done.wait(30)""")
    assert done.stdout == "child 0\nparent 0\n", done.stderr


def test_the_shared_clock_does_not_keep_a_script_from_its_end_nor_says_anything_there() -> None:
    done = ran("""
        begun = threading.Event()
        Flow.interval(.0005).subscribe(lambda n: None)
        Flow.interval(.0005).subscribe(lambda n: (begun.set(), threading.Event().wait()))
        Flow.never().timeout(1000).subscribe(print)
        begun.wait(30)
        print("end")""")
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)


def test_an_import_begins_no_thread() -> None:
    done = ran("""
        import reactive_runtime.testing, reactive_runtime.hot
        from reactive_runtime._executors import shared_clock
        print(threading.active_count(), shared_clock._shared)
        print(list(Flow.range(2).throttle(1)), threading.active_count())""")
    assert done.stdout == "1 None\n[0] 1\n", done.stderr


def test_a_pool_that_was_shut_down_by_hand_refuses_as_ever() -> None:
    done = ran("""
        pool = ThreadPoolExecutor(2)
        pool.shutdown()
        Flow.range(3).subscribe_on(pool).subscribe(print, on_error=lambda error: print(type(error).__name__))""")
    assert done.stdout == "RejectedError\n", done.stderr
