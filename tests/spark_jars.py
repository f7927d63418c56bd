"""What tests of connectors need beside the project: jars, by Maven, and other versions of PySpark, by pip.

They are fetched once, into `build/connectors`; `python tests/spark_jars.py` fetches all of them. A connector is built
for one version of Spark, and runs with no other: Delta's newest with 4.2, Iceberg's with 4.1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECTS = Path(__file__).parent / "spark" / "jars"
BUILD = Path(__file__).parent.parent / "build" / "connectors"
PYSPARK = {"delta": "4.2.1", "iceberg": "4.1.4"}
"""For which version a connector is, where that is not the one that the project is tested with."""


def missing() -> str:
    """What is needed here and not there; empty if nothing is."""
    return "" if shutil.which("mvn") else "the tests of connectors need Maven: there is no mvn on the PATH"


def jars(name: str) -> list[str]:
    """The jars of a connector, or of the broker; they are resolved if that is not done yet."""
    classpath, project = BUILD / f"{name}.classpath", PROJECTS / f"{name}.xml"
    if not classpath.exists() or classpath.stat().st_mtime < project.stat().st_mtime:
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={classpath}"]
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(project), *goal], capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        os.utime(classpath)
    return classpath.read_text().split(os.pathsep)


def pyspark(name: str) -> dict[str, str]:
    """The environment in which the PySpark is found that a connector is for; that is installed if it is not yet."""
    version = PYSPARK.get(name)
    if version is None:
        return dict(os.environ)
    to = BUILD / f"pyspark-{version}"
    if not to.exists():
        draft = to.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(draft)]
        subprocess.run([*command, f"pyspark=={version}"], timeout=1200, check=True)
        draft.rename(to)
    return {**os.environ, "PYTHONPATH": str(to)}


def begun(name: str, program: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """A process that runs a program with a connector: its first argument is the jars, for `spark.jars`."""
    command = [sys.executable, "-c", program, ",".join(jars(name)), *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=pyspark(name), **{**pipes, **options})  # type: ignore[call-overload,no-any-return]


def done(name: str, program: str, *arguments: object) -> list[str]:
    """The lines that it prints; what it says on stderr is in the error where it fails."""
    process = begun(name, program, *arguments)
    out, err = process.communicate(timeout=540)
    assert process.returncode == 0, err[-5000:]
    return out.splitlines()


if __name__ == "__main__":
    BUILD.mkdir(parents=True, exist_ok=True)
    if missing():
        sys.exit(missing())
    for project in sorted(PROJECTS.glob("*.xml")):
        print(f"{project.stem}: {len(jars(project.stem))} jars", flush=True)
        pyspark(project.stem)
