"""A hot source frees an element: no lock is held while the element's `__del__` runs, which may call the source."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from reactive_runtime.hot import PublishProcessor, ReplayProcessor

Source = PublishProcessor[Any] | ReplayProcessor[Any]


class Calling:
    """An element that asks the source for its subscribers when it is freed."""

    def __init__(self, source: Source, freed: list[int]) -> None:
        self.source = source
        self.freed = freed

    def __del__(self) -> None:
        self.freed.append(self.source.subscribers())


def replayed(source: Source, freed: list[int]) -> None:
    for _ in range(3):
        source.emit(Calling(source, freed))
    source.on_complete()


def left(source: Source, freed: list[int]) -> None:
    waiting = source.subscribe(lambda _: None, demand=1)
    for _ in range(3):
        source.emit(Calling(source, freed))
    waiting.cancel()


@pytest.mark.parametrize("use", [replayed, left])
@pytest.mark.parametrize("make", [lambda: ReplayProcessor(1), lambda: ReplayProcessor(2), PublishProcessor])
def test_an_element_may_call_its_source_when_it_is_freed(
    use: Callable[[Source, list[int]], None], make: Callable[[], Source], dropped: object
) -> None:
    freed: list[int] = []
    source = make()
    thread = threading.Thread(target=use, args=(source, freed), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits for the lock of the source, which this thread holds"
    if isinstance(source, ReplayProcessor):
        assert freed
