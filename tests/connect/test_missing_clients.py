"""An adapter whose client is not installed says how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "client", "said"),
    [
        ("files", "fsspec", "files need fsspec: pip install 'reactive-runtime[files]'"),
        ("files", "pyarrow", "Arrow and Parquet need pyarrow: pip install 'reactive-runtime[files]'"),
        ("jetstream", "nats", "NATS needs nats-py: pip install 'reactive-runtime[nats]'"),
        ("http", "httpx", "HTTP needs httpx: pip install 'reactive-runtime[http]'"),
        ("kafka", "confluent_kafka", "Kafka needs confluent-kafka: pip install 'reactive-runtime[kafka]'"),
        ("postgres", "psycopg", "PostgreSQL needs psycopg: pip install 'reactive-runtime[postgres]'"),
        ("postgres_queue", "psycopg", "PostgreSQL needs psycopg: pip install 'reactive-runtime[postgres]'"),
        ("rx", "reactivex", "observables need reactivex: pip install reactivex"),
        ("redis_streams", "redis", "Redis needs redis-py: pip install 'reactive-runtime[redis]'"),
    ],
)
def test_an_adapter_names_the_client_that_is_missing(module: str, client: str, said: str) -> None:
    program = f"import sys; sys.modules[{client!r}] = None; import reactive_runtime.connect.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"reactive_runtime.errors.MissingDependencyError: {said}"


def test_the_package_of_adapters_needs_no_client() -> None:
    clients = dict.fromkeys(("confluent_kafka", "fsspec", "httpx", "nats", "psycopg", "pyarrow", "reactivex", "redis"))
    program = f"import sys; sys.modules.update({clients}); import reactive_runtime.connect"
    subprocess.run([sys.executable, "-c", program], check=True)
