"""What the page's routes answer, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

import detok
from detok.data import sample_names
from detok.server.page import page_routes
from detok.server.page.asked import MAX_BODY, MAX_STOP, MAX_STOPS, MAX_TEXT, MAX_TOKENS
from detok.server.page.routes import HEADERS, STATIC

EMBEDDED = detok.load(detok.EMBEDDED)
FILES = ["/", *(f"/page/{path.name}" for path in sorted(STATIC.iterdir()) if path.name != "index.html")]


def asks(method: str, path: str, **options: Any) -> httpx.Response:
    """Ask an application that has the page, without a port."""
    application = Starlette(routes=page_routes({"embedded": EMBEDDED, "other": EMBEDDED}, metrics=False))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://page") as client:
            return await client.request(method, path, **options)

    return asyncio.run(ask())


@pytest.mark.parametrize("path", FILES)
def test_file_comes_with_the_headers_of_a_careful_page(path: str) -> None:
    """Every file has its type, says what the browser may do, and is not sent twice."""
    answer = asks("GET", path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(
        {"css": "text/css", "js": "text/javascript", "svg": "image/svg"}.get(path.rpartition(".")[2], "text/html")
    )
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    again = asks("GET", path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_page_without_its_libraries_names_the_extra() -> None:
    """Whoever has not installed it is told how."""
    code = "import sys; sys.modules['starlette'] = None; import detok.server.page"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "needs the library 'starlette'; install it with: pip install 'detok[serve]'" in done.stderr


def test_policy_allows_nothing_but_the_page_itself() -> None:
    """No inline code, no other host, no frame."""
    policy = dict(rule.split(" ", 1) for rule in HEADERS["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "connect", "img")} == {"'self'"}


def test_files_name_no_other_host_and_write_no_html() -> None:
    """No address but the name space of SVG; text gets in as text; links are relative, so that the page may stand anywhere."""
    for path in STATIC.iterdir():
        content = path.read_text(encoding="utf-8")
        assert set(re.findall(r"\bhttps?://[^\s\"']+", content)) <= {"http://www.w3.org/2000/svg"}, path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|setAttribute\(\"style", content), (
            path
        )
        assert not re.search(r"(src|href)=\"/|import .* from \"/|\"/(page|v1|metrics)", content), path
        assert not re.search(r"\son\w+=|\sstyle=", content) or path.suffix != ".html", path


def test_setup_names_what_there_is() -> None:
    """Tokenizers, examples and limits."""
    setup = asks("GET", "/page/setup").json()
    assert [tokenizer["name"] for tokenizer in setup["tokenizers"]] == ["embedded", "other"]
    assert setup["tokenizers"][0]["description"] == EMBEDDED.description
    assert {example["name"] for example in setup["examples"]} >= set(sample_names())
    assert (setup["models"], setup["metrics"]) == (True, False)


def test_every_example_can_be_traced() -> None:
    """None is over a limit, and each stop of one is found."""
    for example in asks("GET", "/page/setup").json()["examples"]:
        answer = asks("POST", "/page/trace", json={"text": example["text"], "stop": example["stop"]})
        assert answer.status_code == 200, example
        assert (answer.json()["stop_reason"] is not None) == bool(example["stop"]), example


def test_trace_of_text_and_of_its_ids_is_the_same() -> None:
    """The ids of a text give what the text gives; the first tokenizer is the default."""
    of_text = asks("POST", "/page/trace", json={"text": "naïve 🦜"}).json()
    of_ids = asks("POST", "/page/trace", json={"ids": EMBEDDED.encode("naïve 🦜"), "tokenizer": "embedded"}).json()
    assert of_text == of_ids
    assert of_text["text"] == "naïve 🦜"
    assert of_text["rows"][-1]["id"] is None


REFUSED: list[tuple[Any, int, str]] = [
    ({}, 400, "give one of the two"),
    ({"text": "a", "ids": [1]}, 400, "give one of the two"),
    ({"ids": [1, "2"]}, 400, r"\$\.ids\[1\]"),
    ({"ids": [1, 2.5]}, 400, r"\$\.ids\[1\]"),
    ({"ids": [1, True]}, 400, r"\$\.ids\[1\]"),
    ({"ids": [0] * (MAX_TOKENS + 1)}, 400, r"\$\.ids"),
    ({"text": "a" * (MAX_TEXT + 1)}, 400, r"\$\.text"),
    ({"text": "a", "stop": [""]}, 400, r"\$\.stop\[0\]"),
    ({"text": "a", "stop": ["a" * (MAX_STOP + 1)]}, 400, r"\$\.stop\[0\]"),
    ({"text": "a", "stop": ["a"] * (MAX_STOPS + 1)}, 400, r"\$\.stop"),
    ({"text": "a", "strategy": "guess"}, 400, r"\$\.strategy"),
    ({"text": "a", "byte_fallback": "both"}, 400, r"\$\.byte_fallback"),
    ({"text": "a", "colour": "red"}, 400, "colour"),
    ({"text": "a", "tokenizer": "none"}, 404, "there are 'embedded', 'other'"),
    ([], 400, "object"),
]


@pytest.mark.parametrize(("body", "status", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_trace_of_a_bad_body_is_refused(body: Any, status: int, words: str) -> None:
    """The error has the shape of OpenAI's, and names the field."""
    answer = asks("POST", "/page/trace", json=body)
    assert answer.status_code == status
    assert re.search(words, answer.json()["error"]["message"])


@pytest.mark.parametrize("body", [b"", b"{", b'{"text": "\xff"}', b'{"text": "\\ud800"}', b"null"])
def test_trace_of_no_json_is_refused(body: bytes) -> None:
    """Whatever comes, the answer is an error and not a fault."""
    answer = asks("POST", "/page/trace", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_trace_of_another_type_is_refused(kind: str) -> None:
    """What a page of another site could send unasked does no work here."""
    assert asks("POST", "/page/trace", content=b'{"text": "a"}', headers={"Content-Type": kind}).status_code == 415


def test_trace_of_a_long_body_is_refused_before_it_is_read() -> None:
    """At the limit a body is read, over it no more than that is taken."""
    kind = {"Content-Type": "application/json"}
    body = json.dumps({"text": "a"}).encode()
    assert asks("POST", "/page/trace", content=body.ljust(MAX_BODY), headers=kind).status_code == 200
    assert asks("POST", "/page/trace", content=body.ljust(MAX_BODY + 1), headers=kind).status_code == 413


def test_trace_of_any_text_is_plain_ascii() -> None:
    """Markup and line separators are escaped on the wire, too."""
    answer = asks("POST", "/page/trace", json={"text": "<script>\u2028é"})
    assert answer.content.isascii()
    assert answer.json()["text"] == "<script>\u2028é"
    assert answer.headers["cache-control"] == "no-store"
