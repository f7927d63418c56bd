"""The session: what a user passes goes through, and what is missing is said in one line."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from reactive_runtime.errors import MissingDependencyError, ReactiveError
from reactive_runtime.spark.spark_session import BRIEF, java_home, session, settings_of


def test_settings_go_through_and_workers_use_this_interpreter(spark: Any) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext.master == "local[2]"
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.pythonExec == sys.executable
    jvm = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    assert set(BRIEF.values()) <= set(jvm.getInputArguments())


def test_a_second_call_gives_the_same_session_with_the_new_settings(spark: Any) -> None:
    again = session("local[2]", {"spark.sql.shuffle.partitions": "3"})
    assert again.sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"


def test_what_is_given_on_a_command_line_goes_through() -> None:
    assert settings_of(None, None) == {}
    given = ["spark.a=1=2", "spark.jars.packages=a:b:1"]
    assert settings_of(given, ["c:d:2", "e:f:3"]) == {"spark.a": "1=2", "spark.jars.packages": "a:b:1,c:d:2,e:f:3"}


@pytest.mark.parametrize(
    ("conf", "packages", "words"),
    [
        (["memory=1g"], None, "--conf 'memory=1g': should be spark.key=value"),
        (["spark.a"], None, "--conf 'spark.a': should be spark.key=value"),
        (None, ["a:b"], "--packages 'a:b': should be group:artifact:version"),
        (None, ["a::b"], "--packages 'a::b': should be group:artifact:version"),
    ],
)
def test_what_is_no_setting_and_no_package_is_named(
    conf: list[str] | None, packages: list[str] | None, words: str
) -> None:
    with pytest.raises(ReactiveError, match=words):
        settings_of(conf, packages)


def test_no_java_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="openjdk-17-jre-headless") as caught:
        java_home()
    assert "\n" not in str(caught.value)


def test_an_old_java_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"17 or newer, and .*bin/java is 8"):
        java_home()


def test_no_pyspark_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("pyspark"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"pip install 'reactive-runtime\[spark\]'"):
        session()
