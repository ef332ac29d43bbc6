"""
The files beside a tokenizer.json, merged into the keywords with which a class of transformers is called.

As ``PreTrainedTokenizerBase._from_pretrained`` of transformers 5.24 merges them: a tokenizer_config.json with an
``added_tokens_decoder`` is alone; without one, special_tokens_map.json goes before it, and added_tokens.json and the
tokenizer.json's own list of added tokens say which tokens there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["STANDARD", "Settings", "effective", "merge", "token_of"]

STANDARD = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The names of special tokens that every class knows, in the order in which they are added."""

EXTRA = "extra_special_tokens"
OLD_EXTRA = "additional_special_tokens"
BY_NAME = "model_specific_special_tokens"
DECLARED = "added_tokens_decoder"
NAMED = (*STANDARD, EXTRA, OLD_EXTRA, BY_NAME)
FLAGS = ("single_word", "lstrip", "rstrip")

IGNORED = ("tokenizer_class", "init_inputs")
# With a tokenizer.json, its post-processor says what stands around a text.
AROUND = ("add_bos_token", "add_eos_token")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a class is called with."""

    values: dict[str, Any]
    """The keywords; tokens are strings or ``tokenizers.AddedToken``."""

    declared: dict[int, Any]
    """The added tokens that the files list, by id; ids say in which order tokens are added, not which id they get."""

    around: Mapping[str, Any]
    """What tokenizer_config.json says of the tokens around a text. With a tokenizer.json the class does not see it."""


def effective(config: Mapping[str, Any], special_tokens_map: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Return what counts of both files. What does not is not looked at, so it may be anything.

    Args:
        config: The tokenizer_config.json.
        special_tokens_map: The special_tokens_map.json.
    """
    of_map = {} if DECLARED in config else dict(special_tokens_map)
    of_config = {key: value for key, value in config.items() if key not in of_map or key == EXTRA}
    if config.get(EXTRA):
        of_config.pop(OLD_EXTRA, None)
    if EXTRA in config or OLD_EXTRA in config or EXTRA in of_map:
        of_map.pop(OLD_EXTRA, None)
    # Objects of the map are tokens without being looked at, and one that has no text is a token without any.
    return of_config, {
        key: {"content": "", **one} if isinstance(one, Mapping) and key in STANDARD else one for key, one in of_map.items()
    }


def merge(
    config: Mapping[str, Any],
    special_tokens_map: Mapping[str, Any],
    added_tokens: Mapping[str, int],
    listed: Callable[[], Iterable[Mapping[str, Any]]] | None,
) -> Settings:
    """
    Return the keywords.

    Args:
        config: The tokenizer_config.json.
        special_tokens_map: The special_tokens_map.json.
        added_tokens: The added_tokens.json: ids by text.
        listed: Gives the ``added_tokens`` of the tokenizer.json, and is asked only if they count; None without such a file.
    """
    ignored = IGNORED if listed is None else (*IGNORED, *AROUND)
    values = {key: value for key, value in config.items() if key not in ignored}
    if OLD_EXTRA in values and not values.get(EXTRA):
        values[EXTRA] = values.pop(OLD_EXTRA)
    named = {key: values.pop(key) for key in list(values) if _is_named(key, values[key])}
    if isinstance(values.get(EXTRA), Mapping):
        named.update(values.pop(EXTRA))
    if named:
        values[BY_NAME] = named
    declared: dict[int, Any] = {}
    if DECLARED in config:
        declared = {int(token_id): token_of(token) for token_id, token in (config[DECLARED] or {}).items()}
    else:
        _take_map(values, special_tokens_map)
        declared = _declare(values, added_tokens, () if listed is None else listed())
    by_text = {str(token): token for _, token in declared.items()}
    values = {key: _with_tokens(value, named=key in NAMED) for key, value in values.items() if key != DECLARED}
    for key in STANDARD:
        if values.get(key) is not None:
            values[key] = by_text.get(str(values[key]), values[key])
    return Settings(values, declared, {key: config[key] for key in AROUND if key in config})


def token_of(value: Any, *, special: bool | None = None) -> Any:
    """
    Return a token of a file as ``tokenizers.AddedToken``; a string stays one.

    Args:
        value: A string, an object with "content" and flags, or a token already.
        special: Whether it is special, instead of what it says.
    """
    from tokenizers import AddedToken

    if not isinstance(value, Mapping):
        return value
    told: dict[str, Any] = {flag: bool(value.get(flag, False)) for flag in FLAGS}
    if value.get("normalized") is not None:
        told["normalized"] = bool(value["normalized"])
    is_special = bool(value.get("special", False)) if special is None else special
    return AddedToken(str(value.get("content", "")), special=is_special, **told)


def _is_named(key: str, value: Any) -> bool:
    return key.endswith("_token") and key not in STANDARD and isinstance(value, str)


def _take_map(values: dict[str, Any], special_tokens_map: Mapping[str, Any]) -> None:
    """What special_tokens_map.json says goes before tokenizer_config.json."""
    for key, value in special_tokens_map.items():
        if isinstance(value, Mapping) and key != EXTRA:
            value = token_of(value, special=True)
        elif key == EXTRA and isinstance(value, list):
            known = list(values.get(EXTRA) or [])
            tokens = [token_of(token, special=True) for token in value]
            value = known + [token for at, token in enumerate(tokens) if token not in known and token not in tokens[:at]]
        values[key] = value
    if isinstance(values.get(EXTRA), Mapping):
        values[BY_NAME] = {**values.get(BY_NAME, {}), **values.pop(EXTRA)}


def _declare(values: Mapping[str, Any], added_tokens: Mapping[str, int], listed: Iterable[Mapping[str, Any]]) -> dict[int, Any]:
    """The tokens of added_tokens.json, and over them those of the tokenizer.json."""
    from tokenizers import AddedToken

    special = {str(values[key]) for key in STANDARD if values.get(key)}
    special |= {str(token) for token in values.get(EXTRA) or ()}
    declared = {
        token_id: AddedToken(text, normalized=text not in special, special=text in special)
        for text, token_id in added_tokens.items()
    }
    return declared | {int(token["id"]): token_of(token) for token in listed}


def _with_tokens(value: Any, *, named: bool) -> Any:
    """The value with every object that is a token made one, at any depth: those with transformers' mark; if ``named``, any."""
    if isinstance(value, Mapping):
        if value.get("__type") == "AddedToken":
            return token_of(value)
        if named and isinstance(value.get("content"), str):
            # transformers 5 refuses these. Older versions wrote them, for what is special.
            return token_of(value, special=None if "special" in value else True)
        return {key: _with_tokens(item, named=named) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_tokens(item, named=named) for item in value]
    return value
