"""What it costs to record a signal: the same signals recorded and not, in turn, in one run; the difference."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator

from rich.table import Table
from side_by_side import console, measure

from reactive_runtime.spec import MAX_DEMAND, Subscriber, Subscription
from reactive_runtime.testing import Chunk, Recorder
from reactive_runtime.testing.trace import TraceWriter

N = 200_000  # signals in each way
AIM = 1_000  # ns a signal, at most


class Loop:
    """Emits `N` elements to whoever asks: as little of its own as there can be."""

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        subscriber.on_subscribe(Emission(subscriber))


class Emission:
    def __init__(self, subscriber: Subscriber[int]) -> None:
        self._subscriber = subscriber

    def request(self, n: int, /) -> None:
        if n == MAX_DEMAND:
            on_next = self._subscriber.on_next
            for element in range(N):
                on_next(element)

    def cancel(self) -> None: ...


class Taker:
    """Takes elements, and does nothing with them."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.request(MAX_DEMAND)

    def on_next(self, element: int, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...


class Asker(Taker):
    """Requests `N` times one, of an emission that gives nothing for it."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        request = subscription.request
        for _ in range(N):
            request(1)


def forget(chunk: Chunk) -> None:
    """A sink that costs nothing."""


def run(subscriber: Subscriber[int], recorder: Recorder | None = None) -> None:
    """One subscription of a loop, through the recorder where there is one."""
    if recorder is None:
        Loop().subscribe(subscriber)
    else:
        recorder.wrap(Loop(), "loop", ascending=True).subscribe(subscriber)
        recorder.flush()


def on_disk(folder: str, runs: Iterator[int]) -> None:
    """Recorded to Parquet, the file closed."""
    writer = TraceWriter(folder, f"run-{next(runs)}")
    run(Taker(), writer.recorder())
    writer.close({})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = iter(range(1_000))
        pairs: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "on_next, to a sink that forgets": (
                lambda: run(Taker()),
                lambda: run(Taker(), Recorder(sink=forget)),
            ),
            "request, to a sink that forgets": (
                lambda: run(Asker()),
                lambda: run(Asker(), Recorder(sink=forget)),
            ),
            "on_next, to Parquet files": (lambda: run(Taker()), lambda: on_disk(folder, runs)),
        }
        ways = {f"{name}{kind}": way for name, pair in pairs.items() for kind, way in zip("-+", pair, strict=True)}
        medians = measure(ways, rounds=7)
    table = Table(title="what recording costs", title_justify="left")
    for column in ("signal", "unrecorded, ns", "recorded, ns", "recording, ns", "must reach"):
        table.add_column(column, justify="left" if column in ("signal", "must reach") else "right")
    for name in pairs:
        plain, recorded = (medians[f"{name}{kind}"] / N * 1e9 for kind in "-+")
        table.add_row(name, f"{plain:,.0f}", f"{recorded:,.0f}", f"{recorded - plain:,.0f}", f"at most {AIM:,}")
    console.print(table)


if __name__ == "__main__":
    main()
