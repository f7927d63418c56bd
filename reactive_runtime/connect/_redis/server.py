"""The server of Redis that an adapter talks to: its client, and errors that name it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from reactive_runtime._core.runtime.arguments import seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime.errors import MissingDependencyError

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.exceptions import NoPermissionError
    from redis.retry import Retry
except ImportError as error:
    raise MissingDependencyError("Redis needs redis-py: pip install 'reactive-runtime[redis]'") from error

__all__ = ["Server", "fields_of", "leave", "text_of"]


class Server:
    """The server of one stream. Its title has no password in it."""

    def __init__(self, operator: str, url: str, stream: str, timeout: float, options: Mapping[str, Any] | None) -> None:
        seconds_of(operator, "timeout", timeout, positive=True)
        for name, value in (("url", url), ("stream", stream)):
            if not isinstance(value, str):
                raise TypeError(f"{operator}: {name} must be a str, not {instead(value)}")
        settings = {"socket_timeout": timeout, "socket_connect_timeout": timeout, "protocol": 2, **(options or {})}
        # The client sends no command twice: entries of a lost answer would stay pending, and XADD add twice.
        self._connect = partial(redis.Redis.from_url, url, **{**settings, "retry": Retry(NoBackoff(), 0)})
        try:
            parts = urlsplit(url)
            if "@" in f"{parts.path}{parts.query}{parts.fragment}":
                raise ValueError("the password has a / or a # in it, and would be taken for the host")
            where = self._connect().connection_pool.connection_kwargs
        except ValueError:  # it may quote a part of the password
            raise ValueError(
                f"{operator}: the URL can't be read, and is not shown, since there may be a password in it: write"
                " redis://user:password@host:port/0, or rediss:// or unix://; an @ in a password is %40, a / is %2F"
            ) from None
        self.patience = where.get("socket_timeout") or timeout  # seconds that the client waits for an answer
        at = where.get("path") or f"{where.get('host', 'localhost')}:{where.get('port', 6379)}"
        self.title = f"{operator}({stream!r} at {at})"

    def client(self) -> Any:
        """A `redis.Redis` that is not yet connected. Answers with entries come as the server gives them."""
        client = self._connect()
        for command in ("XREADGROUP", "XCLAIM", "XAUTOCLAIM", "XPENDING"):
            client.set_response_callback(command, lambda answer, **_: answer)
        return client

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors of the server and of the connection say where they come from, and what to do."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise redis.DataError(
                f"{self.title}: the answer has bytes that are no text: {error}: leave `decode_responses` out, and"
                " decode the fields of each entry in the flow"
            ) from error
        except redis.RedisError as error:
            error.args = (f"{self.title}: {error}: {_advice(error)}",)
            raise


def _advice(error: redis.RedisError) -> str:
    text = str(error)
    if isinstance(error, redis.AuthenticationError | NoPermissionError) or "NOPERM" in text:
        return "look at the user and the password in the URL, and at what the server allows the user"
    if isinstance(error, redis.ConnectionError | redis.TimeoutError):
        return "see whether the server runs; a `retry` subscribes again, and begins with what was not acknowledged"
    if "NOGROUP" in text or "UNBLOCKED" in text:
        return "the stream or its group was deleted; a new subscription makes them again"
    return "this needs Redis 6.2 or later" if "unknown command" in text or "syntax" in text else "see the server's log"


def leave(client: Any) -> None:
    client.connection_pool.disconnect(inuse_connections=False)


def text_of(id: Any) -> str:
    return id if isinstance(id, str) else id.decode()


def fields_of(flat: Any) -> Mapping[Any, Any]:
    pairs = iter(flat)
    return dict(zip(pairs, pairs, strict=False))
