"""The endpoints: paths, and what answers there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from ..frontend.metrics import CONTENT_TYPE
from .chat import chat_completion
from .completions import completion
from .endpoint import Call, Endpoint, Handler, json_response
from .generation import Asked
from .schema import ChatBody, CompletionBody, DetokenizeBody, TokenizeBody
from .sse import EventStream
from .tokenize import detokenized, tokenized

if TYPE_CHECKING:
    from .app import Server

__all__ = ["routes"]


async def completions(call: Call) -> Response | EventStream:
    """Continue a prompt."""
    body = call.body(CompletionBody)
    asked = Asked.of(body, call.server.model(body.model), call.server.config, "cmpl")
    generation = await completion(asked, body)
    return await generation.respond()


async def chat_completions(call: Call) -> Response | EventStream:
    """Continue a chat."""
    body = call.body(ChatBody)
    asked = Asked.of(body, call.server.model(body.model), call.server.config, "chatcmpl")
    generation = await chat_completion(asked, body)
    return await generation.respond()


async def tokenize(call: Call) -> Response:
    """Encode."""
    body = call.body(TokenizeBody)
    return json_response(await tokenized(call.server.model(body.model), body, call.server.config))


async def detokenize(call: Call) -> Response:
    """Decode, special tokens kept, as vLLM does."""
    return await _detokenize(call, skips_by_default=False)


async def v1_detokenize(call: Call) -> Response:
    """Decode, special tokens left out, as SGLang does."""
    return await _detokenize(call, skips_by_default=True)


async def _detokenize(call: Call, *, skips_by_default: bool) -> Response:
    body = call.body(DetokenizeBody)
    return json_response(await detokenized(call.server.model(body.model), body, skips_by_default=skips_by_default))


async def models(call: Call) -> Response:
    """List the models, as OpenAI and vLLM do."""
    listed = [
        {
            "id": model.name,
            "object": "model",
            "created": model.created,
            "owned_by": "detok",
            "root": model.name,
            "parent": None,
            "max_model_len": model.max_model_len,
        }
        for model in call.server.models.values()
    ]
    return json_response({"object": "list", "data": listed})


async def health(call: Call) -> Response:
    """Say that the server is there."""
    return json_response({"status": "ok"})


async def metrics(call: Call) -> Response:
    """Give all counts, as Prometheus reads them."""
    return Response(call.server.registry.text(), headers={"content-type": CONTENT_TYPE})


def routes(server: Server) -> list[Route]:
    """Return the routes of a server."""

    def post(path: str, handler: Handler, *, generates: bool = False) -> Route:
        return Route(path, Endpoint(server, path, handler, generates=generates), methods=["POST"])

    def get(path: str, handler: Handler) -> Route:
        return Route(path, Endpoint(server, path, handler), methods=["GET"])

    return [
        post("/v1/completions", completions, generates=True),
        post("/v1/chat/completions", chat_completions, generates=True),
        post("/tokenize", tokenize),
        post("/v1/tokenize", tokenize),
        post("/detokenize", detokenize),
        post("/v1/detokenize", v1_detokenize),
        get("/v1/models", models),
        get("/health", health),
        get("/metrics", metrics),
    ]
