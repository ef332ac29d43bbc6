"""
How HTTP engines are reached: one pool of connections, its time-outs, what is tried again, and how many requests begin at once.

Nothing outside this module knows which library does it.
"""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from ..errors import OptionError
from .openings import Openings

__all__ = ["FAILURES", "Client", "check_json", "lost_words", "never_sent"]

# Seconds before another try to connect. Only connecting is tried again, so that nothing is ever generated twice.
CONNECT_PAUSES_S = (0.0, 0.5)

# Idle connections are let go before the servers do it (uvicorn and llama.cpp after 5 s), so that none is closed while a request
# is written into it.
KEEP_ALIVE_S = 2.0

# From here on a body is written piece by piece, so that one prompt does not hold up the loop.
LARGE_BODY_BYTES = 1 << 18

_JSON = {"Content-Type": "application/json"}

FAILURES = (aiohttp.ClientError, OSError)
"""What a connection may fail with; time-outs are among them."""


class Client:
    """
    A client of one server. It connects directly: a proxy that the environment names would hold streams back.

    Certificates are checked against those that the system trusts; the environment's `SSL_CERT_FILE` names others.

    Args:
        url: Where the server is; a path stands before those of requests; a user with a password is sent, too.
        api_key: Sent as a bearer token.
        connect_timeout: Seconds for one try to connect.
        silence_timeout: Seconds in which the server has to take or send something.

    Raises:
        OptionError: The URL is none, or has a user beside the key.
    """

    def __init__(self, url: str, *, api_key: str | None, connect_timeout: float, silence_timeout: float) -> None:
        self._base = _checked(url)
        if api_key is not None and self._base.user is not None:
            shown = str(self._base.with_user(None))
            raise OptionError(
                option="url", value=shown, accepted="with an api_key it names no user: both would be sent as Authorization"
            )
        self._api_key = api_key
        self._connect_timeout = connect_timeout
        self._silence_timeout = silence_timeout
        self._openings = Openings()
        # It belongs to a loop, and an engine is made before one runs.
        self._made: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        """Where the server is, without a password."""
        return str(self._base.with_user(None))

    @asynccontextmanager
    async def post(self, path: str, body: dict[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
        """
        Post a JSON value, and give the answer as soon as its head is there.

        An answer that is left before its end takes its connection with it: that is how a server hears that nobody reads.

        Raises:
            FAILURES: The server cannot be reached, broke off, or was silent for too long.
        """
        response = await self._answered(path, msgspec.json.encode(body))
        # There is no connection any more if all of the answer came with its head.
        lost = None if response.connection is None else response.connection.protocol.closed  # type: ignore[union-attr]
        end = partial(_end_of_connection, response.content)
        if lost is not None:
            lost.add_done_callback(end)
        try:
            yield response
        finally:
            if lost is not None:
                lost.remove_done_callback(end)
            # One that was read to its end has given its connection back already.
            response.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._made is not None:
            await self._made.close()

    async def _answered(self, path: str, data: bytes) -> aiohttp.ClientResponse:
        url = self._base.joinpath(path.removeprefix("/"), encoded=True)
        pauses = iter(CONNECT_PAUSES_S)
        while True:
            # One that is long is read from anew by each try.
            content = data if len(data) < LARGE_BODY_BYTES else io.BytesIO(data)
            await self._openings.turn()
            try:
                # A server that does not even read what is sent is as silent as one that does not answer.
                async with asyncio.timeout(self._connect_timeout + self._silence_timeout):
                    return await self._session().post(url, data=content, headers=_JSON, allow_redirects=False)
            except FAILURES as error:
                pause = next(pauses, None)
                if pause is None or not never_sent(error):
                    raise
                await asyncio.sleep(pause)

    def _session(self) -> aiohttp.ClientSession:
        if self._made is None:
            # Without a limit: how many requests run at once is for others to say.
            connector = aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=KEEP_ALIVE_S,
                ssl=ssl.create_default_context() if self._base.scheme == "https" else True,
            )
            # A compressed stream would come in lumps.
            headers = {"Accept-Encoding": "identity", "User-Agent": "detok"}
            if self._api_key is not None:
                headers["Authorization"] = f"Bearer {self._api_key}"
            self._made = aiohttp.ClientSession(
                connector=connector,
                headers=headers,
                # Those of a balancer would bind all streams to one server.
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_timeout, sock_read=self._silence_timeout),
            )
        return self._made


def _end_of_connection(content: aiohttp.StreamReader, lost: asyncio.Future[None]) -> None:
    """
    Have whoever reads an answer know that nothing more comes.

    aiohttp (3.14) closes the connection at a chunk that is none, and leaves the reader waiting for ever.
    """
    if not lost.cancelled():
        lost.exception()
    if not content.is_eof() and content.exception() is None:
        content.set_exception(aiohttp.ClientPayloadError("the connection was closed within the answer"))


def check_json(sampling: Mapping[str, Any]) -> None:
    """
    Refuse what JSON cannot write.

    Raises:
        OptionError: Naming the option.
    """
    for name, value in sampling.items():
        try:
            msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise OptionError(option=name, value=value, accepted=f"it has to be JSON: {error}") from error


def never_sent(error: Exception) -> bool:
    """There was no connection, so the server never heard of the request."""
    return isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))


def lost_words(error: Exception, silence_timeout: float) -> str:
    """Say for a client what happened to the connection. It names no address."""
    if isinstance(error, (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError)):
        return "the engine cannot be reached: its certificate is not trusted, or it does not speak TLS"
    if never_sent(error):
        return "the engine cannot be reached"
    if isinstance(error, TimeoutError):
        return f"the engine sent nothing for {silence_timeout:g} s"
    if isinstance(error, aiohttp.ClientResponseError):
        return "the engine's answer is no HTTP"
    return "the connection to the engine was lost"


def _checked(url: str) -> URL:
    accepted = "it is like http://127.0.0.1:8000"
    try:
        parsed = URL(url)
    except (ValueError, TypeError) as error:
        raise OptionError(option="url", value=url, accepted=accepted) from error
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query_string or parsed.fragment:
        raise OptionError(option="url", value=url, accepted=accepted)
    return parsed if parsed.path.endswith("/") else parsed.with_path(f"{parsed.raw_path}/", encoded=True)
