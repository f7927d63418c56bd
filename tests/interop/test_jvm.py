"""What is needed for the JVM and not there is named; with it, tests/jvm goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_without_jpype_the_extra_is_named() -> None:
    done = python("import sys; sys.modules['jpype'] = None; import reactive_runtime.interop.jvm")
    assert (
        "MissingDependencyError: reactive_runtime.interop.jvm needs JPype: pip install 'reactive-runtime[jvm]'"
        in done.stderr
    )


@pytest.mark.jvm
def test_without_a_running_jvm_it_says_what_to_call() -> None:
    done = python(
        "from reactive_runtime import Flow; from reactive_runtime.interop import jvm; jvm.to_java(Flow.range(1))"
    )
    assert "ReactiveError: there is no JVM yet: call reactive_runtime.interop.jvm.start(classpath) first" in done.stderr


@pytest.mark.jvm
def test_a_path_that_is_not_there_is_named() -> None:
    done = python("from reactive_runtime.interop import jvm; jvm.start(['nowhere.jar'])")
    assert "ReactiveError: jvm.start: nowhere.jar is not there" in done.stderr


@pytest.mark.jvm
def test_without_the_jar_the_interfaces_are_named() -> None:
    done = python(
        "from reactive_runtime import Flow\n"
        "from reactive_runtime.interop import jvm\n"
        "jvm.start()\n"
        "jvm.to_java(Flow.range(1))\n"
    )
    assert "ReactiveError: to_java: org.reactivestreams is not on the class path" in done.stderr


@pytest.fixture
def without_maven(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has what make needs, and no Maven."""
    for program in ("sh", "bash", "env", "sed", "head", "dirname", "getconf"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    return {**os.environ, "PATH": str(tmp_path)}


def test_make_says_in_one_line_that_maven_is_missing_and_exits_with_2(without_maven: dict[str, str]) -> None:
    make = str(shutil.which("make"))
    command = [make, "--silent", "test-part", "PART=jvm"]
    done = subprocess.run(command, env=without_maven, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        "jvm: Maven is needed: there is no mvn on the PATH (Debian: apt-get install maven)"
    )


def test_the_group_is_skipped_with_the_reason_where_maven_is_missing(without_maven: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests/jvm/test_rxjava.py"]
    done = subprocess.run(command, env=without_maven, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert "the JVM tests need Maven: there is no mvn on the PATH" in done.stdout
    assert "passed" not in done.stdout
