"""The endpoints: paths, and what answers there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import Route

from ..frontend.metrics import CONTENT_TYPE
from .chat import chat_completion
from .chat_prompts import chat_ids
from .completions import completion
from .dialects.messages import CountBody, MessagesBody, as_messages, refusal_body
from .dialects.messages import as_chat as messages_chat
from .dialects.responses import as_responses
from .dialects.responses_input import ResponsesBody
from .dialects.responses_input import as_chat as responses_chat
from .endpoint import Call, Described, Endpoint, json_response
from .generation import Asked, Generation
from .models import Model
from .openapi import description
from .schema import ChatBody, CompletionBody, DetokenizeBody, TokenizeBody
from .sse import EventStream
from .tokenize import detokenized, tokenized

if TYPE_CHECKING:
    from .app import Server

__all__ = ["routes"]


async def completions(call: Call) -> Response | EventStream:
    """Continue a prompt."""
    body = call.body(CompletionBody)
    asked = Asked.of(body, call.server.model(body.model), call.server.config, "cmpl", call.client_id, call.id)
    if call.server.config.log_prompts:
        call.log["prompt"] = body.prompt
    return await _generated(call, await completion(asked, body))


async def chat_completions(call: Call) -> Response | EventStream:
    """Continue a chat."""
    return await _generated(call, await _chat(call, call.body(ChatBody), "chatcmpl"))


async def responses(call: Call) -> Response | EventStream:
    """Answer, in the shape of OpenAI's Responses."""
    body = call.body(ResponsesBody)
    return await _generated(call, as_responses(await _chat(call, responses_chat(body), "resp"), body))


async def messages(call: Call) -> Response | EventStream:
    """Answer, in the shape of Anthropic's Messages."""
    return await _generated(call, as_messages(await _chat(call, messages_chat(call.body(MessagesBody)), "msg")))


async def count_tokens(call: Call) -> Response:
    """Count the tokens of a prompt of Anthropic's Messages."""
    body = call.body(CountBody)
    ids = await chat_ids(call.server.model(body.model), messages_chat(body), call.server.config)
    return json_response({"input_tokens": len(ids)})


async def _chat(call: Call, body: ChatBody, prefix: str) -> Generation:
    asked = Asked.of(body, call.server.model(body.model), call.server.config, prefix, call.client_id, call.id)
    if call.server.config.log_prompts:
        call.log["messages"] = body.messages
    return await chat_completion(asked, body)


async def _generated(call: Call, generation: Generation) -> Response | EventStream:
    asked = generation.asked
    call.log |= {"id": asked.id, "model": asked.model.name, "stream": asked.streams}
    call.log_at_end = generation.shape.usage
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
    return json_response({"object": "list", "data": [one for model in call.server.models.values() for one in _listed(model)]})


async def one_model(call: Call) -> Response:
    """Say the same of one."""
    name = call.scope["path_params"]["name"]
    if not name:
        return await models(call)  # /v1/models/
    return json_response(next(one for one in _listed(call.server.model(name)) if one["id"] == name))


def _listed(model: Model) -> list[dict[str, Any]]:
    """A model under each of its names."""
    common = {"object": "model", "created": model.created, "owned_by": "detok", "root": model.name, "parent": None}
    names = (model.name, *model.other_names)
    return [{"id": name, **common, "max_model_len": model.max_model_len} for name in names]


async def health(call: Call) -> Response:
    """Say that the server is there."""
    return json_response({"status": "ok"})


async def metrics(call: Call) -> Response:
    """Give all counts, as Prometheus reads them."""
    return Response(call.server.registry.text(), headers={"content-type": CONTENT_TYPE})


async def openapi(call: Call) -> Response:
    """Describe all of this."""
    return json_response(description(ENDPOINTS))


ENDPOINTS = (
    Described("POST", "/v1/completions", completions, CompletionBody, generates=True),
    Described("POST", "/v1/chat/completions", chat_completions, ChatBody, generates=True),
    Described("POST", "/v1/responses", responses, ResponsesBody, generates=True),
    Described("POST", "/v1/messages", messages, MessagesBody, generates=True, refusal_body=refusal_body),
    Described("POST", "/v1/messages/count_tokens", count_tokens, CountBody, refusal_body=refusal_body),
    Described("POST", "/tokenize", tokenize, TokenizeBody),
    Described("POST", "/v1/tokenize", tokenize, TokenizeBody),
    Described("POST", "/detokenize", detokenize, DetokenizeBody),
    Described("POST", "/v1/detokenize", v1_detokenize, DetokenizeBody),
    Described("GET", "/v1/models", models),
    Described("GET", "/v1/models/{name:path}", one_model),
    Described("GET", "/health", health),
    Described("GET", "/metrics", metrics),
    Described("GET", "/openapi.json", openapi),
)


def routes(server: Server) -> list[Route]:
    """Return the routes of a server."""
    return [Route(one.path, Endpoint(server, one), methods=[one.method]) for one in ENDPOINTS]
