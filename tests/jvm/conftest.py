"""One JVM for all, in this process; where there is no Maven or JDK, the group is skipped and says so."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .original import Original, Run

PROJECT = Path(__file__).parent / "java"
TARGET = PROJECT / "target"


def missing() -> str:
    """What is needed here and not there; empty if nothing is."""
    for program, needed in (("mvn", "Maven"), ("javac", "a JDK")):
        if shutil.which(program) is None:
            return f"the JVM tests need {needed}: there is no {program} on the PATH"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason, here = missing(), str(Path(__file__).parent) + os.sep
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.timeout(900))  # the first one waits for Maven to fetch what is needed
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def jvm() -> Any:
    """The JVM, with the original kit, RxJava and a few lines of Java on its class path."""
    from reactive_runtime.interop import jvm

    # A collection by one thread: several wait for each other where the machine is busy, and the original gives a
    # reference that has been cleared a tenth of a second to be enqueued (3.13).
    jvm.start(built(), "-XX:+UseSerialGC")
    return jvm


@pytest.fixture(scope="session")
def original(request: pytest.FixtureRequest, jvm: Any) -> Original:
    """What the original kit says, of each `Run` that a selected test has as a parameter."""
    parameters = [item.callspec.params.values() for item in request.session.items if hasattr(item, "callspec")]
    return Original(jvm, [value for values in parameters for value in values if isinstance(value, Run)])


@pytest.fixture(scope="session")
def actors(jvm: Any) -> Iterator[Any]:
    """What Pekko's streams run on."""
    import jpype

    settings = "pekko { loglevel = OFF, stdout-loglevel = OFF, daemonic = on }"
    config = jpype.JClass("com.typesafe.config.ConfigFactory")
    system = jpype.JClass("org.apache.pekko.actor.ActorSystem").create(
        "tests", config.parseString(settings).withFallback(config.load())
    )
    yield system
    system.terminate()


def built() -> list[str]:
    """Resolve and compile, if that is not done yet; the class path."""
    classpath, sources = TARGET / "classpath", [PROJECT / "pom.xml", *PROJECT.rglob("src/**/*.java")]
    if not classpath.exists() or classpath.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        command = ["mvn", "-q", "-B", "compile", "dependency:build-classpath", f"-Dmdep.outputFile={classpath}"]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        os.utime(classpath)  # Maven leaves it as it is where only a source has changed
    return [str(TARGET / "classes"), *classpath.read_text().split(os.pathsep)]
