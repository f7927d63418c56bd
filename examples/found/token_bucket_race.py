"""A bucket of one token gives two."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Tokens:
    """Two threads, the first to ask for this key."""

    def __init__(self) -> None:
        bucket: Any = import_module("token_bucket")
        self.limiter: Any = bucket.Limiter(0.001, 1, bucket.MemoryStorage())
        self.given: list[bool] = []

    def actor_a(self) -> None:
        self.given.append(self.limiter.consume("user"))

    actor_b = actor_a

    def at_end(self) -> None:
        count = self.given.count(True)
        assert count <= 1, f"a bucket of 1 gave {count} tokens"


FIND = Find(
    package="token-bucket==0.4.0",
    promise="a comment argues that its races only lower the number of tokens, by a minor amount, for a short time.",
    what=(
        "`replenish` finds no bucket, and makes a full one; another thread has made one and taken its token "
        "meanwhile, and it is full again."
    ),
    mended="make a bucket with `setdefault`, or under a lock.",
    program=Tokens,
    message="a bucket of 1 gave 2 tokens",
    counted=True,
    gil=True,
)
