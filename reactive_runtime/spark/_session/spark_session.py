"""The Spark session: embedded by default, quiet, and whatever a user passes goes through."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import MissingDependencyError, ReactiveError, SparkError
from reactive_runtime.spark._session.spark_errors import is_connected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "BRIEF",
    "JUDGING",
    "is_there",
    "java_home",
    "literal",
    "python_of",
    "session",
    "settings_of",
    "workers_can",
]

BRIEF: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""Settings for a session that has little to do: the JVM compiles quickly, and never twice. A first verdict comes in
three quarters of the time; a long one would be slower."""

JUDGING: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "100000"}
"""Settings for a session that judges any DataFrame: each batch that goes to a worker has its cost, and records are
narrow."""

_LEAST_JAVA: Final = 17

_QUIET: Final = Path(__file__).with_name("log4j2.properties")

_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "48",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.warehouse.dir": str(Path(os.environ.get("TMPDIR", "/tmp")) / "reactive-runtime-warehouse"),
}


_LOOPBACK: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""For masters on this machine. On a cluster Spark finds the address at which executors reach the driver."""

_ON_LOOPBACK: Final = re.compile(r"local\b.*|spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?")
"""Masters on this machine."""


def session(master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process: the one that is there, as it is, or one that is made now.

    Workers of one that is made use this very interpreter, unless `spark.pyspark.python` names another; where the master
    is on another machine, PYSPARK_PYTHON may name it too. Nothing is left in `os.environ`.

    Args:
        master: Spark's own: `local[2]`, `spark://…`. One that is there keeps its own.
        conf: Any `spark.*` settings, which win over those of this package. Of one that is there they are set where that
            can be done while it runs, and no others.

    Returns:
        The session.

    Raises:
        MissingDependencyError: In one line, where there is no pyspark, or no Java of version 17 or newer.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError("Spark needs pyspark: pip install 'reactive-runtime[spark]'") from error
    builder = SparkSession.builder
    if is_there():
        for key, value in (conf or {}).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    java_home()
    settings = {**_DEFAULTS, **(_LOOPBACK if _ON_LOOPBACK.fullmatch(master) else {}), **(conf or {})}
    quiet = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
    settings["spark.driver.extraJavaOptions"] = f"{quiet} {settings.get('spark.driver.extraJavaOptions', '')}".strip()
    builder = builder.master(master).appName("reactive_runtime")
    for key, value in settings.items():
        builder = builder.config(key, value)
    # The settings of a builder come too late for the driver's JVM, which reads its own as it starts.
    memory, options = settings["spark.driver.memory"], shlex.quote(settings["spark.driver.extraJavaOptions"])
    arguments = f"--driver-memory {memory} --driver-java-options {options} pyspark-shell"
    variables = {"PYSPARK_PYTHON": python_of(master, settings), "PYSPARK_DRIVER_PYTHON": sys.executable}
    if master.startswith("local"):
        variables["SPARK_LOCAL_IP"] = settings["spark.driver.bindAddress"]
    with _environment(variables | {"PYSPARK_SUBMIT_ARGS": os.environ.get("PYSPARK_SUBMIT_ARGS", arguments)}):
        return builder.getOrCreate()


def python_of(master: str, settings: Mapping[str, str]) -> str:
    """The interpreter of the workers of a session."""
    elsewhere = None if _ON_LOOPBACK.fullmatch(master) else os.environ.get("PYSPARK_PYTHON")
    return settings.get("spark.pyspark.python") or elsewhere or sys.executable


def is_there() -> bool:
    """Whether this process has a session already: `session` gives that one."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import get_active_spark_context

    if SparkSession.getActiveSession() is not None:
        return True
    try:  # one that another thread has made is the active one there only
        get_active_spark_context()
    except RuntimeError:
        return False
    return True


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The variables, for as long as the block runs: the JVM and the context read them as they start."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_NEEDED: Final = ("reactive_runtime", "pyarrow")

_ASKED: Final = f"""
import sys
from importlib.util import find_spec
print(*sys.version_info[:2], *(name for name in {_NEEDED} if find_spec(name) is None))
"""


def workers_can(what: str, of: SparkSession) -> None:
    """SparkError where the workers of a session on this machine can't run what they are sent.

    A session that the user has made takes `python3` where PYSPARK_PYTHON is not set, whatever that is. A worker would
    fail, with an error that does not say so. The interpreter is asked once. Elsewhere than here it is not.
    """
    if is_connected(of) or not str(of.sparkContext.master).startswith("local"):
        return
    python = of.sparkContext.pythonExec
    if python == sys.executable:
        return
    why = _unfit(python)
    if why:
        raise SparkError(
            f"{what}: the workers of this session run {python}, {why}: set PYSPARK_PYTHON to {sys.executable} before"
            " the session is made, or have it made by reactive_runtime.spark.session()"
        )


@lru_cache(maxsize=16)
def _unfit(python: str) -> str:
    """Why an interpreter does not do for workers; empty where it does."""
    try:
        answer = subprocess.run([python, "-c", _ASKED], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"which can't be run ({error})"
    ours = [str(part) for part in sys.version_info[:2]]
    if answer[:2] != ours:
        return f"which is Python {'.'.join(answer[:2])}, and this is {'.'.join(ours)}"
    return f"which has no {' and no '.join(answer[2:])}" if answer[2:] else ""


def settings_of(conf: Iterable[str] | None, packages: Iterable[str] | None) -> dict[str, str]:
    """The `spark.key=value` and `group:artifact:version` of a command line as settings for `session`.

    ReactiveError names what is neither.
    """
    settings = dict(_setting(text) for text in conf or ())
    wanted = list(packages or ())
    for text in wanted:
        if text.count(":") != 2 or not all(text.split(":")):
            raise ReactiveError(f"--packages {text!r}: should be group:artifact:version, as Maven has it")
    if wanted:
        already = settings.get("spark.jars.packages")
        settings["spark.jars.packages"] = ",".join([already, *wanted] if already else wanted)
    return settings


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise ReactiveError(f"--conf {text!r}: should be spark.key=value")
    return key, value


def local_path(path: Path) -> str:
    """The path of what is on this machine for Spark, which takes a plain one for one of its default file system."""
    return f"file://{path.absolute()}"


def literal(path: Path) -> str:
    """The same for a reader of Spark, which takes a plain one for a pattern."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", local_path(path))


def java_home() -> str:
    """The Java that Spark will use; MissingDependencyError if there is none, or one too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    how = "install it (Debian: apt-get install openjdk-17-jre-headless), or point JAVA_HOME at it"
    if java is None or not Path(java).exists():
        raise MissingDependencyError(f"Spark needs Java {_LEAST_JAVA} or newer, and there is none: {how}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    if found is None or int(found[1]) < _LEAST_JAVA:
        version = found[1] if found else "of unknown version"
        raise MissingDependencyError(f"Spark needs Java {_LEAST_JAVA} or newer, and {java} is {version}: {how}")
    return java


at_home("reactive_runtime.spark", session)
