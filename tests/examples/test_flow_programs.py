"""The programs in examples/flow, which the how-to pages show, do what they say."""

from __future__ import annotations

import hashlib

import pytest

from examples.flow import clock_with_drop, lines_to_processes, rows_to_http


@pytest.mark.usefixtures("no_thread_left")
def test_rows_go_to_the_service_and_each_is_counted_once() -> None:
    assert rows_to_http.main() == sum(range(rows_to_http.ROWS))
    batches = rows_to_http.ROWS // 25
    assert batches < rows_to_http.Service.calls <= batches * 2  # with those that were answered with 503


@pytest.mark.usefixtures("no_thread_left")
def test_lines_come_back_from_the_processes_in_their_order() -> None:
    with lines_to_processes.a_file() as path:
        digests = lines_to_processes.main(path)
    assert len(digests) == lines_to_processes.LINES
    assert digests[7] == hashlib.pbkdf2_hmac("sha256", b"line 7", b"salt", 100).hex()[:8]


@pytest.mark.usefixtures("no_thread_left")
def test_every_tick_is_worked_on_or_dropped() -> None:
    worked_on, dropped = clock_with_drop.main()
    assert worked_on == sorted(set(worked_on))
    assert dropped > 0
    assert len(worked_on) + dropped == clock_with_drop.TICKS
