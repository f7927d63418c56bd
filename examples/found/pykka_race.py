"""A question to an actor that is being stopped is never answered."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any

from examples.found import Find


class Asked:
    """One thread asks, another stops the actor."""

    def __init__(self) -> None:
        pykka: Any = import_module("pykka")

        class Answering(pykka.ThreadingActor):  # type: ignore[misc]
            use_daemon_thread = True

            def on_receive(self, message: Any) -> Any:
                return message

        self.dead: Any = pykka.ActorDeadError
        self.actor: Any = Answering.start()

    def actor_asks(self) -> None:
        with contextlib.suppress(self.dead):
            assert self.actor.ask("how are you") == "how are you"

    def actor_stops(self) -> None:
        self.actor.stop()


FIND = Find(
    package="pykka==4.5.0",
    promise="`ask` to an actor that has stopped raises ActorDeadError.",
    what=(
        "`ask` looks whether the actor lives, and puts the message into its inbox. In between the actor stops"
        " and empties its inbox for the last time. The message stays there, and `ask` waits for ever."
    ),
    mended="look again after the message was put, or close the inbox under a lock.",
    program=Asked,
    message="no thread can go on: asks (wait)",
    counted=True,
    gil=True,
)
