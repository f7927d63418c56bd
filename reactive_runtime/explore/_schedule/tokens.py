"""The text that stands for a schedule, and replays it.

It is JSON, packed and in letters that any shell leaves alone; nothing in it can be run. It says what was explored and
how, which thread did each step, and for each step a short print of what was done, so that a replay that goes another
way is noticed at the step where it does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import linecache
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._checks.scenario import Scenario

__all__ = ["Token", "source_hash"]

_PREFIX: Final = "rr2-"
_LARGEST: Final = 16 << 20
"""Bytes that a token may unpack to."""


@dataclass(frozen=True)
class Token:
    """The contents of a token."""

    scenario: str
    strategy: str
    seed: int
    index: int
    """The number of the schedule, among those of that strategy and seed."""
    points: str
    python: str
    source: str
    limit: int
    releases: bool
    racing: Sequence[tuple[str, Sequence[int]]]
    """Which loads and stores were points, by file."""
    names: Sequence[str]
    """Attributes that were stored by `setattr` and its like, whose names no source tells."""
    of_classes: Sequence[str]
    """Attributes of classes that were stored."""
    program: Sequence[tuple[str, Sequence[int]]]
    """Actors, and the numbers of the calls they make."""
    schedule: Sequence[int]
    prints: Sequence[int]
    """One byte for each step."""
    early: int = 0
    """How often time may have passed early,"""
    pause: float = 1.0
    """and for how many seconds each time."""
    calling: Sequence[tuple[str, Sequence[int]]] = ()
    """Which operations in C were points that call back, by file."""

    def text(self) -> str:
        """The token."""
        data = dict(vars(self))
        data["schedule"] = [[item, len(list(run))] for item, run in groupby(self.schedule)]
        data["prints"] = base64.b64encode(bytes(self.prints)).decode()
        packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)
        return _PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @staticmethod
    def parse(text: str) -> Token:
        """The token that `text` is; ExploreError where it is none."""
        text = text.strip()
        if not text.startswith(_PREFIX):
            raise ExploreError(f"this is no token of a schedule: {text[:20]!r}… (they begin with {_PREFIX})")
        try:
            packed = base64.urlsafe_b64decode(text[len(_PREFIX) :] + "=" * (-(len(text) - len(_PREFIX)) % 4))
            unpacked = zlib.decompressobj().decompress(packed, _LARGEST)
            data: dict[str, Any] = json.loads(unpacked)
            data["schedule"] = [int(datum) for datum, n in data["schedule"] for _ in range(min(int(n), _LARGEST))]
            data["prints"] = list(base64.b64decode(data["prints"]))
            for key in ("racing", "calling"):
                data[key] = [(str(file), [int(site) for site in sites]) for file, sites in data.get(key, ())]
            for key in ("names", "of_classes"):
                data[key] = [str(name) for name in data.get(key, ())]
            data["program"] = [(str(name), [int(call) for call in calls]) for name, calls in data["program"]]
            return Token(**data)
        except (binascii.Error, zlib.error, ValueError, TypeError, KeyError) as error:
            raise ExploreError(f"this token of a schedule is damaged: {error}") from error

    def check(self, scenario: Scenario[Any]) -> None:
        """Raise ExploreError where it is for another interpreter or another scenario."""
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        if self.python != here:
            raise ExploreError(
                f"this token was made by Python {self.python}, and this is {here}: steps differ between them"
            )
        known = {name: len(calls) for name, calls in scenario.actors.items()}
        for name, calls in self.program:
            if name not in known or any(not 0 <= call < known[name] for call in calls):
                raise ExploreError(
                    f"this token is for a scenario {self.scenario} with an actor {name} that makes other calls"
                )


def source_hash(filenames: Iterable[str]) -> str:
    """A hash of the contents of files."""
    digest = hashlib.sha256()
    for name in filenames:
        digest.update("".join(linecache.getlines(name)).encode(errors="surrogatepass"))
    return digest.hexdigest()[:12]
