"""A request over httpx whose answer is read by demand, and errors that name it and no secret.

The client is httpx's for asyncio: a cancel ends it wherever it waits, for an address, a connection, the headers or the
body, and takes no thread. A blocking read of httpx can't be interrupted, and is not resumed where its time is over.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from functools import cache, partial
from typing import Any, Final
from urllib.parse import urlsplit

from reactive_runtime._core.runtime import eventloop
from reactive_runtime._core.runtime.arguments import check_executor, seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import combinator_flow
from reactive_runtime._operators.sources.creating import OfAsync
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import MissingDependencyError

try:
    import httpx
except ImportError as error:
    raise MissingDependencyError("HTTP needs httpx: pip install 'reactive-runtime[http]'") from error

__all__ = ["Requests"]

CHUNK: Final = 1 << 16
"""Bytes that come out of gzip at once, at most."""

_NO_HEADERS: Final[Mapping[str, str]] = {}


class Requests:
    """The requests of a flow: each subscription sends one, or more if it connects anew. Any thread.

    Args:
        operator: The function that makes the flow.
        url: With the user and the password, if there are any.
        method: "GET", or another one.
        headers: Of the user.
        content: The body of the request.
        timeout: Seconds for each step. None: no limit.
        options: Further arguments of `httpx.AsyncClient`.
        defaults: Headers that those of the user replace.
    """

    def __init__(
        self,
        operator: str,
        url: str,
        method: str,
        headers: Mapping[str, str] | None,
        content: str | bytes | None,
        timeout: float | None,
        options: Mapping[str, Any] | None,
        defaults: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        self.operator = operator
        for name, value in (("url", url), ("method", method)):
            if not isinstance(value, str):
                raise TypeError(f"{operator}: {name} must be a str, not {instead(value)}")
        if content is not None and not isinstance(content, str | bytes):
            raise TypeError(f"{operator}: content must be a str or bytes, not {instead(content)}")
        if timeout is not None:
            seconds_of(operator, "timeout", timeout, positive=True)
        parts = _url_of(operator, url)
        settings: dict[str, Any] = {"follow_redirects": True, "verify": _tls(), "timeout": timeout, **(options or {})}
        if parts.username or parts.password:
            settings.setdefault("auth", (parts.username, parts.password))
        hooks = dict(settings.get("event_hooks", {}))
        hooks["request"] = [*hooks.get("request", []), _mask]
        self._client = partial(httpx.AsyncClient, **{**settings, "event_hooks": hooks})
        self._url = parts.copy_with(username=None, password=None)
        self._method, self._content = method.upper(), content
        # An encoded body has no bound: a chunk of some bytes may become gigabytes.
        self._headers = {"accept-encoding": "identity", **defaults, **_headers(operator, headers)}
        self.title = f"{operator}({self._method} {_named(self._url)})"

    def flow(self, of: Callable[[Requests], AsyncGenerator[list[Any], None]], executor: Executor) -> Flow[Any]:
        """The elements of lists, which `of` makes, one for each chunk of the body."""
        check_executor(self.operator, executor)
        lists: Flow[Any] = combinator_flow(self.title, lambda: OfAsync(partial(of, self), 1), uses=(eventloop.OURS,))
        return lists.flatten().subscribe_on(executor)

    def answer(self, more: Mapping[str, str | bytes] | None = None) -> AbstractAsyncContextManager[httpx.Response]:
        """Send the request. The body of the answer is read by demand; the connection is closed behind it."""
        return self._answer({**self._headers, **(more or {})})

    @asynccontextmanager
    async def _answer(self, headers: dict[str, str | bytes]) -> AsyncIterator[httpx.Response]:
        with self.named():
            async with self._client() as client:
                request = client.build_request(self._method, self._url, headers=headers, content=self._content)  # type: ignore[arg-type]
                response = await self._final(client, request)
                try:
                    yield response
                finally:
                    await response.aclose()

    async def _final(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        """The answer behind redirects, whose bodies are not read: httpx reads them, and they have no bound."""
        response = await client.send(request, stream=True, follow_redirects=False)
        followed = 0
        while client.follow_redirects and response.next_request is not None:
            await response.aclose()
            if followed >= client.max_redirects:
                raise httpx.TooManyRedirects(f"more than {client.max_redirects} redirects", request=response.request)
            followed += 1
            # httpx has made its headers, which have no credentials for another origin: those of the client stay away.
            further, auth = response.next_request, httpx.Auth()
            response = await client.send(further, auth=auth, stream=True, follow_redirects=False)
        return response

    def chunks(self, response: httpx.Response) -> aclosing[AsyncGenerator[bytes, None]]:
        """The body, up to 64 KiB at a time. ValueError where it has an encoding that was not asked for."""
        coded = [name for name in _tokens(response.headers.get("content-encoding", "")) if name != "identity"]
        if coded and not (len(coded) == 1 and coded[0] in _tokens(self._headers["accept-encoding"])):
            raise ValueError(
                f"{self.title}: the server sent the body with the content-encoding {shown(', '.join(coded))}, for which"
                " it was not asked: look at the server, or ask for one encoding with the header `accept-encoding`"
            )
        chunks: Any = _members(response) if coded == ["gzip"] else response.aiter_bytes()  # it is a generator
        return aclosing(chunks)

    def check(self, response: httpx.Response, only: int | None = None) -> None:
        """HTTPStatusError where the server has not answered with a body, or not with the `only` status."""
        if not response.is_success or only not in (None, response.status_code):
            raise httpx.HTTPStatusError(
                f"the server answered {response.status_code} {response.reason_phrase}".rstrip(),
                request=response.request,
                response=response,
            )

    def check_type(self, response: httpx.Response, expected: str) -> None:
        """ValueError where the body is of another type."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != expected:
            shows = f"with the type {shown(kind)}, where {expected} is needed"
            raise ValueError(f"{self.title}: the server answered {shows}: look at the URL")

    def check_size(self, failed: str) -> None:
        """ValueError where a parser has `failed`."""
        if failed:
            raise ValueError(f"{self.title}: {failed}: look at what the server sends, or give a larger `max_size`")

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors say which request they are of, and what to do."""
        try:
            yield
        except (httpx.LocalProtocolError, httpx.InvalidURL) as error:  # it quotes a header
            error.args = (f"{self.title}: the request can't be sent: look at its headers, and at the proxy",)
            error.__cause__ = error.__context__ = None
            raise
        except httpx.HTTPError as error:
            error.args = (f"{self.title}: {_what(error)}: {_advice(error)}",)
            raise


async def _members(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The body out of gzip. httpx gives the first of several members only, and does not notice where one is cut off."""
    unpack, chunk = _gunzip(), b""
    raw: Any = response.aiter_raw()  # a generator
    async with aclosing(raw) as packed:
        async for some in packed:
            data = some
            while data or len(chunk) == CHUNK:
                unpack = _gunzip() if unpack.eof else unpack
                try:
                    chunk = unpack.decompress(data, CHUNK)
                except zlib.error as error:
                    raise httpx.DecodingError(str(error)) from error
                if chunk:
                    yield chunk
                data = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
    if response.num_bytes_downloaded and not unpack.eof:
        raise httpx.RemoteProtocolError("peer closed connection before the end of the gzip body")


