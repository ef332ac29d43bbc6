"""The description tells what is there, and the server keeps to it whatever it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from detok.server.endpoints import ENDPOINTS
from detok.server.openapi import description
from tests.server.support import model, on_socket, server_of

schema = schemathesis.openapi.from_dict(description(ENDPOINTS))

CHECKS: list[Any] = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server on a socket: what is no HTTP does not come through in process."""
    with on_socket(lambda: server_of(model())) as url:
        yield url


@schema.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_server_keeps_to_its_description(case: Any, url: str) -> None:
    """No body of the described shape, and none beside it, makes it fail."""
    case.call_and_validate(base_url=url, checks=CHECKS)


def test_every_route_is_described() -> None:
    """With all that it takes."""
    described = schema.raw_schema
    assert {*described["paths"]} >= {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/health", "/metrics"}
    fields = described["components"]["schemas"]["CompletionBody"]["properties"]
    assert {"prompt", "stop_regex", "return_token_ids", "byte_fallback"} <= fields.keys()


@pytest.mark.parametrize("name", ["CompletionBody", "ChatBody", "TokenizeBody", "DetokenizeBody", "Error"])
def test_every_body_has_a_schema(name: str) -> None:
    """Under its own name."""
    assert schema.raw_schema["components"]["schemas"][name]["type"] == "object"
