"""`to_file`: the whole file is there, or the one before."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sinks import PATIENCE, submit_until

from reactive_runtime import Flow


def test_a_flow_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text("old\n")
    seen: list[str] = []

    def fail(line: str) -> str:
        seen.extend(path.name for path in tmp_path.iterdir())
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        Flow.just("a").map(fail).to_file(file)
    assert len(seen) == 2, "the new file was at its side"
    assert file.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [file]


def test_the_file_is_not_there_before_the_end(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    there: list[bool] = []
    assert Flow.just("a", "b").do_on_next(lambda line: there.append(file.exists())).to_file(file) == 2
    assert there == [False, False]
    assert file.read_bytes() == b"a\nb\n"


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "report.txt", tmp_path / "link"
    file.touch()
    file.chmod(0o640)
    link.symlink_to(file)
    Flow.just("é").to_file(link, encoding="latin-1")
    assert link.is_symlink()
    assert file.read_bytes() == b"\xe9\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("element", "error", "says"),
    [(7, TypeError, "put map\\(str\\) before"), ("a\nb", ValueError, "has a line end in it")],
)
def test_an_element_that_is_no_line_is_named(tmp_path: Path, element: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Flow.just(element).to_file(tmp_path / "report.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Flow.error(OSError("not begun")).to_file(tmp_path / "no folder" / "report.txt")
    with pytest.raises(ValueError, match="no-codec"):
        Flow.just("a").to_file(tmp_path / "report.txt", encoding="no-codec")
    assert list(tmp_path.iterdir()) == []
    for path in (7, b"report.txt"):
        with pytest.raises(TypeError, match="path must be a str"):
            Flow.just("a").to_file(path)  # type: ignore[arg-type]


def test_a_name_may_be_as_long_as_the_folder_takes_it(tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127):
        Flow.just("a").to_file(tmp_path / name)
        assert (tmp_path / name).read_text() == "a\n"


@pytest.mark.parametrize("there", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("linked", [False, True])
def test_only_a_regular_file_is_replaced(tmp_path: Path, there: Callable[[str], object], linked: bool) -> None:
    path = tmp_path / "there"
    there(str(path))
    before = path.stat()
    if linked:
        path = tmp_path / "link"
        path.symlink_to("there")
    began: list[str] = []
    with pytest.raises(OSError, match=r"to_file: .*there is no regular file") as raised:
        Flow.just("a").do_on_next(began.append).to_file(path)
    assert isinstance(raised.value, IsADirectoryError) == stat.S_ISDIR(before.st_mode)
    assert not began, "it is found before the work is done"
    assert (path.stat().st_mode, path.stat().st_ino) == (before.st_mode, before.st_ino)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "there"][not linked :]


@pytest.mark.parametrize("there", [True, False])
def test_a_path_that_ends_with_a_separator_is_no_file(there: bool, tmp_path: Path) -> None:
    file = tmp_path / "there"
    if there:
        file.write_text("old\n")
    with pytest.raises(IsADirectoryError, match=r"to_file: .*there/ names a folder, not a file"):
        Flow.just("new").to_file(f"{file}/")
    assert [(file.read_text(), path.name) for path in tmp_path.iterdir()] == [("old\n", "there")] * there


@pytest.mark.parametrize("encoding", ["no-codec", "base64"])
def test_a_codec_that_is_none_for_text_leaves_no_file(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(ValueError, match=f"codec of Python for text, not '{encoding}'"):
        Flow.just("a").to_file(tmp_path / "report.txt", encoding=encoding)
    assert list(tmp_path.iterdir()) == []


def test_a_line_after_the_time_is_over_is_not_written(tmp_path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def late(line: str) -> str:
        inside.set()
        assert go_on.wait(PATIENCE)
        return line

    with ThreadPoolExecutor(1) as pool:
        submit_until(pool, inside)
        with pytest.raises(TimeoutError):
            Flow.just("a").map(late).subscribe_on(pool).to_file(tmp_path / "report.txt", timeout=0.01)
        go_on.set()
    assert list(tmp_path.iterdir()) == []
