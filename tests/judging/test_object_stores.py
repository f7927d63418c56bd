"""Nights in an object store, over HTTP from a server on this machine (`pip install moto[server]`)."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from sinks import until

from judging.test_stores import a_run, all_rows
from reactive_runtime.judging import _stores as stores
from reactive_runtime.judging._examining import GROUP, HELD, check_run, examined
from reactive_runtime.judging._files import read
from reactive_runtime.judging._stores import FILE, RUN

SERVER = os.environ.get("MOTO_SERVER") or shutil.which("moto_server")

pytestmark = pytest.mark.skipif(SERVER is None, reason="there is no moto_server: pip install 'moto[server]'")


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The options of a URI of the store."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with socket.socket() as item:
        item.bind(("127.0.0.1", 0))
        port = item.getsockname()[1]
    command = [str(SERVER), "-H", "127.0.0.1", "-p", str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as server:
        until(lambda: listening(port))
        yield f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
        server.kill()


def listening(port: int) -> bool:
    with socket.socket() as item:
        return item.connect_ex(("127.0.0.1", port)) == 0


def put(options: str, name: str, data: bytes) -> None:
    """Write an object at once: older versions of the server can't complete an upload in parts."""
    place = options.partition("&")[0].removeprefix("endpoint_override=")
    url = f"http://{place}/bucket/nights/{quote(name, safe='/')}"
    urlopen(Request(url, data, {"Content-Type": "application/octet-stream"}, method="PUT"), timeout=30).close()


@pytest.mark.parametrize("names", [20, pytest.param(1_200, marks=[pytest.mark.nightly, pytest.mark.timeout(900)])])
def test_runs_of_an_object_store_are_listed_in_pages(names: int, options: str, tmp_path: Path) -> None:
    run = a_run(tmp_path / "run=a")
    system, _ = stores._remote(f"s3://bucket?{options}")
    system.create_dir("bucket", recursive=True)
    for written in run.iterdir():
        put(options, f"run=a/{written.name}", written.read_bytes())
    for number in range(names):
        put(options, f"other/{number:04}.txt", b"no trace")
    root = f"s3://bucket/nights?{options}"
    found = [entry for page in stores.pages(stores.below(root, "other")) for entry in page]
    assert len(found) == names
    rows = all_rows(
        Path("unused"), lambda at, level, folder, none: stores.runs_in(at, level, root_of(folder, root), none)
    )
    (held,) = [row for row in rows if row["kind"] == RUN]
    assert held["folder"] == f"s3://bucket/nights/run=a?{options}"
    check_run(held["folder"])
    (file,) = [row for row in rows if row["kind"] == FILE]
    groups = examined(held["folder"], file["file"], file["checksum"], True)
    assert [row.kind for row in groups] == [GROUP, HELD]
    (part,) = read(stores.below(held["folder"], file["file"]), [0])
    assert len(part) == groups[0].rows


def root_of(folder: str, root: str) -> str:
    return root if folder == "unused" else folder
