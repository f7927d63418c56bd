"""A progress bar counts one update where there were two."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Updated:
    """Two threads, one update each."""

    def __init__(self) -> None:
        output = import_module("io").StringIO()
        self.bar: Any = import_module("tqdm").tqdm(total=10, file=output, mininterval=1_000, miniters=1_000)

    def actor_a(self) -> None:
        self.bar.update(1)

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.bar.n == 2, f"2 updates, and {self.bar.n} counted"


FIND = Find(
    package="tqdm==4.69.0",
    promise="a lock for what is printed; nothing for the count.",
    what="`update` adds to `n` without the lock.",
    mended="add while the lock is held.",
    program=Updated,
    message="2 updates, and 1 counted",
    counted=False,
    gil=False,
)
