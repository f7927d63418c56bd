"""A server says that it is open."""

from __future__ import annotations

from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Server:
    """Has an address once it is open."""

    def __init__(self) -> None:
        self.is_open = False
        self.address: str | None = None

    def open(self) -> None:
        """From now on there is an address."""
        self.is_open = True
        self.address = "localhost:80"

    def connect(self) -> str | None:
        """The address, or None where the server is not open yet."""
        if not self.is_open:
            return None
        return f"http://{self.address}"


class Traffic:
    """A server that opens, and a client that connects."""

    def __init__(self, server: Any) -> None:
        self.server = server()
        self.closed: str | None = self.server.connect()
        self.early: str | None = None

    def open(self) -> None:
        self.server.open()

    def connect(self) -> None:
        self.early = self.server.connect()

    def at_end(self) -> None:
        assert self.closed is None, f"the server was not open, and a client got {self.closed!r}"
        whole = "http://localhost:80"
        assert self.early in (None, whole), f"the client got {self.early!r}"
        late = self.server.connect()
        assert late == whole, f"the server is open, and a client gets {late!r}"


def scenario(server: type[Any]) -> Any:
    """The check of a class."""
    return Scenario(
        lambda: Traffic(server),
        {"server": [Traffic.open], "client": [Traffic.connect]},
        Traffic.at_end,
        name=server.__name__,
        parts=[server],
    )


EXERCISE = Exercise(
    title="Open",
    group="B",
    task="""`Server.connect` returns None before the server is open, and the whole address from then on. No lock is
    needed.""",
    hint="""Publish last: what says that the rest is there is stored after the rest.""",
    program=Server,
    check=scenario,
)
SCENARIO = scenario(Server)
