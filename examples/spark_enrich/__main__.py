"""The command; see the package."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.progress import Progress

from examples.spark_enrich.job import run
from examples.spark_enrich.service import service
from reactive_runtime.spark._session.spark_session import session, settings_of


def main() -> None:
    """Run the job against a service of its own."""
    parser = argparse.ArgumentParser(description="Enrich rows by calling a slow service from the tasks of Spark.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("enriched"))
    parser.add_argument("--parts", type=int, default=100, help="after each of which the job can be resumed")
    parser.add_argument("--rate", type=int, default=4_000, help="calls a second, of all tasks")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--conf", action="append", help="a Spark setting, spark.key=value; may be given many times")
    parser.add_argument("--packages", action="append", help="group:artifact:version; may be given many times")
    item = parser.parse_args()
    item.out.mkdir(parents=True, exist_ok=True)
    spark = session(item.master, settings_of(item.conf, item.packages))
    with service() as address, Progress() as progress:
        bar = progress.add_task("parts", total=item.parts)
        metrics = run(spark, address, item.rows, item.out, item.parts, item.rate, lambda part: progress.advance(bar))
    print(f"{metrics.given:,} rows, {metrics.retries:,} retries, at most {metrics.in_flight} calls in flight in a task")
    print(f"{spark.read.parquet(str(item.out)).count():,} rows in {item.out}")


if __name__ == "__main__":
    main()
