"""The servers of NATS that an adapter talks to: how it connects, and errors that name them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from operator import methodcaller
from typing import Any, Final, NoReturn
from urllib.parse import unquote, urlsplit

from reactive_runtime._core.runtime.arguments import seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime.connect._elements.hiding import raise_hidden
from reactive_runtime.errors import MissingDependencyError, ReactiveError

try:
    from nats import errors
    from nats.aio.client import Client
    from nats.js import errors as js_errors
except ImportError as error:
    raise MissingDependencyError("NATS needs nats-py: pip install 'reactive-runtime[nats]'") from error

__all__ = ["JetStreamError", "Server", "new_replies"]

LEAST_VERSION: Final = (2, 9)
"""Of the server: consumers are made with names."""

BETWEEN: Final = 0.25
"""Seconds between two attempts to connect again."""

SCHEMES: Final = ("nats", "tls", "ws", "wss")

STORE_FAILED: Final = 10077
"""The code of an error: a limit of the stream says no, as that of its messages."""

new_replies: Final[Callable[[Client], str]] = methodcaller("new_inbox")
"""Makes a new subject for replies."""

SECRETS: Final = ("password", "token", "nkeys_seed_str")
"""Options whose values are shown nowhere."""


class JetStreamError(ReactiveError):
    """A NATS server is not there, went away for too long, or refused something.

    The message names the operator, the server, and the stream or subject. The error of nats-py is the `__cause__`.
    """


async def _nothing() -> None:
    """Do nothing: the event is of no interest."""


def _is_cancelled() -> bool:
    """Whether this task goes on although it was cancelled.

    `asyncio.wait_for` of Python 3.11 loses a cancel if what it waits for ends at the same time. The task of nats-py
    that connects again would then go on for ever, behind `close`.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _NoTlsError(errors.Error):
    """TLS is asked for, and the server has none."""


class _Client(Client):
    """Sends no password in clear where TLS is asked for: nats-py has TLS only if the server demands it."""

    def _connect_command(self) -> bytes:
        of, server = self.options, self._current_server
        asked = server is not None and (server.uri.scheme == "tls" or (of.get("tls") and server.uri.scheme == "nats"))
        if asked and not (self._server_info.get("tls_required") or of.get("tls_handshake_first")):
            raise _NoTlsError("the URL or the options ask for TLS, and the server has none; no password was sent")
        return super()._connect_command()


class Server:
    """The servers of one stream or subject. Its title has no password in it.

    Args:
        operator: Its name, for messages.
        url: One URL, or several with commas between them.
        name: The stream or subject.
        timeout: Seconds for each answer.
        options: Further arguments of `nats.connect`.

    Raises:
        TypeError: An argument has another type.
        ValueError: A URL can't be read.
    """

    def __init__(self, operator: str, url: str, name: str, timeout: float, options: Mapping[str, Any] | None) -> None:
        seconds_of(operator, "timeout", timeout, positive=True)
        for argument, value in (("url", url), ("name", name)):
            if not isinstance(value, str):
                raise TypeError(f"{operator}: {argument} must be a str, not {instead(value)}")
        self._options: dict[str, Any] = dict(options or {})
        self._urls = [part.strip() for part in url.split(",")]
        hosts, secrets = [], [str(value) for key, value in self._options.items() if key in SECRETS]
        for part in self._urls:
            try:
                parts = urlsplit(part if "://" in part else f"nats://{part}")
                user, password = parts.username, parts.password
                host, port = parts.hostname, parts.port
                if parts.scheme not in SCHEMES or not host or "@" in f"{parts.path}{parts.query}{parts.fragment}":
                    raise ValueError("it is no URL of NATS")
            except ValueError:  # it may quote a part of the password
                host, port, user, password = "", None, None, None
            if not host:
                raise ValueError(
                    f"{operator}: the URL can't be read, and is not shown, since there may be a password in it: write"
                    " nats://user:password@host:4222, several with commas; a comma in a password is %2C, an @ is %40"
                )
            hosts.append(f"{host}:{port or 4222}")
            secrets += filter(None, (password, user if password is None else None))
        self._secrets = sorted({*secrets, *map(unquote, secrets)})
        self.title = f"{operator}({name!r} at {','.join(hosts)})"
        self.timeout = timeout

    def fail(self, what: str, cause: BaseException | None = None) -> NoReturn:
        """Raise an error that names the server, and hides the password."""
        raise_hidden(JetStreamError, f"{self.title}: {what}", cause, self._secrets)

    def error(self, what: str, cause: BaseException | None = None) -> JetStreamError:
        """That error, not raised."""
        try:
            self.fail(what, cause)
        except JetStreamError as error:
            return error

    async def connect(
        self,
        disconnected: Callable[[], Awaitable[None]] = _nothing,
        reconnected: Callable[[], Awaitable[None]] = _nothing,
        closed: Callable[[], Awaitable[None]] = _nothing,
    ) -> Client:
        """A client that is connected: it tries each server once, and later, when it was connected, again and again."""
        last: list[Exception] = []

        async def remember(error: Exception) -> None:
            last[:] = [error]
            if _is_cancelled():
                raise asyncio.CancelledError

        async def back() -> None:
            if _is_cancelled():
                await client.close()
            else:
                await reconnected()

        client = _Client()
        settings = {
            "connect_timeout": self.timeout,
            "reconnect_time_wait": BETWEEN,
            "name": "reactive_runtime",
            **self._options,
            "servers": self._urls,
            "allow_reconnect": False,
            "max_reconnect_attempts": 1,
            "error_cb": remember,
            "disconnected_cb": disconnected,
            "reconnected_cb": back,
            "closed_cb": closed,
        }
        try:
            await client.connect(**settings)
        except BaseException as error:  # also a cancel: the client leaves its socket open
            with suppress(Exception):
                await asyncio.wait_for(client.close(), self.timeout)
            if not isinstance(error, Exception):
                raise
            cause = last[0] if isinstance(error, errors.NoServersError) and last else error
            if isinstance(cause, _NoTlsError):
                self.fail(str(cause))
            if isinstance(error, TypeError | ValueError | ImportError):
                self.fail("the client refuses what the URL and the options say, or lacks a package for it", cause)
            if isinstance(error, errors.AuthorizationError) or "uthorization" in str(error):
                self.fail("it refuses the user; look at the user and the password, or the token, in the URL", cause)
            self.fail("can't connect; see whether the server runs, and look at host and port", cause)
        client.options["allow_reconnect"] = True
        client.options["max_reconnect_attempts"] = -1
        version = client.connected_server_version
        if (version.major, version.minor) < LEAST_VERSION:
            await client.close()
            least = ".".join(map(str, LEAST_VERSION))
            self.fail(f"it is of version {version.major}.{version.minor}, and {least} or newer is needed")
        return client

    def what(self, error: BaseException) -> str:
        """The meaning of an error of JetStream, and a way to mend it."""
        if isinstance(error, js_errors.NotFoundError | js_errors.NoStreamResponseError):
            return "there is no such stream, or it was deleted; make it, as with `nats stream add`"
        if isinstance(error, js_errors.ServiceUnavailableError) and error.err_code == STORE_FAILED:
            return "the stream does not take it; look at its limits, as with `nats stream info`"
        if isinstance(error, js_errors.ServiceUnavailableError | errors.NoRespondersError):
            return "JetStream does not answer; start the server with -js, and look at the permissions of the user"
        if isinstance(error, errors.TimeoutError | TimeoutError):
            return f"it does not answer within {self.timeout:g} s"
        return "it refuses"
