"""An error of an odd class ends the flow as any other one: it comes once, and nothing hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow


class Raising:
    """Any comparison, any text and any question for its truth raises."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("it can't be compared")

    def __repr__(self) -> str:
        raise ValueError("it has no text")

    __hash__ = None  # type: ignore[assignment]


class NoEqualityError(Exception):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not equal")

    __hash__ = None  # type: ignore[assignment]


class NoTruthError(Exception):
    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class NoNotesError(Exception):
    def add_note(self, note: str, /) -> None:
        raise RuntimeError("no notes")


class NoTextError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class NoAttributesError(Exception):
    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


class NamedArgumentsError(Exception):
    def __init__(self, *, code: int) -> None:
        self.code = code


class EmptyError(Exception):
    """False, as an empty list is."""

    def __len__(self) -> int:
        return 0


@dataclass
class ComparedError(Exception):
    part: object = None


ERRORS: dict[str, Callable[[], Exception]] = {
    "no equality": NoEqualityError,
    "no truth": NoTruthError,
    "no notes": NoNotesError,
    "no text": NoTextError,
    "no attributes": NoAttributesError,
    "named arguments": lambda: NamedArgumentsError(code=3),
    "empty": EmptyError,
    "a dataclass": lambda: ComparedError(Raising()),
    "odd arguments": lambda: ValueError(Raising()),
}


def raises(error: Exception) -> Callable[..., Any]:
    def act(*_: object) -> Any:
        raise error

    return act


class Breaks:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __iter__(self) -> Iterator[int]:
        yield 0
        raise self.error


PLACES: dict[str, Callable[[Exception, ThreadPoolExecutor], Flow[Any]]] = {
    "map": lambda error, pool: Flow.range(3).map(raises(error)),
    "filter": lambda error, pool: Flow.range(3).filter(raises(error)),
    "iterable": lambda error, pool: Flow.from_iterable(Breaks(error)),
    "supplier": lambda error, pool: Flow.from_supplier(raises(error)),
    "scan": lambda error, pool: Flow.range(3).scan(raises(error), 0),
    "flat_map": lambda error, pool: Flow.range(3).flat_map(raises(error)),
    "inner": lambda error, pool: Flow.range(3).flat_map(lambda n: Flow.error(error)),
    "concat_map": lambda error, pool: Flow.range(3).concat_map(lambda n: Flow.just(n).map(raises(error))),
    "error": lambda error, pool: Flow.error(error),
    "subscribe_on": lambda error, pool: Flow.range(3).map(raises(error)).subscribe_on(pool),
    "publish_on": lambda error, pool: Flow.range(3).map(raises(error)).publish_on(pool),
    "behind publish_on": lambda error, pool: Flow.range(3).publish_on(pool).map(raises(error)),
    "map_parallel": lambda error, pool: Flow.range(1).map_parallel(raises(error), pool),
    "from_callable": lambda error, pool: Flow.from_callable(raises(error)).subscribe_on(pool),
    "retry": lambda error, pool: Flow.range(3).map(raises(error)).retry(1),
    "checkpoint": lambda error, pool: Flow.range(3).map(raises(error)).checkpoint("here"),
    "named": lambda error, pool: Flow.range(3).map(raises(error)).named("mine"),
    "share": lambda error, pool: Flow.range(3).map(raises(error)).share(),
    "merge": lambda error, pool: Flow.merge(Flow.range(3), Flow.error(error)),
    "zip": lambda error, pool: Flow.zip(Flow.range(3), Flow.range(3).map(raises(error))),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ERRORS)
def test_an_odd_error_is_signalled_once_and_raised(name: str, place: str) -> None:
    error = ERRORS[name]()
    with ThreadPoolExecutor(2) as pool:
        flow = PLACES[place](error, pool)
        sink = Sink()
        flow.subscribe(sink)
        assert type(sink.wait().error) is type(error)
        with pytest.raises(type(error)):
            flow.ignore_elements().to_list().block(timeout=PATIENCE)
