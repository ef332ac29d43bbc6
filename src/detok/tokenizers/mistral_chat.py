"""Chats of Mistral's own tokenizers, by mistral_common: there is no template, and no text spells a special token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import MessageError, OptionError
from .reading import library

__all__ = ["MistralChat", "from_mistral", "from_path", "from_tekkenizer"]

PURPOSE = "a chat of a Mistral model"


class MistralChat:
    """A ``MistralTokenizer``, as what makes ids of a chat."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        continue_final_message: bool,
        options: Mapping[str, Any],
    ) -> list[int]:
        """
        Encode a chat.

        Raises:
            MessageError: mistral_common refuses it; or it has something else than text, which makes no ids alone.
            OptionError: An option is none of a ``ChatCompletionRequest``.
        """
        request = library("mistral_common.protocol.instruct.request", extra="mistral", purpose=PURPOSE).ChatCompletionRequest
        for name, value in options.items():
            if name not in request.model_fields:
                accepted = f"with mistral_common the options are {', '.join(sorted(request.model_fields))}"
                raise OptionError(option=name, value=value, accepted=accepted)
        try:
            asked = request.from_openai(list(messages), tools=tools, continue_final_message=continue_final_message, **options)
            encoded = self._tokenizer.encode_chat_completion(asked)
        except Exception as error:  # its own, pydantic's, and what its conversions run into
            found = f"are refused by mistral_common: {' '.join(str(error).split())}"
            raise MessageError("messages", found=found, accepted="see its documentation of roles and their order") from error
        if encoded.images or encoded.audios:
            raise MessageError("messages", found="have images or audio", accepted="ids alone cannot carry them; give text")
        return list(encoded.tokens)


def from_path(path: Path) -> MistralChat:
    """By a SentencePiece file whose name tells its version, such as ``tokenizer.model.v3``."""
    return MistralChat(_module("mistral").MistralTokenizer.from_file(str(path)))


def from_tekkenizer(tekkenizer: Any) -> MistralChat:
    """By a ``Tekkenizer`` of any file; from_file of the library goes by the file's name."""
    version = tekkenizer.version
    instruct = getattr(_module("instruct"), f"InstructTokenizer{version.value.upper()}")
    validator = library("mistral_common.protocol.instruct.validator", extra="mistral", purpose=PURPOSE)
    normalize = library("mistral_common.protocol.instruct.normalize", extra="mistral", purpose=PURPOSE)
    return MistralChat(
        _module("mistral").MistralTokenizer(
            instruct(tekkenizer),
            validator=validator.get_validator(version, mode=validator.ValidationMode.test),
            request_normalizer=normalize.get_normalizer(version, tekkenizer.model_settings_builder),
        )
    )


def from_mistral(tokenizer: Any) -> MistralChat:
    """By a ``MistralTokenizer``."""
    return MistralChat(tokenizer)


def _module(name: str) -> Any:
    return library(f"mistral_common.tokens.tokenizers.{name}", extra="mistral", purpose=PURPOSE)
