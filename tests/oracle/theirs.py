"""Runs plans in RxJava and Reactor: one JVM for all, a line of JSON each way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Java", "missing"]

PROJECT = Path(__file__).parent / "java"
TARGET = PROJECT / "target"


def missing() -> str:
    """What is needed here and not there; empty if nothing is."""
    for program, needed in (("mvn", "Maven"), ("javac", "a JDK")):
        if shutil.which(program) is None:
            return f"the JVM tests need {needed}: there is no {program} on the PATH"
    return ""


def built() -> list[str]:
    """Resolve and compile, if that is not done yet; the class path."""
    classpath, sources = TARGET / "classpath", [PROJECT / "pom.xml", *PROJECT.rglob("src/**/*.java")]
    if not classpath.exists() or classpath.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        command = ["mvn", "-q", "-B", "compile", "dependency:build-classpath", f"-Dmdep.outputFile={classpath}"]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        os.utime(classpath)
    return [str(TARGET / "classes"), *classpath.read_text().split(os.pathsep)]


class Java:
    """The process; a context manager."""

    def __init__(self) -> None:
        command = ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", os.pathsep.join(built()), "oracle.Oracle"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run(self, plan: Any) -> Any:
        """The signals of a plan."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(plan) + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, f"the JVM has ended with {self._process.wait(30)}, over the plan {json.dumps(plan)}"
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()
