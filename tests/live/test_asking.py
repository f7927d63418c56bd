"""`ps` asks a running process: what it answers, whom it answers, and one line for each process that gives no answer."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from sinks import PATIENCE, submit_until, until

from reactive_runtime import Flow, live
from reactive_runtime._cli._exits import BROKEN, CLEAN, UNUSABLE, USAGE
from reactive_runtime.live import _socket

STUCK = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime import Flow

never = threading.Event()
begun = threading.Event()

def fetch(n):
    begun.set()
    never.wait()
    return n

pools = [ThreadPoolExecutor(1, name) for name in ("io", "cpu")]
flow = Flow.range(9).subscribe_on(pools[0]).map(fetch).publish_on(pools[1], prefetch=2).map(str)
handle = flow.subscribe(print)
drain = handle._subscription
begun.wait()
drain.lock.acquire()  # a thread that is stuck may hold it
while drain._busy:  # the thread of the other pool is about to leave
    drain.lock.release()
    drain.lock.acquire()
print("ready", flush=True)
sys.stdin.read()
import os
os._exit(0)
"""


@contextmanager
def running(code: str, folder: Path | None = None, **more: str) -> Iterator[subprocess.Popen[str]]:
    """A process, once it has printed `ready`. Its input ends it."""
    environment = {**os.environ, **more}
    if folder is not None:
        environment[_socket.VARIABLE] = str(folder)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def command(*arguments: object) -> tuple[int, str, str]:
    """The status of `reactive-runtime`, its output, and its errors."""
    done = subprocess.run(
        [sys.executable, "-m", "reactive_runtime", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sockets"


@pytest.fixture
def opened(folder: Path) -> Iterator[Path]:
    yield live.open(folder)
    live.close()


def test_it_answers_though_pools_and_a_lock_are_stuck(folder: Path) -> None:
    with running(STUCK, folder) as process:
        status, text, errors = command("ps", process.pid, "--folder", folder)
        assert (status, errors) == (CLEAN, "")
        assert "1 live flow, 1 stalled" in text
        assert "fetch at <string>:11" in text
        assert "range(9) map(fetch)" in text
        assert "demand 2" in text


MANY_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
from reactive_runtime import live
live.open(os.environ["FOLDER"])
print("ready", flush=True)
sys.stdin.read()
"""


def test_it_answers_in_a_process_with_many_files(folder: Path) -> None:
    with running(MANY_FILES, FOLDER=str(folder)) as process:
        assert live.ask(process.pid, folder).flows == ()


def test_a_look_that_fails_leaves_the_socket_open(opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_socket, "snapshot", lambda: 1 // 0)
        with pytest.raises(live.LiveError, match="could not look at its flows"):
            live.ask(os.getpid(), opened.parent)
    assert live.ask(os.getpid(), opened.parent).flows == ()


def test_json_has_the_fields_and_a_status_for_health(folder: Path) -> None:
    with running(STUCK, folder) as process:
        status, text, errors = command("ps", process.pid, "--folder", folder, "--json", "--fail-after", "0.1")
        assert status == BROKEN
        assert errors.startswith("reactive-runtime: flow ")
        fields = json.loads(text)
        assert fields["pid"] == process.pid
        (flow,) = fields["flows"]
        assert flow["state"] == "stalled"
        assert flow["stages"][1]["runs_on"] == 'pool "io"'
        assert command("ps", process.pid, "--folder", folder, "--fail-after", "10000")[0] == CLEAN


def test_a_snapshot_is_the_same_after_json(opened: Path) -> None:
    with Flow.range(9).subscribe(lambda element: None, demand=2):
        found = live.ask(os.getpid(), opened.parent)
    assert live.Snapshot.from_json(found.to_json()) == found
    assert [stage.elements for flow in found.flows for stage in flow.stages] == [2]
    with pytest.raises(ValueError, match="this is no snapshot of flows"):
        live.Snapshot.from_json('{"flows": [1]}')


def test_folder_and_socket_are_closed_to_others(opened: Path) -> None:
    assert opened.parent.stat().st_mode & 0o777 == 0o700
    assert opened.stat().st_mode & 0o777 == 0o600


def test_a_second_call_keeps_the_socket(opened: Path) -> None:
    assert live.open() == opened


def test_close_removes_the_socket_and_ends_the_thread(folder: Path) -> None:
    path = live.open(folder)
    live.close()
    live.close()
    assert not path.exists()
    with pytest.raises(live.LiveError, match="has no socket"):
        live.ask(os.getpid(), folder)


def test_another_user_gets_nothing(opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def another_user(connection: socket.socket) -> int:
        mine = threading.current_thread() is threading.main_thread()
        answered.set()
        return os.geteuid() if mine else os.geteuid() + 1

    monkeypatch.setattr(_socket, "peer_user", another_user)
    with pytest.raises(live.LiveError, match="has refused to answer: it runs as another user"):
        live.ask(os.getpid(), opened.parent)
    assert answered.is_set()


def test_the_socket_of_another_user_is_not_read(opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_socket, "peer_user", lambda connection: os.geteuid() + 1)
    with pytest.raises(live.LiveError, match=f"belongs to the user {os.geteuid() + 1}, and is not read"):
        live.ask(os.getpid(), opened.parent)


def test_the_user_at_the_other_end_is_known() -> None:
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert _socket.peer_user(here) in (os.geteuid(), None)


@pytest.mark.parametrize(("mode", "said"), [(0o755, "is open to other users: chmod 700"), (0o770, "is open to other")])
def test_an_open_folder_is_refused(tmp_path: Path, mode: int, said: str) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(live.LiveError, match=said):
        live.open(tmp_path)


def test_a_link_or_a_file_is_refused_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(live.LiveError, match="is no folder"):
            live.open(tmp_path / name)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(live.LiveError, match="can't be made"):
        live.open(tmp_path / "no" / "such")


def test_the_variable_with_a_bad_folder_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", "from reactive_runtime import Flow; print(list(Flow.range(2)))"],
        capture_output=True, text=True, check=True, timeout=PATIENCE,
        env={**os.environ, _socket.VARIABLE: str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "[0, 1]\n"
    (line,) = done.stderr.splitlines()
    assert "is open to other users" in line


def test_without_the_variable_nothing_is_imported() -> None:
    code = "import sys; from reactive_runtime import Flow; print([m for m in sys.modules if '.live' in m])"
    environment = {name: value for name, value in os.environ.items() if name != _socket.VARIABLE}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[]\n"


def ended() -> int:
    """The PID of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_pid_that_is_none_is_one_line(folder: Path) -> None:
    for pid, said in ((ended(), "there is no process"), (0, "0 is no PID"), (1 << 80, "there is no process")):
        status, text, errors = command("ps", pid, "--folder", folder)
        assert (status, text, errors.count("\n")) == (UNUSABLE, "", 1)
        assert said in errors
    assert command("ps", "x")[0] == USAGE


def test_the_socket_of_a_dead_process_is_removed(folder: Path) -> None:
    pid = ended()
    folder.mkdir(mode=0o700)
    (folder / f"{pid}.sock").touch()
    with pytest.raises(
        live.LiveError, match=rf"there is no process {pid}; the socket that it has left, .*, is removed"
    ):
        live.ask(pid, folder)
    assert not (folder / f"{pid}.sock").exists()


def test_a_socket_of_an_earlier_process_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / f"{os.getpid()}.sock"))
    with pytest.raises(live.LiveError, match="an earlier process has left"):
        live.ask(os.getpid(), folder)
    assert live.open(folder).exists()  # it takes the place
    try:
        assert live.ask(os.getpid(), folder).pid == os.getpid()
    finally:
        live.close()


