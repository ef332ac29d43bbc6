"""What stands beside a tokenizer.json: tokenizer_config.json and special_tokens_map.json, read as transformers reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SourceError
from .reading import refuse_byte_order_mark

__all__ = ["TokenizerConfig", "check_tokens", "json_object", "read_config", "read_files"]

BESIDE = ("tokenizer_config.json", "special_tokens_map.json")
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
EXTRA_TOKENS = ("additional_special_tokens", "extra_special_tokens")
BY_NAME = "model_specific_special_tokens"
MEND = "mend it or take it away"
FORCED_CLEAN_UP = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"


@dataclass(frozen=True, slots=True)
class TokenizerConfig:
    """Both files, merged as transformers does: what tokenizer_config.json says goes before special_tokens_map.json."""

    values: Mapping[str, Any]

    version: str = "5.24"
    """Of transformers: the rules of which version count."""

    def cleans_up(self, model: str, transformers: str | None = None) -> bool:
        """
        Whether clean-up is on when nobody says otherwise.

        From transformers 5 it is left out for BPE models, which it corrupts, unless the configuration insists; up to 4.44 it was
        on where the configuration is silent.

        Args:
            model: The kind of the model, "BPE" or another.
            transformers: The version whose rules count, if not `version`.
        """
        major, minor = map(int, (transformers or self.version).split(".")[:2])
        wanted = self.values.get("clean_up_tokenization_spaces")
        if wanted is None:
            wanted = (major, minor) < (4, 45)
        return bool(wanted) and (major < 5 or model != "BPE" or bool(self.values.get(FORCED_CLEAN_UP)))

    def missing_tokens(self, tokenizer: Any) -> list[Any]:
        """The tokens that the configuration has and the tokenizer.json lacks, in the order in which transformers adds them."""
        from tokenizers import AddedToken

        present = {_facts(token) for token in tokenizer.get_added_tokens_decoder().values()}
        contents = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
        named = [token for token in map(self.values.get, NAMED_TOKENS) if token]
        names = {_content(token) for token in named}
        missing: list[Any] = []
        declared = self.values.get("added_tokens_decoder") or {}
        for _, token in sorted(declared.items(), key=lambda item: int(item[0])):
            added = _added_token(token, AddedToken, special=_content(token) in names)
            if _facts(added) not in present:
                missing.append(added)
                contents.add(added.content)
        for token in [*named, *self._extra_tokens()]:
            if _content(token) not in contents:
                missing.append(_added_token(token, AddedToken, special=True))
                contents.add(_content(token))
        return missing

    def _extra_tokens(self) -> Iterator[Any]:
        for key in EXTRA_TOKENS:
            extra = self.values.get(key) or []
            yield from extra.values() if isinstance(extra, Mapping) else extra


def read_config(directory: Path) -> TokenizerConfig:
    """
    Read what stands beside a vocabulary, as one; what tokenizer_config.json says counts first.

    Raises:
        SourceError: A file is no JSON object, or names tokens that cannot be.
    """
    values: dict[str, Any] = {}
    for name, content in zip(reversed(BESIDE), reversed(read_files(directory)), strict=True):
        check_tokens(directory / name, content or {})
        values.update((key, value) for key, value in (content or {}).items() if value is not None or key not in values)
    return TokenizerConfig(values)


def read_files(directory: Path) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """
    Return tokenizer_config.json and special_tokens_map.json; None for one that is not there.

    Raises:
        SourceError: One of them is no JSON object.
    """
    config, special_tokens_map = (json_object(path) if path.is_file() else None for path in map(directory.joinpath, BESIDE))
    return config, special_tokens_map


def json_object(path: Path) -> dict[str, Any]:
    """
    Return a JSON object that is a file.

    Raises:
        SourceError: It is none, or cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(path, found=f"cannot be read ({error.strerror})", accepted=MEND) from error
    refuse_byte_order_mark(data, path)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SourceError(path, found=f"is no JSON object ({error})", accepted=MEND) from error
    if not isinstance(content, dict):
        raise SourceError(path, found=f"is no JSON object (a {type(content).__name__}, not an object)", accepted=MEND)
    return content


def check_tokens(path: Path, content: Mapping[str, Any]) -> None:
    """
    Refuse tokens that cannot be.

    Args:
        path: The file.
        content: What it says, or a part of it.

    Raises:
        SourceError: Naming the field.
    """
    declared = content.get("added_tokens_decoder") or {}
    if not isinstance(declared, Mapping) or not all(str(key).isdecimal() for key in declared):
        raise _wrong(path, "added_tokens_decoder", "it maps ids to tokens")
    tokens = [("added_tokens_decoder", token) for token in declared.values()]
    tokens += [(name, content[name]) for name in NAMED_TOKENS if content.get(name) is not None]
    for name in (*EXTRA_TOKENS, BY_NAME):
        extra = content.get(name) or []
        if not isinstance(extra, (list, Mapping)) or (extra and name == BY_NAME and not isinstance(extra, Mapping)):
            raise _wrong(path, name, "it maps names to tokens" if name == BY_NAME else "it is a list of tokens")
        tokens += [(name, token) for token in (extra.values() if isinstance(extra, Mapping) else extra)]
    for name, token in tokens:
        text = token.get("content") if isinstance(token, Mapping) else token
        if not isinstance(text, str) or text.encode(errors="replace").decode() != text:
            raise _wrong(path, name, "a token is a string without lone surrogates, or an object with such a content")


def _wrong(path: Path, name: str, accepted: str) -> SourceError:
    return SourceError(path, found=f"{name} is invalid", accepted=accepted)


def _content(token: Any) -> str:
    return str(token.get("content", "")) if isinstance(token, Mapping) else str(token)


def _added_token(token: Any, make: Any, *, special: bool) -> Any:
    if not isinstance(token, Mapping):
        return make(str(token), special=special)
    flags = {name: bool(token.get(name, False)) for name in ("single_word", "lstrip", "rstrip")}
    is_special = special or bool(token.get("special", False))
    return make(_content(token), normalized=bool(token.get("normalized", not is_special)), special=is_special, **flags)


def _facts(token: Any) -> tuple[Any, ...]:
    return token.content, token.single_word, token.lstrip, token.rstrip, token.normalized, token.special
