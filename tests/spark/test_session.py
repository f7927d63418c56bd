"""The session: what a user passes goes through, and what is missing is said in one line."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reactive_runtime.errors import MissingDependencyError, ReactiveError
from reactive_runtime.spark._session.spark_session import BRIEF, java_home, python_of, session, settings_of


def test_settings_go_through_and_workers_use_this_interpreter(spark: Any) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext.master == "local[2]"
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.pythonExec == sys.executable
    jvm = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    assert set(BRIEF.values()) <= set(jvm.getInputArguments())


def test_a_session_that_is_there_is_given_as_it_is(spark: Any) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert session().sparkContext is spark.sparkContext
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    ("master", "environment", "settings", "python"),
    [
        ("local[2]", {}, {}, sys.executable),
        ("local[2]", {"PYSPARK_PYTHON": "theirs"}, {}, sys.executable),
        ("local[2]", {}, {"spark.pyspark.python": "named"}, "named"),
        ("spark://127.0.0.1:7077", {"PYSPARK_PYTHON": "theirs"}, {}, sys.executable),
        ("spark://of.a.cluster:7077", {}, {}, sys.executable),
        ("spark://of.a.cluster:7077", {"PYSPARK_PYTHON": "theirs"}, {}, "theirs"),
        ("yarn", {"PYSPARK_PYTHON": "theirs"}, {"spark.pyspark.python": "named"}, "named"),
    ],
)
def test_the_workers_of_a_cluster_have_a_python_of_their_own(
    master: str, environment: dict[str, str], settings: dict[str, str], python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert python_of(master, settings) == python


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


THEIRS = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from reactive_runtime import Flow
from reactive_runtime.spark import map_flow, session

whose, folder = sys.argv[1:]

def ours():  # those that a session may need; PySpark sets others itself
    return {name: value for name, value in os.environ.items() if name.startswith(("PYSPARK", "SPARK_LOCAL"))}

before = ours()
if whose == "theirs":
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "Asia/Tokyo").getOrCreate()
    settings = dict(spark.sparkContext.getConf().getAll())
    assert session() is spark
    assert dict(spark.sparkContext.getConf().getAll()) == settings
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "200"
else:
    spark = session("local[1]", {"spark.driver.memory": "1g"})
    assert session() is spark
assert ours() == before, ours()
rows = spark.range(3)
print([row["id"] for row in Flow.from_dataframe(rows)], flush=True)
for work in (
    lambda: map_flow(rows, lambda flow: flow, "id long").collect(),
    lambda: Flow.range(3).map(lambda n: (n,)).to_spark(spark, "n long").stream(Path(folder) / "feed").done.result(),
):
    try:
        print(work(), flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("whose", ["theirs", pytest.param("ours", marks=pytest.mark.nightly)])
def test_a_session_of_the_users_is_left_alone_and_workers_without_the_package_are_reported(
    whose: str, tmp_path: Path
) -> None:
    """`python3` is one without packages, and PYSPARK_PYTHON is not set."""
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    environment |= {"PATH": f"{bare.parent}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", THEIRS, whose, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        env=environment,
    )
    told = done.stdout.splitlines()
    assert told[:1] == ["[0, 1, 2]"], done.stderr[-3000:]
    if whose == "ours":
        assert told[1:] == ["[Row(id=0), Row(id=1), Row(id=2)]", "3"], done.stderr[-3000:]
    else:
        words = (
            "the workers of this session run python3, which has no reactive_runtime and no pyarrow: set PYSPARK_PYTHON"
        )
        assert [line[: line.index(" to /")] for line in told[1:]] == [
            f"SparkError map_flow: {words}",
            f"SparkError to_spark: {words}",
        ]