def test_a_process_without_the_package_is_one_line(folder: Path) -> None:
    with running("print('ready', flush=True); input()") as process:
        status, text, errors = command("ps", process.pid, "--folder", folder)
        assert (status, text, errors.count("\n")) == (UNUSABLE, "", 1)
        assert "has no socket" in errors
        assert command("top", process.pid, "--folder", folder)[::2] == (UNUSABLE, errors)


def test_a_process_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def refused(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    with pytest.raises(live.LiveError, match="process 1 belongs to another user: ask as that user"):
        live.ask(1, folder)


def test_a_stopped_process_gives_no_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_socket, "ANSWER", 0.2)
    with running(STUCK, folder) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(live.LiveError, match=r"has given no answer in .*: it is stopped"):
            live.ask(process.pid, folder)


def test_a_client_that_reads_nothing_holds_no_other_up(opened: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(opened))
        assert live.ask(os.getpid(), opened.parent).pid == os.getpid()


FORKS = """
import os, sys
from reactive_runtime import Flow, live
handle = Flow.range(9).subscribe(lambda n: None, demand=1)
child = os.fork()
if not child:
    try:
        live.ask(os.getpid(), sys.argv[1])
    except live.LiveError as error:
        print("child", "has no socket" in str(error), flush=True)
    path = live.open(sys.argv[1])
    print("child", live.ask(os.getpid(), sys.argv[1]).pid == os.getpid(), flush=True)
    live.close()
    os._exit(0)
os.waitpid(child, 0)
print("parent", live.ask(os.getpid(), sys.argv[1]).pid == os.getpid(), flush=True)
"""


