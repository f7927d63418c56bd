"""The same on a cluster: an executor in a process of its own; at night two workers, one of which is lost."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path

import pyspark
import pytest
from sinks import PATIENCE, until

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]

DIRECTIONS = """
import sys, threading
from pathlib import Path
from reactive_runtime import Flow
from reactive_runtime.spark import TaskMetrics, map_flow, session
from reactive_runtime.spark._session.spark_session import BRIEF
from reactive_runtime.picklable import Threads

folder = Path(sys.argv[2])
spark = session(sys.argv[1], {**BRIEF, "spark.executor.memory": "512m", "spark.driver.memory": "1g",
                              "spark.sql.shuffle.partitions": "2", "spark.task.maxFailures": "2"})
metrics = TaskMetrics(spark)
pool = Threads(4)
twice = lambda row: {"n": 2 * row["id"]}
fn = lambda rows: rows.map_parallel(twice, pool, concurrency=4)
doubled = map_flow(spark.range(0, 1000, 1, 4), fn, "n long", metrics=metrics)
print(sum(row["n"] for row in Flow.from_dataframe(doubled)), metrics.given, flush=True)
written = Flow.range(100).map(lambda n: (n,)).to_spark(spark, "n long", batch_rows=40)
print(written.parquet(folder / "out").result(), flush=True)
print(spark.read.parquet(str(folder / "out")).count(), flush=True)
"""

LOSSES = """
def lost(batches):
    import os, pathlib, threading
    mine = pathlib.Path(where) / "began"
    try:
        mine.touch(exist_ok=False)
    except FileExistsError:
        yield from batches
        return
    (pathlib.Path(where) / "worker").write_text(str(os.getppid()))
    threading.Event().wait(600)

def always(batches):
    import os, pathlib, signal
    status = pathlib.Path(f"/proc/{os.getppid()}/status").read_text()
    executor = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
    os.kill(executor, signal.SIGKILL)
    yield from batches

def told(what):
    try:
        what()
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)

where = str(folder)
again = Flow.from_dataframe(spark.range(0, 1000, 1, 4).mapInArrow(lost, "id long"))
print(sum(row["id"] for row in again), flush=True)
told(lambda: list(Flow.from_dataframe(spark.range(0, 10, 1, 1).mapInArrow(always, "id long"))))
rows, stream = Flow.just((1,)).to_spark(spark, "n long"), spark.readStream.format("rate").load()
spark.stop()
told(lambda: list(Flow.from_dataframe(doubled)))
told(lambda: list(Flow.from_stream(stream)))
told(lambda: rows.parquet(folder / "never").result())
told(lambda: rows.stream(folder / "never"))
told(lambda: map_flow(doubled, fn, "n long"))
"""


@contextmanager
def running(name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's own programs, until it is killed."""
    command = [str(Path(pyspark.__path__[0]) / "bin" / "spark-class"), name, *arguments]
    there = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=there, start_new_session=True
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # the one that was lost
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def a_port() -> int:
    with socket.socket() as item:
        item.bind(("127.0.0.1", 0))
        port: int = item.getsockname()[1]
        return port


def listening(port: int) -> bool:
    with socket.socket() as item:
        return item.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def cluster(folder: Path, count: int) -> Iterator[tuple[str, list[int]]]:
    """A master and so many workers; gives the address, and the processes of the workers."""
    port, master = a_port(), "org.apache.spark.deploy.master.Master"
    address = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        stack.enter_context(running(master, "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(a_port())))
        until(lambda: listening(port))
        workers = []
        for number in range(count):
            places = ("--work-dir", str(folder / f"work-{number}"), "--webui-port", str(a_port()))
            kind = "org.apache.spark.deploy.worker.Worker"
            begun = stack.enter_context(running(kind, "--cores", "1", "--memory", "1g", *places, address))
            workers.append(begun.pid)
        yield address, workers


@contextmanager
def driving(program: str, address: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The program of a driver, until it has ended."""
    driver = subprocess.Popen(
        [sys.executable, "-c", program, address, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield driver
    finally:
        driver.kill()
        driver.wait()


def test_elements_go_in_all_directions_on_a_cluster(tmp_path: Path) -> None:
    with driving(DIRECTIONS, "local-cluster[1,1,1024]", tmp_path) as driver:
        told, _ = driver.communicate(timeout=PATIENCE * 4)
    assert told.splitlines() == ["999000 1000", "100", "100"]


@pytest.mark.nightly
def test_a_worker_that_is_lost_and_a_session_that_is_stopped_on_a_cluster(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, 2) as (address, workers),
        driving(DIRECTIONS + LOSSES, address, tmp_path) as driver,
    ):
        until(lambda: (tmp_path / "worker").exists() or driver.poll() is not None)
        worker = os.getpgid(parent_of(int((tmp_path / "worker").read_text())))
        os.killpg(worker, signal.SIGKILL)  # the one that the task was on, and its executor with it
        told, _ = driver.communicate(timeout=PATIENCE * 4)
    assert worker in workers
    *results, lost = told.splitlines()[:5]
    assert results == ["999000 1000", "100", "100", "499500"]
    assert lost.startswith("SparkError: from_dataframe: Job aborted due to stage failure: ")
    assert "ExecutorLostFailure" in lost
    over = "the session of Spark was stopped: make another, and its DataFrames anew"
    where = ("from_dataframe", "from_stream", "to_spark", "to_spark", "map_flow")
    assert told.splitlines()[5:] == [f"SparkError: {item}: {over}" for item in where]


PACKED = ("numpy", "numpy.libs", "pyarrow", "pyarrow.libs", "reactive_runtime")
"""The folders of packages that tasks need. The workers of a cluster have PySpark."""


def packed(folder: Path) -> Path:
    """An archive of the packages that tasks need, as docs/how-to/cluster.md says."""
    archive = folder / "packages.tar.gz"
    places = {name: Path(str(import_module(name).__file__)).parent for name in PACKED if "." not in name}
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for name in PACKED:
            place = places.get(name) or places[name.partition(".")[0]].with_name(name)
            if place.exists():
                tar.add(place, name)
    return archive


@pytest.mark.nightly
@pytest.mark.parametrize("takes", ["packages", "nothing"])
def test_a_verdict_on_a_cluster_takes_its_packages_along(takes: str, tmp_path: Path) -> None:
    """The Python of the workers has none but PySpark."""
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    sys.path.append(str(ROOT / "benchmarks"))
    try:
        from made_traces import Run, write  # type: ignore[import-not-found]
    finally:
        sys.path.pop()
    nights = tmp_path / "nights"
    write(Run("one", 8), nights)
    along = ["--conf", f"spark.archives={packed(tmp_path)}#packages", "--conf", "spark.executorEnv.PYTHONPATH=packages"]
    with cluster(tmp_path, 1) as (address, _):
        command = [sys.executable, "-m", "reactive_runtime", "verify", str(nights), "--master", address]
        settings = ["--conf", f"spark.pyspark.python={bare}", "--conf", "spark.executor.memory=512m"]
        more = along if takes == "packages" else []
        done = subprocess.run([*command, *settings, *more], capture_output=True, text=True, timeout=280, check=False)
    assert (done.returncode == 0) is (takes == "packages"), done.stdout + done.stderr


def parent_of(process: int) -> int:
    """Of a process that Python's daemon in an executor is: the executor."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:")))