_gunzip: Final = partial(zlib.decompressobj, 16 + zlib.MAX_WBITS)


def _tokens(header: str) -> list[str]:
    """The names in a header that is a list, without their parameters."""
    names = (part.partition(";")[0].strip().lower() for part in header.split(","))
    return [name for name in names if name]


@cache
def _tls() -> Any:
    """The certificates that are trusted. To read them takes httpx 20 ms."""
    return httpx.create_ssl_context()


def _url_of(operator: str, url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL, ValueError):
        parts, host = httpx.URL(url), urlsplit(url).netloc
        # Of a password with a slash, the first part would be taken for a port, and the rest for the path.
        split = "@" in parts.path and ":" in host and "@" not in host
        if parts.scheme in ("http", "https") and parts.host and not split:
            return parts
    raise ValueError(
        f"{operator}: the URL can't be read, and is not shown, since there may be a password in it: write"
        " http://host:port/path, or https://; an @ in a password or a path is %40, a / in a password is %2F"
    )


def _headers(operator: str, headers: Mapping[str, str] | None) -> dict[str, str]:
    if headers is not None and not isinstance(headers, Mapping):
        raise TypeError(f"{operator}: headers must be a mapping, not {instead(headers)}")
    for name, value in (headers or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"{operator}: headers must be of str, not {instead(name)}: {instead(value)}")
        if not value.isprintable() or not value.isascii() or value != value.strip():
            raise ValueError(
                f"{operator}: the value of the header {name!r} has a line break, spaces around it, or a character"
                " that is not ASCII; it is not shown"
            )
    return {name.lower(): value for name, value in (headers or {}).items()}


def _named(url: httpx.URL) -> str:
    """A URL for messages: without user, password and query."""
    return f"{url.copy_with(username=None, password=None, query=None, fragment=None)}{'?…' if url.query else ''}"


class _Masked(httpx.URL):
    """A URL whose text is for the log of httpx, which has a line for each request."""

    def __str__(self) -> str:
        return _named(httpx.URL(self))

    __repr__ = __str__


async def _mask(request: httpx.Request) -> None:
    request.url = _Masked(request.url)


def _what(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__


def _advice(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        if status in (401, 403, 407):
            return "look at the user and the password, or at the token"
        if status in (429, 503):
            return "it has too much to do; `retry_after` says how long to wait"
        return "see the server's log" if status >= 500 else "look at the URL and at the request"
    if isinstance(error, httpx.TimeoutException):
        return "the server did not answer in time; see whether it hangs, or give it more"
    if isinstance(error, httpx.TooManyRedirects):
        return "look at the URL"
    if isinstance(error, httpx.UnsupportedProtocol):
        return "look at where the server redirects to"
    if isinstance(error, httpx.DecodingError):
        return "the body is not in the encoding that the server says"
    if isinstance(error, httpx.ConnectError):
        return "see whether the server runs"
    return "the connection broke; see the server's log, and that of a proxy between"
