"""The brokers that an adapter talks to: their settings, and errors that name them.

The problem: the client never gives up. It tells a callback that a broker is down, and tries again for ever; and its
texts may quote a setting that is a password.

The answer: `Health` counts for how long no broker has answered, and says when it is enough. Each error is made anew:
with the brokers, the topics and what to do in it, and without what is secret.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime.connect._elements.hiding import LEAST_SECRET
from reactive_runtime.errors import MissingDependencyError

try:
    from confluent_kafka import KafkaError, KafkaException
except ImportError as error:
    raise MissingDependencyError("Kafka needs confluent-kafka: pip install 'reactive-runtime[kafka]'") from error

__all__ = ["Cluster", "Health"]

logger: Final = logging.getLogger("reactive_runtime.connect.kafka")

_REFUSED: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
    }
)
"""Errors that stay until someone changes a setting."""

_AWAY: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
    }
)

_GROUP: Final = re.compile(r'"cgrp":\s*{\s*"state":\s*"([^"]*)".*?"join_state":\s*"([^"]*)"')
"""In the statistics: whether the group's broker can be reached, and whether the member has joined."""

_SECRET: Final = ("password", "pem", "secret", "jaas", "oauthbearer.config", "passphrase")
"""A setting whose name has one of these in it is not shown."""


class Cluster:
    """The brokers of one adapter. Its title has no password in it.

    Args:
        operator: Its name, for messages.
        servers: As `bootstrap.servers`.
        what: The topics, for messages.
        timeout: Seconds that the brokers have.
        options: Settings of the user.
        own: Settings of the adapter that are not to be given in `options`, beside those of every adapter.
    """

    def __init__(
        self,
        operator: str,
        servers: str,
        what: str,
        timeout: float,
        options: Mapping[str, Any] | None,
        own: Collection[str],
    ) -> None:
        self.timeout = seconds_of(operator, "timeout", timeout, positive=True)
        if not isinstance(servers, str):
            raise TypeError(f"{operator}: servers must be a str, not {instead(servers)}")
        if not servers.strip() or "@" in servers:  # the client would print it
            raise ValueError(
                f"{operator}: servers must be host:port, or several with commas between them; the text is not shown,"
                " since there may be a password in it: that goes to options, as sasl.password"
            )
        given = dict(options or {})
        if taken := sorted({"bootstrap.servers", "error_cb", *own} & given.keys()):
            raise ValueError(f"{operator}: the adapter sets {', '.join(taken)}: leave it out of options")
        secrets = {str(value) for name, value in given.items() if any(part in str(name) for part in _SECRET)}
        long = (secret for secret in secrets if len(secret) >= LEAST_SECRET)
        self._secrets = sorted(long, key=len, reverse=True)  # one may be a part of another
        self.title = f"{operator}({what} at {servers})"
        answer = max(2_000, int(self.timeout * 1_000))  # the client refuses less
        self.settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "socket.timeout.ms": answer,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "logger": logger,
            "log_level": 2,  # errors come as errors; a broker that is away is logged 20 times a second
            **given,
        }

    def make(self, kind: Callable[[dict[str, Any]], Any], defaults: dict[str, Any], own: dict[str, Any]) -> Any:
        """A client. The settings of the user go before `defaults`, and `own` before those. Errors name no secret."""
        try:
            return kind({**defaults, **self.settings, **own})
        except KafkaException as error:
            raise self.error(error.args[0]) from None
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.title}: {self._without_secrets(str(error))}") from None

    def error(self, error: KafkaError, of: str = "", also: str = "") -> KafkaException:
        """An error of the client, with the brokers, the element that it is about, and what to do."""
        text = ": ".join(part for part in (self.title, of, error.str(), also, _advice(error)) if part)
        return KafkaException(KafkaError(error.code(), self._without_secrets(text), error.fatal()))

    def named(self, error: KafkaException) -> KafkaException:
        """An error that names the brokers, if it does not yet."""
        inner = error.args[0]
        return error if inner.str().startswith(self._without_secrets(self.title)) else self.error(inner)

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text


class Health:
    """Whether the brokers can be reached; its methods are callbacks of the client.

    They are called inside of calls of the client, by one thread at a time.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._down_since: float | None = None
        self.failure: KafkaError | None = None
        self.last = ""  # what was said last; of several texts this is the one that says why
        self.away = False  # the broker that coordinates the group can't be reached, as the client told last
        self.steady = False  # the member has its place in the group, and does not join; as the client told last
        self.interval = min(1_000, max(100, int(timeout * 250)))  # milliseconds between two statistics

    def on_error(self, error: KafkaError) -> None:
        """The client says that it can't reach a broker, or that one refuses."""
        if error.fatal() or error.code() in _REFUSED:
            self.failure = error
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = error.str()

    def why(self) -> str:
        """The last words of the client about the brokers."""
        return self.last if self.failure is None else self.failure.str()

    def on_statistics(self, statistics: str) -> None:
        """The client tells the state of each broker, every now and then."""
        group = _GROUP.search(statistics)
        if group is not None:
            self.away, self.steady = group[1] != "up", group[2] == "steady"
        if '"state":"UP"' in statistics:
            self._down_since = None
            return
        now = primitives.monotonic()
        if self._down_since is None:
            self._down_since = now
        elif now - self._down_since >= self._timeout and self.failure is None:
            self.failure = KafkaError(KafkaError._ALL_BROKERS_DOWN, "no broker can be reached")


def _advice(error: KafkaError) -> str:
    code = error.code()
    if code in _REFUSED:
        return "look at the user and the password in the options, and at what the brokers allow the user"
    if code in _AWAY:
        return "see whether a broker runs there, of Kafka 2.1 or later; a `retry` begins again"
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
        return "make the topic; the adapter makes none"
    if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        return "the broker has no such offset any more; begin at another one"
    return "the client's manual lists the settings" if code == KafkaError._INVALID_ARG else "see the broker's log"
