"""The service of examples/service, with its servers: parts of it are killed, told to leave, and looked at."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import redis
from report.conftest import browser as browser
from sinks import PATIENCE, until

from examples.service import load, servers
from examples.service.parts import Service
from examples.service.settings import QUEUE, RESULTS


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    try:
        started = Service()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with started:
        yield started


def count(service: Service, query: str) -> int:
    with psycopg.connect(service.settings.database) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def test_kills_of_its_parts_lose_no_accepted_job(service: Service) -> None:
    found = load.run(service, jobs=600, kills=6, clients=2, pause=0.5, seed=1)
    assert (found.accepted, found.lost, found.wrong, found.unseen) == (600, 0, 0, 0), found
    assert sum(found.kills.values()) == 6


def test_a_worker_that_gets_sigterm_finishes_its_jobs(service: Service) -> None:
    worker = service.parts["worker-1"]
    cities = {f"leave-{n}": "Ghent" for n in range(400)}
    with redis.Redis.from_url(service.settings.redis) as client:
        before = int(client.xlen(RESULTS))
        load.send(service.url, cities)
        written = count(service, "SELECT count(*) FROM parcels WHERE id LIKE 'leave-%'")
        with service.still():
            assert worker.stop() == 0
            worker.start()
        until(lambda: len(load.rows_of(service, cities)) == len(cities))
        until(lambda: count(service, f"SELECT count(*) FROM {QUEUE}") == 0)
        assert int(client.xlen(RESULTS)) == before + len(cities)  # each once: no job was begun and dropped
    assert written < len(cities), "the worker had nothing to finish"
    assert "has finished its jobs" in (service.folder / "worker-1.log").read_text()


def test_the_web_process_ends_with_live_clients(service: Service) -> None:
    web = service.parts["web"]
    load.send(service.url, {"web-1": "Ghent"})
    with ThreadPoolExecutor(1) as pool:
        client = load.Client(service.url, pool)
        until(lambda: "web-1" in client.seen)
        with service.still():
            assert web.stop() == -signal.SIGTERM  # Uvicorn closes all, and raises the signal again
            web.start()
        load.send(service.url, {"web-2": "Porto"})
        until(lambda: "web-2" in client.seen)
        client.leave()
    assert client.seen["web-1"] == 1
    assert "has closed its flows" in (service.folder / "web.log").read_text()


def test_jobs_are_refused_while_the_database_is_away(service: Service) -> None:
    with service.still(), httpx.Client(base_url=service.url, timeout=60) as http:
        service.parts["postgres"].kill()
        answer = http.post("/jobs", json=[{"id": "away", "city": "Ghent"}])
        service.parts["postgres"].start()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    load.send(service.url, {"away": "Ghent"})
    until(lambda: "away" in load.rows_of(service, {"away": "Ghent"}))


def test_jobs_that_are_none_are_refused(service: Service) -> None:
    with httpx.Client(base_url=service.url, timeout=60) as http:
        assert http.post("/jobs", json=[{"id": "x"}]).status_code == 422
        assert http.post("/jobs", json=[{"id": "x", "city": "Ghent"}] * 1_001).status_code == 422


@pytest.mark.parametrize("city", ["", "a\x00b", "x" * 101])
def test_a_city_that_no_table_can_keep_is_refused(service: Service, city: str) -> None:
    with httpx.Client(base_url=service.url, timeout=60) as http:
        assert http.post("/jobs", json=[{"id": "x", "city": city}]).status_code == 422


def test_a_city_of_any_letters_is_set_aside_or_found(service: Service) -> None:
    cities = {f"odd-{n}": city for n, city in enumerate(["../Ghent", "Ghent?x", "🙂", "%2e", "Ghent#a", " ", "a\nb"])}
    load.send(service.url, cities)
    until(lambda: len(load.rows_of(service, cities)) == len(cities))
    assert set(load.rows_of(service, cities).values()) == {()}


def test_its_page_shows_results_as_they_come(service: Service, browser: Any, tmp_path: Path) -> None:
    said: list[str] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(service.url)
    page.wait_for_function("document.getElementById('state').textContent == 'open'", timeout=PATIENCE * 1_000)
    before = int(page.locator("#written").inner_text())
    page.get_by_role("button").click()
    page.wait_for_function(
        f"Number(document.getElementById('written').textContent) >= {before + 196}", timeout=PATIENCE * 1_000
    )
    page.wait_for_function("Number(document.getElementById('seen').textContent) >= 200", timeout=PATIENCE * 1_000)
    page.screenshot(path=tmp_path / "page.png")
    assert page.locator("tbody tr").count() == 10
    assert said == []
    page.close()


def test_a_worker_serves_the_metrics_of_its_flow(service: Service) -> None:
    load.send(service.url, {f"metrics-{n}": "Ghent" for n in range(50)})
    until(lambda: "reactive_runtime_flow_elements_total{" in httpx.get(service.metrics["worker-1"]).text)
    assert 'reactive_runtime_flow_name="parcels"' in httpx.get(service.metrics["worker-1"]).text


@pytest.mark.parametrize("last", ["x", "1-", "-1", "1-2-3", "9" * 20])
def test_an_id_that_no_stream_has_is_refused(service: Service, last: str) -> None:
    with httpx.Client(base_url=service.url, timeout=60) as http:
        assert http.get("/live", headers={"Last-Event-ID": last}).status_code == 422


def test_a_service_whose_port_is_in_use_stops_its_parts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        try:
            started = Service(port=port)
        except FileNotFoundError as error:
            pytest.skip(str(error))
        with pytest.raises(RuntimeError, match=f"is port {port} in use?"), started:
            pass
    processes = [part.process for part in started.parts.values()]
    assert all(process is not None and process.poll() is not None for process in processes)
    assert not started.folder.exists()


def test_a_part_that_ends_is_started_again(service: Service) -> None:
    part = service.parts["places"]
    starts = part.starts
    assert part.process is not None
    part.process.send_signal(signal.SIGKILL)
    until(lambda: part.starts == starts + 1)


def test_a_server_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "UNPACKED", Path("/nowhere"))
    with pytest.raises(FileNotFoundError, match="there is no no-such-server"):
        servers.program("no-such-server", "usr/bin")
