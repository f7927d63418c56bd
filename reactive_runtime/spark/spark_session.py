"""The Spark session: embedded by default, quiet, and whatever a user passes goes through."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reactive_runtime.errors import MissingDependencyError, ReactiveError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["BRIEF", "JUDGING", "java_home", "session", "settings_of"]

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
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "48",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.warehouse.dir": str(Path(os.environ.get("TMPDIR", "/tmp")) / "reactive-runtime-warehouse"),
}


def session(master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process, made if there is none yet.

    Workers use this very interpreter.

    Args:
        master: Spark's own: `local[2]`, `spark://…`.
        conf: Any `spark.*` settings, which win over those of this package.

    Returns:
        The session.

    Raises:
        MissingDependencyError: In one line, where there is no pyspark, or no Java of version 17 or newer.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError("Spark needs pyspark: pip install 'reactive-runtime[spark]'") from error
    java_home()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {**_DEFAULTS, **(conf or {})}
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = settings["spark.driver.bindAddress"]
    quiet = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
    settings["spark.driver.extraJavaOptions"] = f"{quiet} {settings.get('spark.driver.extraJavaOptions', '')}".strip()
    builder = SparkSession.builder.master(master).appName("reactive_runtime")
    for key, value in settings.items():
        builder = builder.config(key, value)
    # What is set by a builder is too late for the driver's JVM, which reads its own settings as it starts.
    memory, options = settings["spark.driver.memory"], shlex.quote(settings["spark.driver.extraJavaOptions"])
    arguments = f"--driver-memory {memory} --driver-java-options {options} pyspark-shell"
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", arguments)
    return builder.getOrCreate()


def settings_of(conf: Iterable[str] | None, packages: Iterable[str] | None) -> dict[str, str]:
    """What is given on a command line, `spark.key=value` and `group:artifact:version`, as settings for `session`.

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
