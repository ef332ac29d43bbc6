"""How HTTP engines are reached: one pool of connections, its time-outs, and what is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import msgspec

from ..errors import OptionError

__all__ = ["check_json", "lost_words", "never_sent", "open_client", "with_json"]

# Only connecting is tried again (after 0 and 0.5 s), so that nothing is ever generated twice.
CONNECT_RETRIES = 2

# Idle connections are let go before the servers do it (uvicorn and llama.cpp after 5 s), so that none is closed while a request
# is written into it.
KEEP_ALIVE_S = 2.0


def open_client(url: str, *, api_key: str | None, connect_timeout: float, silence_timeout: float) -> httpx.AsyncClient:
    """
    Return a client of one server. It connects directly: a proxy that the environment names would hold streams back.

    Raises:
        OptionError: The URL is none.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_S)
    return httpx.AsyncClient(
        base_url=_checked(url),
        # A compressed stream would come in lumps.
        headers={"Accept-Encoding": "identity", **({} if api_key is None else {"Authorization": f"Bearer {api_key}"})},
        timeout=httpx.Timeout(silence_timeout, connect=connect_timeout, pool=None),
        transport=httpx.AsyncHTTPTransport(retries=CONNECT_RETRIES, limits=limits),
    )


def with_json(body: dict[str, Any]) -> dict[str, Any]:
    """Return what httpx needs to post a JSON value."""
    return {"content": msgspec.json.encode(body), "headers": {"Content-Type": "application/json"}}


def check_json(sampling: Mapping[str, Any]) -> None:
    """
    Refuse what JSON cannot write.

    Raises:
        OptionError: Naming the option.
    """
    for name, value in sampling.items():
        try:
            msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise OptionError(option=name, value=value, accepted=f"it has to be JSON: {error}") from error


def never_sent(error: httpx.HTTPError) -> bool:
    """There was no connection, so the server never heard of the request."""
    return isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))


def lost_words(error: httpx.HTTPError, silence_timeout: float) -> str:
    """Say for a client what happened to the connection. It names no address."""
    if never_sent(error):
        return "the engine cannot be reached"
    if isinstance(error, httpx.ReadTimeout):
        return f"the engine sent nothing for {silence_timeout:g} s"
    return "the connection to the engine was lost"


def _checked(url: str) -> httpx.URL:
    accepted = "it is like http://127.0.0.1:8000"
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise OptionError(option="url", value=url, accepted=accepted) from error
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.fragment:
        raise OptionError(option="url", value=url, accepted=accepted)
    return parsed
