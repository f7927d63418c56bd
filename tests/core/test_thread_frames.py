"""A look at all threads ends, whatever the collector of garbage finds meanwhile."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import reactive_runtime
from reactive_runtime._support.thread_frames import thread_frames
from reactive_runtime.explore import explore

COLLECTING_INSIDE = """
import faulthandler, gc, sys, threading
from reactive_runtime._support.thread_frames import thread_frames

class Holder:
    pass

def leave():
    holder = Holder()
    holder.itself = holder
    holder.local = threading.local()
    holder.local.name = "held"

def deep(calls, act):
    return deep(calls - 1, act) if calls else act()

faulthandler.dump_traceback_later(LIMIT, exit=True)
gc.disable()
for n in range(300):
    leave()
    gc.set_threshold(gc.get_count()[0] + n % 24)
    gc.enable()
    deep(20, LOOK)
    assert gc.isenabled()
    gc.disable()
print("ended")
"""


def looked(look: str, *, limit: int = 90) -> subprocess.CompletedProcess[str]:
    program = COLLECTING_INSIDE.replace("LOOK", look).replace("LIMIT", str(limit))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)


def test_a_collection_due_in_the_middle_of_a_look_does_not_stop_it() -> None:
    done = looked("thread_frames")
    assert done.stdout == "ended\n", done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on no allocation starts a collection")
def test_on_311_the_same_look_without_the_guard_hangs() -> None:
    assert "Timeout" in looked("sys._current_frames", limit=3).stderr


def test_each_thread_is_there_with_the_frame_it_is_in() -> None:
    here, gone = threading.Event(), threading.Event()

    def waits() -> None:
        here.set()
        gone.wait()

    thread = threading.Thread(target=waits)
    thread.start()
    here.wait()
    try:
        frame = thread_frames()[thread.ident or 0]
        while frame.f_code.co_name != "waits":
            assert frame.f_back is not None
            frame = frame.f_back
        assert threading.get_ident() in thread_frames()
    finally:
        gone.set()
        thread.join()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        thread_frames()
        assert not gc.isenabled()
    finally:
        gc.enable()
    thread_frames()
    assert gc.isenabled()


def test_all_of_the_package_looks_through_the_guard() -> None:
    package = Path(reactive_runtime.__file__).parent
    unguarded = [
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if re.search(r"sys\._current_(frames|exceptions)\(", file.read_text()) and file.stem != "thread_frames"
    ]
    assert unguarded == []


def test_the_explorer_takes_no_look_for_a_step_of_the_program() -> None:
    """It looks where each thread is when none can go on; a step of its own would make each run another one."""

    class Waits:
        def __init__(self) -> None:
            self.come = threading.Event()

        def actor_waits(self) -> None:
            self.come.wait()

    result = explore(Waits, schedules=20)
    assert result.failure is not None, result
    assert "no thread can go on" in result.failure.message
