"""
Which class of transformers ``AutoTokenizer`` takes for a directory.

The order of its questions is read in ``models/auto/tokenization_auto.py`` of transformers 5.24. Which class belongs to which
model is a table there; `detok.data` has it as ``transformers_classes.json``, and ``scripts/transformers_classes.py`` writes that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from typing import Any, Literal

from ...data import tokenizer_directory
from ...errors import SourceError

__all__ = ["BACKEND", "FOLLOWED", "MISTRAL", "Chosen", "Kind", "choose"]

FOLLOWED = (5, 24)
"""The version of transformers, major and minor, whose rules are followed."""

BACKEND = "TokenizersBackend"
"""The class that takes a tokenizer.json as it is; PreTrainedTokenizerFast is its older name."""

MISTRAL = "MistralCommonBackend"
"""The class for a tekken.json, which counts only where mistral-common is installed."""

BASES = (BACKEND, "PythonBackend", "PreTrainedTokenizerFast", "PreTrainedTokenizer")
"""Classes that say nothing of a model."""

Kind = Literal["reads", "rebuilds", "python"]
"""What a class does with a tokenizer.json: it reads it as it is, takes only the vocabulary out of it, or is Python code."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A class of transformers."""

    name: str
    kind: Kind


def choose(
    source: object,
    config: Mapping[str, Any],
    model: Mapping[str, Any],
    *,
    is_byte_level: Callable[[], bool],
    has_tekken: bool,
) -> Chosen:
    """
    Return the class that AutoTokenizer takes.

    Args:
        source: The directory, as it was named.
        config: Its tokenizer_config.json.
        model: Its config.json.
        is_byte_level: Whether the text of its tokenizer.json has the word ``"ByteLevel"``.
        has_tekken: Whether it has a tekken.json, and mistral-common is installed.

    Raises:
        SourceError: The tokenizer is code of its own.
    """
    table = _table()
    model_type, known = _model_type(model)
    named = _text(config.get("tokenizer_class")) or None
    wanted = named or _text(model.get("tokenizer_class")) or None
    registered = table["models"].get(model_type)
    distrusted = {model_type, _text(model.get("model_name"))} & set(table["distrusted"])
    own = registered or table["shared"].get(model_type)
    code = _remote_code(config)
    if code is None:
        if any(fnmatch(str(source).lower(), pattern) for pattern in table["paths"]):
            return _class(BACKEND)
        if _plain(wanted) == "LlamaTokenizer" and registered != MISTRAL and not distrusted and is_byte_level():
            return _class(BACKEND)
        if wanted is not None and registered is not None and _plain(registered) != _plain(wanted):
            return _of_two(registered, registered if distrusted else wanted, has_tekken)
    elif model_type not in table["distrusted"] and not (known and own) and (named is None or _maybe_class(named) is None):
        raise SourceError(
            str(source),
            found=f"its tokenizer is code of its own ({code}), which is never run",
            accepted="give its tokenizer.json as a file, or an object that was made with trust_remote_code",
        )
    if wanted is not None:
        found = _maybe_class(str(_plain(wanted)))
        return _class(BACKEND) if found is None or found.name == "PythonBackend" else found
    if not known or own is None or (own == MISTRAL and not has_tekken):
        return _class(BACKEND)
    return _class(own)


def _of_two(registered: str, wanted: str, has_tekken: bool) -> Chosen:
    """The class where the model's own and the one that is named differ."""
    if registered == MISTRAL:
        return _class(MISTRAL if has_tekken else BACKEND)
    found = None if registered in BASES else _maybe_class(wanted)
    return _class(BACKEND) if found is None or found.name in BASES else found


def _model_type(model: Mapping[str, Any]) -> tuple[str, bool]:
    """The type of the model that counts, and whether transformers knows it."""
    table = _table()
    found = _text(model.get("model_type"))
    encoder = model.get("encoder")
    if found == "encoder-decoder" and "tokenizer_class" not in model:
        # The encoder's tokenizer counts; its configuration is BERT's where there is none.
        found = _text(encoder.get("model_type")) if isinstance(encoder, Mapping) else "bert"
    if found == "mistral" and "layer_types" in model:
        found = "ministral"
    return table["renamed"].get(found, found), found in table["configurations"]


def _remote_code(config: Mapping[str, Any]) -> str | None:
    """The name of the class in a directory's own code, if that is what it asks for."""
    found = config.get("auto_map")
    if isinstance(found, Mapping):
        found = found.get("AutoTokenizer")
    if not found:
        return None
    return str(next((name for name in reversed(found) if name), "")) if isinstance(found, (list, tuple)) else str(found)


def _maybe_class(name: str) -> Chosen | None:
    """The class that a name means, if transformers has one."""
    classes = _table()["classes"]
    row = classes.get(name) or classes.get(_plain(name))
    return None if row is None else Chosen(*row)


def _class(name: str) -> Chosen:
    return _maybe_class(name) or Chosen(name, "python")


def _plain(name: str | None) -> str | None:
    return None if name is None else name.removesuffix("Fast")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads((tokenizer_directory() / "transformers_classes.json").read_bytes())
    return table
