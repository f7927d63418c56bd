"""The workers of each adapter in processes of their own, for the kit and for the campaign of kills.

The imports are small: a process that is killed every second begins every second.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

Handle = Callable[[int], object]


def run(flow: Any, handle: Handle, number: Callable[[Any], int]) -> None:
    """Handle the messages of an `AckedFlow`, and subscribe anew when it fails."""

    def one(value: Any) -> int:
        handled = number(value)
        handle(handled)
        return handled

    flow.map(one).acknowledge().retry_backoff(1_000_000, first=0.02, most=0.2).run()


def of_redis_streams(url: str, stream: str, consumer: str, handle: Handle) -> None:
    from reactive_runtime.connect.redis_streams import read

    with ThreadPoolExecutor(1) as pool:
        flow = read(url, stream, "g", consumer, executor=pool)
        run(flow, handle, lambda message: int(message.fields[b"n"]))


def of_postgres(conninfo: str, table: str, consumer: str, handle: Handle) -> None:
    from reactive_runtime.connect.postgres_queue import jobs

    with ThreadPoolExecutor(1) as pool:
        flow = jobs(conninfo, table, pool, poll=0.1)
        run(flow, handle, lambda job: int(job.body))


def of_kafka(servers: str, topic: str, options: dict[str, Any], handle: Handle) -> None:
    from reactive_runtime.connect.kafka import read

    with ThreadPoolExecutor(1) as pool:
        flow = read(servers, topic, topic, executor=pool, options=options)
        run(flow, handle, lambda record: int(record.value.split()[0]))


def of_jetstream(url: str, stream: str, ack_wait: float, handle: Handle) -> None:
    from reactive_runtime.connect.jetstream import read

    with ThreadPoolExecutor(1) as pool:
        flow = read(url, stream, "c", executor=pool, ack_wait=ack_wait)
        run(flow, handle, lambda message: int(message.data))


def kept_events(url: str, kept: Path, executor: Executor, **options: Any) -> Any:
    """The events behind the last one that was handled, as an `AckedFlow`; `kept` has its id in the last line."""
    from reactive_runtime import Flow
    from reactive_runtime.connect import AckedFlow, InOrder
    from reactive_runtime.connect.http import events

    def keep(id: str) -> None:
        with kept.open("a", encoding="ascii") as file:
            file.write(f"{id}\n")

    def begin() -> Any:
        order = InOrder(keep)
        last = kept.read_text(encoding="ascii").split()[-1:] if kept.exists() else []
        flow = events(url, executor=executor, last_event_id=last[0] if last else None, **options)
        return flow.map(lambda event: order.element(event, str(event.id)))

    return AckedFlow(Flow.defer(begin))


def of_kept_events(url: str, kept: str, handle: Handle) -> None:
    with ThreadPoolExecutor(1) as pool:
        run(kept_events(url, Path(kept), pool), handle, lambda event: int(event.data.split()[0]))
