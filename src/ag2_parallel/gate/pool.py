"""The engine's one connection pool: an aiohttp session on the engine loop."""

from __future__ import annotations

import asyncio
import base64
import os
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import httpx
from yarl import URL

from ag2_parallel.gate.off_loop import off_loop
from ag2_parallel.gate.proxies import environment_proxy
from ag2_parallel.gate.resolver import DaemonResolver
from ag2_parallel.gate.wire import HeaderList, Reply, decoded_headers

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ag2_parallel.gate.request import ModelRequest

_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_KEEP_ALIVE: Final = 60.0
_LONGEST_HEADER: Final = 64 * 1024
_ONE_GO: Final = 512 * 1024
_BROKEN: Final = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientConnectionResetError)
_ITS_ERRORS: Final = (aiohttp.ClientError, OSError, ValueError)
"""What sending may raise, to be raised as what httpx would have raised; TimeoutError is an OSError."""

_USED: Final = "ag2_parallel_used"
"""What marks a connection that had a request before."""

_NOT_ADDED: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would make up: what the SDK did not send is not sent."""

_TURNS = 10
"""Turns of the loop until the sockets are freed: one after a transport was closed, some more after a cut while it connected."""


class Pool:
    """Sends requests over connections shared by all attempts. Made and used on the engine loop."""

    def __init__(self, spawn: Callable[[Callable[[], None]], None]) -> None:
        """`spawn` runs a blocking function on a daemon thread."""
        self._spawn = spawn
        self._session: aiohttp.ClientSession | None = None
        self._fresh: set[asyncio.Task[Any] | None] = set()
        self._tls: dict[tuple[str | None, ...], asyncio.Task[ssl.SSLContext]] = {}

    async def send(self, request: ModelRequest, body: bytes) -> Reply:
        """Send `request`; the answer's head. Raises httpx exceptions."""
        url = _url(request.url)
        try:
            proxy = environment_proxy(url)
            proxy_url, known = (None, ()) if proxy is None else _proxy(proxy)
            secure = url.scheme == "https" or (proxy_url is not None and proxy_url.scheme == "https")
            tls: Any = await self._tls_context() if secure else True
            timeout = _timeout(request.timeout.get("connect"), request.timeout.get("read"))
            once_more = True
            while True:
                try:
                    response = await self._opened().request(
                        request.method,
                        url,
                        data=_payload(body),
                        headers=request.headers if url.scheme == "https" else [*request.headers, *known],
                        allow_redirects=False,
                        timeout=timeout,
                        ssl=tls,
                        proxy=proxy_url,
                        proxy_headers=dict(known),  # those of a tunnel; a plain request carries them itself
                    )
                except _BROKEN as error:
                    # The server closed an idle connection while the request was on its way: no failure of the call.
                    if not once_more or self._has_fresh() or isinstance(error, aiohttp.ClientConnectorError):
                        raise
                    once_more = False
                else:
                    return _PoolReply(response, request)
        except _ITS_ERRORS as error:
            raise _translated(error, request) from error
        finally:
            self._fresh.discard(asyncio.current_task())

    def _has_fresh(self) -> bool:
        """Whether the connection that this task got was new."""
        return asyncio.current_task() in self._fresh

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            resolver = DaemonResolver(self._spawn)
            self._session = aiohttp.ClientSession(
                connector=_Connector(self._fresh, limit=0, keepalive_timeout=_KEEP_ALIVE, resolver=resolver),
                cookie_jar=aiohttp.DummyCookieJar(),  # one task's cookies are nothing to the others
                skip_auto_headers=_NOT_ADDED,
                timeout=aiohttp.ClientTimeout(total=None),
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
            )
        return self._session

    async def _tls_context(self) -> ssl.SSLContext:
        """The context that httpx would use, made once, off the loop: it reads certificates for 20 to 80 ms.

        Once for each place that the environment names: it may change between runs, like that of the proxies.
        """
        named = tuple(map(os.environ.get, _CERTIFICATES))
        made = self._tls.get(named)
        if made is None or (made.done() and made.exception()):
            made = self._tls[named] = asyncio.ensure_future(off_loop(self._spawn, _trusting_context))
        return await asyncio.shield(made)

    async def close(self) -> None:
        """Close every connection, and wait until the sockets are gone."""
        for made in self._tls.values():
            made.cancel()
        await asyncio.gather(*self._tls.values(), return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            for _ in range(_TURNS):
                await asyncio.sleep(0)


class _Connector(aiohttp.TCPConnector):
    """Notes which tasks got a new connection; a trace would tell too, with some objects for each request."""

    def __init__(self, fresh: set[asyncio.Task[Any] | None], **options: Any) -> None:
        """The tasks are added to `fresh`."""
        super().__init__(**options)
        self._fresh = fresh

    async def connect(self, *args: Any, **options: Any) -> aiohttp.connector.Connection:
        """A connection from the pool, or a new one."""
        connection = await super().connect(*args, **options)
        protocol: Any = connection.protocol
        if not hasattr(protocol, _USED):
            setattr(protocol, _USED, True)
            self._fresh.add(asyncio.current_task())
        return connection


class _PoolReply:
    """An answer from the pool."""

    def __init__(self, response: aiohttp.ClientResponse, request: ModelRequest) -> None:
        self._response = response
        self._request = request
        self.status = response.status
        self.headers: HeaderList = decoded_headers(
            (name.decode("ascii", "replace"), value.decode("utf-8", "replace")) for name, value in response.raw_headers
        )

    async def read(self) -> bytes:
        try:
            return await self._response.read()
        except _ITS_ERRORS as error:
            raise _translated(error, self._request) from error

    async def next_chunk(self) -> bytes:
        try:
            return await self._response.content.readany()
        except _ITS_ERRORS as error:
            raise _translated(error, self._request) from error

    def close(self) -> None:
        self._response.close()  # at its end the response has given its connection back, and this does nothing


def _trusting_context() -> ssl.SSLContext:
    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _payload(body: bytes) -> bytes | BytesIO | None:
    # aiohttp writes plain bytes in one go, and warns past a megabyte; a file is written piece by piece.
    return BytesIO(body) if len(body) > _ONE_GO else body or None


@lru_cache(maxsize=256)
def _url(url: str) -> URL:
    return URL(url, encoded=True)


@lru_cache(maxsize=256)
def _proxy(proxy: str) -> tuple[URL, tuple[tuple[str, str], ...]]:
    """A proxy's address and a header with its credentials: apart, so that no error shows them."""
    url = URL(proxy)
    if url.user is None and url.password is None:
        return url, ()
    said = base64.b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode()
    return url.with_user(None), (("Proxy-Authorization", f"Basic {said}"),)


@lru_cache(maxsize=256)
def _timeout(connect: float | None, read: float | None) -> aiohttp.ClientTimeout:
    # `connect` also covers the look-up of the name; nothing waits for the pool, which has no limit.
    return aiohttp.ClientTimeout(total=None, connect=connect, sock_read=read)


def _translated(error: Exception, request: ModelRequest) -> Exception:
    kind, text = _meaning(error)
    return kind(text.format(endpoint=request.endpoint, error=_said(error)))


def _meaning(error: Exception) -> tuple[type[httpx.TransportError | httpx.DecodingError], str]:
    for types, kind, text in _MEANINGS:
        if isinstance(error, types):
            return kind, text
    return httpx.NetworkError, "{endpoint}: {error}"


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


_MEANINGS: Final[tuple[tuple[Any, type[Any], str], ...]] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout, "{endpoint} did not accept a connection in time"),
    (TimeoutError, httpx.ReadTimeout, "{endpoint} sent nothing for longer than the read timeout"),
    (aiohttp.ClientProxyConnectionError, httpx.ProxyError, "no connection to the proxy for {endpoint}: {error}"),
    (aiohttp.ClientHttpProxyError, httpx.ProxyError, "the proxy refused {endpoint}: {error}"),
    (aiohttp.ClientConnectorError, httpx.ConnectError, "no connection to {endpoint}: {error}"),
    (
        aiohttp.ServerDisconnectedError,
        httpx.RemoteProtocolError,
        "{endpoint} closed the connection without sending an answer",
    ),
    (
        aiohttp.ClientPayloadError,
        httpx.RemoteProtocolError,
        "{endpoint} broke off in the middle of its answer: {error}",
    ),
    (aiohttp.ContentTypeError, httpx.DecodingError, "{endpoint}: {error}"),
    (
        (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError),
        httpx.UnsupportedProtocol,
        "{endpoint} is no address to send to: {error}",
    ),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError, "{endpoint} does not speak HTTP properly: {error}"),
    ((aiohttp.ClientOSError, OSError), httpx.ReadError, "the connection to {endpoint} broke: {error}"),
    (ValueError, httpx.LocalProtocolError, "the request to {endpoint} cannot be sent: {error}"),
)
