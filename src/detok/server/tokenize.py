"""``POST /tokenize`` and ``/detokenize``, for clients of vLLM and of SGLang alike."""

from __future__ import annotations

import asyncio
from typing import Any

from ..errors import OptionError
from .chat_prompts import chat_ids
from .config import ServerConfig
from .models import Model
from .schema import DetokenizeBody, TokenizeBody

__all__ = ["detokenized", "tokenized"]


async def tokenized(model: Model, body: TokenizeBody, config: ServerConfig) -> dict[str, Any]:
    """
    Return the ids of a prompt, of several or of a chat.

    Raises:
        OptionError: There is neither, or both.
        DetokError: It cannot be encoded.
    """
    if (body.prompt is None) == (body.messages is None):
        value = "both" if body.prompt is not None else None
        raise OptionError(option="prompt", value=value, accepted="what is tokenized is a prompt or messages: give one of the two")
    if body.messages is not None:
        return _answer(model, await chat_ids(model, body, config), body)
    adds = body.add_special_tokens is not False
    if isinstance(body.prompt, str):
        return _answer(model, await model.encode(body.prompt, add_special_tokens=adds), body)
    prompts = body.prompt or []
    config.limits.check_choices(len(prompts), 1)
    lists = await asyncio.gather(*(model.encode(prompt, add_special_tokens=adds) for prompt in prompts))
    answers = [_answer(model, ids, body) for ids in lists]
    columns = {key: [answer[key] for answer in answers] for key in ("count", "tokens")}
    strings = {"token_strs": [answer["token_strs"] for answer in answers] if body.return_token_strs else None}
    return {**columns, **strings, "max_model_len": model.max_model_len}


def _answer(model: Model, ids: list[int], body: TokenizeBody) -> dict[str, Any]:
    strings = [model.tokenizer.piece(token_id).text for token_id in ids] if body.return_token_strs else None
    return {"count": len(ids), "max_model_len": model.max_model_len, "tokens": ids, "token_strs": strings}


async def detokenized(model: Model, body: DetokenizeBody, *, skips_by_default: bool) -> dict[str, Any]:
    """
    Return the text of ids, or the texts of lists of them, under the names of both dialects.

    Raises:
        OptionError: Lists and ids are mixed, or an id is negative or one that the tokenizer does not have.
    """
    skips = skips_by_default if body.skip_special_tokens is None else body.skip_special_tokens
    lists = [one for one in body.tokens if isinstance(one, list)]
    if lists and len(lists) < len(body.tokens):
        raise OptionError(option="tokens", value=body.tokens[:4], accepted="it is a list of ids, or a list of such lists")
    several: list[Any] = lists or [body.tokens]
    for place, ids in enumerate(several):
        _check_ids(model, ids, f"tokens[{place}]" if lists else "tokens")
    texts = await asyncio.to_thread(lambda: [model.tokenizer.decode(ids, skip_special_tokens=skips) for ids in several])
    text = texts if lists else texts[0]
    return {"prompt": text, "text": text}


def _check_ids(model: Model, ids: list[int], where: str) -> None:
    known = model.known_ids
    for position, token_id in enumerate(ids):
        # Rows of the model beyond its tokenizer's ids are no text, but no fault of the client either.
        if token_id not in known and not model.tokenizer.vocab_size <= token_id < model.id_limit:
            accepted = f"the tokenizer of {model.name!r} has no such id; its ids are from 0 to {model.tokenizer.vocab_size - 1:,}"
            raise OptionError(option=f"{where}[{position}]", value=token_id, accepted=accepted)
