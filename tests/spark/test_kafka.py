"""Out to Kafka and in from it, over Spark's connector and a broker of one process, both from their jars."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import spark_jars
from sinks import until

pytestmark = [
    pytest.mark.nightly,  # two JVMs of its own, and jars that are fetched; `test_writes.py` is by day
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(spark_jars.missing()), reason=spark_jars.missing()),
]

SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/log
offsets.topic.replication.factor=1
num.partitions=2
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """The address of a broker."""
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(spark_jars.jars("broker"))]
    port = free_port()
    settings = tmp_path / "server.properties"
    settings.write_text(SETTINGS.format(folder=tmp_path / "kafka", broker=port, controller=free_port()))
    new = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(settings)]
    subprocess.run([*java, *new], capture_output=True, check=True)
    with (tmp_path / "broker.txt").open("w") as said:
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=said, stderr=said)

    def answers() -> bool:
        assert process.poll() is None, (tmp_path / "broker.txt").read_text()
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(answers)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


PROGRAM = """
import sys
from pathlib import Path
from reactive_runtime import Flow
from reactive_runtime.spark import session
from reactive_runtime.spark._session.spark_session import BRIEF

jars, broker, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
spark = session("local[2]", {**BRIEF, "spark.jars": jars, "spark.driver.memory": "1g"})
spark.conf.set("spark.sql.shuffle.partitions", "2")
spark.sparkContext.setLogLevel("OFF")

orders = Flow.range(250).map(lambda n: (str(n % 7), f"order {n}"))
sink = orders.to_spark(spark, "key string, value string", batch_rows=100).format("kafka")
written = sink.option("kafka.bootstrap.servers", broker).save(topic="orders")
print(written.result(), flush=True)

topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
topic = topic.option("subscribe", "orders").option("startingOffsets", "earliest").load()
read = topic.selectExpr("cast(value as string)")
values = Flow.from_stream(read, checkpoint=folder / "checkpoint", trigger={"availableNow": True})
once = [row["value"] for row in values]
print(len(once), set(once) == {f"order {n}" for n in range(250)}, flush=True)
print(len(list(values)), flush=True)  # from its checkpoint: there is no more

batch = spark.read.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", "orders").load()
print(Flow.from_dataframe(batch).count().block(), flush=True)

for wrong in (sink.mode("overwrite"), sink):  # no such mode there; and no topic
    try:
        print(wrong.option("kafka.bootstrap.servers", broker).save().result(), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""


def test_a_flow_goes_out_to_a_topic_and_comes_in_from_it(broker: str, tmp_path: Path) -> None:
    lines = spark_jars.done("kafka", PROGRAM, broker, tmp_path)
    assert lines[:4] == ["250", "250 True", "0", "250"]
    assert lines[4].startswith("SparkError: to_spark: ")
    assert "Overwrite" in lines[4]
    assert lines[5].startswith("SparkError: to_spark: ")
    assert "topic" in lines[5]