def test_a_forked_child_has_none_until_it_opens_its_own(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, str(folder)],
        capture_output=True, text=True, check=True, timeout=PATIENCE, env={**os.environ, _socket.VARIABLE: str(folder)},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["child True", "child True", "parent True"]
    assert list(folder.iterdir()) == []  # the parent has removed its own at its end


DUMPS = """
import sys, time
from reactive_runtime import Flow, live
handle = Flow.range(9).subscribe(lambda n: None, demand=1)
live.dump_on_signal()
print("ready", flush=True)
sys.stdin.readline()
"""


def test_a_signal_dumps_while_the_main_thread_waits() -> None:
    with running(DUMPS) as process:
        process.send_signal(signal.SIGUSR1)
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
    assert "1 live flow, 1 stalled" in lines[0]
    assert "no demand from" in lines[2]


def test_a_dump_goes_to_a_file_until_it_is_taken_away() -> None:
    written: list[str] = []

    class File:
        def write(self, text: str, /) -> None:
            written.append(text)

    take_away = live.dump_on_signal(signal.SIGUSR2, file=File())
    with pytest.raises(ValueError, match="dumps already"):
        live.dump_on_signal(signal.SIGUSR2)
    os.kill(os.getpid(), signal.SIGUSR2)
    until(lambda: len(written) == 1)
    take_away()
    take_away()
    live.dump_on_signal(signal.SIGUSR2, file=File())()
    assert written[0].startswith(f"process {os.getpid()}: ")


@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "has a handler already"), (signal.SIGKILL, "can't have")])
def test_a_signal_that_is_taken_is_refused(number: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        live.dump_on_signal(number)


def test_a_late_sink_names_the_cause() -> None:
    over, inside = threading.Event(), threading.Event()

    def slow(n: int) -> int:
        inside.set()
        over.wait()
        return n

    with ThreadPoolExecutor(1, "io") as io:
        submit_until(io, inside)
        try:
            with pytest.raises(TimeoutError) as raised:
                Flow.range(9).map(slow).subscribe_on(io).block(timeout=0.05)
        finally:
            over.set()
    (note,) = raised.value.__notes__
    assert note.startswith("why it stood still: `map(")
    assert "slow at" in note


TIMES_OUT = """
import threading
from reactive_runtime import Flow

def test_it():
    with Flow.range(9).subscribe(lambda n: None, demand=1):
        threading.Event().wait()
"""


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_the_dump_of_a_test_that_times_out_has_the_flows(tmp_path: Path, method: str) -> None:
    (tmp_path / "test_it.py").write_text(TIMES_OUT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", "-p", "pytest_timeout", "-p",
         "pytest_reactive_runtime", "--timeout", "5", f"--timeout-method={method}"],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=PATIENCE,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    text = done.stdout + done.stderr
    assert done.returncode == 1
    assert "Live flows (reactive_runtime)" in text
    assert "no demand from subscriber made of functions" in text


def test_within_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="within must be a number of seconds from 0"):
        live.snapshot(within=-1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: live.snapshot(within="1"), "snapshot: within must be a number of seconds, not str"),  # type: ignore[arg-type]
        (lambda: live.ask("1"), "live.ask: pid must be an int, not str"),  # type: ignore[arg-type]
        (lambda: live.ask(1, 2), "live: folder must be a str or an os.PathLike of one, not int"),  # type: ignore[arg-type]
        (lambda: live.open(b"x"), "live: folder must be a str or an os.PathLike of one, not bytes"),  # type: ignore[arg-type]
    ],
)
def test_an_argument_of_a_wrong_type_is_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def test_a_timer_is_idle_and_no_stall() -> None:
    with Flow.interval(3600).subscribe(lambda n: None):
        (flow,) = live.snapshot().flows
    assert (flow.state, flow.cause and flow.cause.kind) == ("idle", "timer")
    assert live.Snapshot(1, (flow,)).stalled == ()


def test_a_look_calls_no_repr_of_a_function(opened: Path) -> None:
    called: list[str] = []

    class Parse:
        def __call__(self, n: int) -> int:
            return n

        def __repr__(self) -> str:
            called.append("repr")  # it might wait for a lock that a stuck thread holds
            raise OSError("no words")

    with Flow.range(9).map(Parse()).map(partial(max, Parse()(1))).subscribe(lambda n: None, demand=1):
        (flow,) = live.snapshot().flows
        (asked,) = live.ask(os.getpid(), opened.parent).flows
    assert flow.name == asked.name == "range(9) map(Parse) map(partial(max))"
    assert called == []
