"""The tokenizer of a directory: its files read, its class chosen, its tokens added."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import SourceError
from ..huggingface_config import check_tokens, json_object, read_files
from ..reading import Once
from .classes import BACKEND, MISTRAL, Chosen, choose
from .mistral import mend_pattern
from .recipes import RECIPES, Parts, Recipe, put_around
from .settings import Settings, effective, merge
from .tokens import Named, add_tokens, name_tokens

__all__ = ["Built", "build", "build_of_lists", "class_of", "has_rules", "needs_transformers"]

INSTALL = "install transformers to have it as AutoTokenizer has it"
ACCEPTED = "mend it, or give the tokenizer.json as a file"


@dataclass(slots=True)
class Built:
    """What was made of a directory."""

    tokenizer: Any
    """A ``tokenizers.Tokenizer``."""

    chosen: Chosen
    values: dict[str, Any]
    """The keywords of the class, with its defaults, and what else its files say; the special tokens are in ``named``."""

    named: Named
    remarks: list[str] = field(default_factory=list)


_LISTED = re.compile(r'(?<!\\)"added_tokens"\s*:\s*\[')


def needs_transformers(chosen: Chosen, file: Any) -> bool:
    """
    Whether detok has no rules for what a class makes of a file, and transformers is installed, which has.

    Args:
        chosen: The class.
        file: The file's ``tokenizers.Tokenizer``. A class that makes another kind of model of it does so in ways of its own.
    """
    own = chosen.name in (BACKEND, MISTRAL) or has_rules(chosen, file.model)
    return not own and find_spec("transformers") is not None


def class_of(directory: Path) -> Chosen:
    """
    Return the class that AutoTokenizer takes for a directory.

    Raises:
        SourceError: A file is damaged, or the tokenizer is code of its own.
    """
    config, _ = read_files(directory)
    path = directory / "tokenizer.json"
    model = directory / "config.json"
    has_tekken = (directory / "tekken.json").is_file() and find_spec("mistral_common") is not None
    return choose(
        str(directory),
        config or {},
        json_object(model) if model.is_file() else {},
        is_byte_level=lambda: path.is_file() and b'"ByteLevel"' in path.read_bytes(),
        has_tekken=has_tekken,
    )


def build(directory: Path, chosen: Chosen, file: Any) -> Built:
    """
    Return what a class makes of a directory. A class that detok does not know is treated as `BACKEND`, and a remark says so.

    Args:
        directory: With a tokenizer.json.
        chosen: The class.
        file: The ``tokenizers.Tokenizer`` that the library reads there, with its padding. It is changed.

    Raises:
        SourceError: A file is damaged, or a special token cannot be.
    """
    content = Once(json_object, directory / "tokenizer.json")
    settings = _settings(directory)
    recipe = RECIPES.get(chosen.name)
    remarks = []
    if recipe is not None and not recipe.fits(file.model):
        remarks.append(f"transformers' {chosen.name} makes a {recipe.model} model of another kind; {INSTALL}")
        recipe = None
    elif recipe is None and chosen.name != BACKEND:
        remarks.append(_unknown(chosen))
    return _made(file, content, settings, recipe, chosen, remarks, directory)


def has_rules(chosen: Chosen, model: Any, *, of_lists: bool = False) -> bool:
    """Whether detok has rules for what a class makes of a model of the tokenizers library, which may come of word lists."""
    recipe = RECIPES.get(chosen.name)
    return recipe is not None and recipe.fits(model) and (recipe.reads_lists or not of_lists)


def build_of_lists(directory: Path, chosen: Chosen, model: Any) -> Built:
    """
    Return what a class makes of word lists, for which `has_rules`.

    Args:
        directory: Has the files beside the lists.
        chosen: The class.
        model: The lists, as a model of the tokenizers library. It is changed.

    Raises:
        SourceError: A file is damaged, or a special token cannot be.
    """
    import tokenizers

    settings = _settings(directory, is_listed=False)
    return _made(tokenizers.Tokenizer(model), Once.given({}), settings, RECIPES[chosen.name], chosen, [], directory)


def _unknown(chosen: Chosen) -> str:
    if chosen.name == MISTRAL:
        return "transformers takes the tekken.json beside it"
    what = {
        "reads": "decodes with code of its own",
        "rebuilds": "takes only the vocabulary out of a tokenizer.json, and may add tokens and change the text",
        "python": "is Python code, which may give another text",
    }[chosen.kind]
    return f"transformers' {chosen.name} {what}; {INSTALL}"


def _made(
    file: Any, content: Once, settings: Settings, recipe: Recipe | None, chosen: Chosen, remarks: list[str], directory: Path
) -> Built:
    try:
        return _assemble(file, content, settings, recipe, chosen, remarks, directory)
    except SourceError:
        raise
    except Exception as error:  # the tokenizers library raises Exception itself
        found = f"transformers' {chosen.name} cannot be made of it: {error}"
        raise SourceError(str(directory), found=found, accepted=ACCEPTED) from error


def _assemble(
    file: Any, content: Once, settings: Settings, recipe: Recipe | None, chosen: Chosen, remarks: list[str], directory: Path
) -> Built:
    values, tokenizer = settings.values, file
    if recipe is not None:
        values = {**recipe.defaults, **values}
        if recipe.prepare is not None:
            recipe.prepare(values)
        tokenizer = recipe.make(_parts(file, content), values)
        if file.post_processor is not None:
            tokenizer.post_processor = file.post_processor
    if file.padding is not None:
        values.setdefault("pad_token", file.padding["pad_token"])
    named = name_tokens(values)
    tokenizer.encode_special_tokens = bool(values.get("split_special_tokens", False))
    add_tokens(tokenizer, settings.declared, named)
    if values.get("fix_mistral_regex") is True:
        mend_pattern(tokenizer, directory)
    if tokenizer.post_processor is None or "add_bos_token" in values or "add_eos_token" in values:
        put_around(tokenizer, named, values)
    if recipe is not None and recipe.finish is not None:
        recipe.finish(tokenizer, named, values)
    return Built(tokenizer, chosen, {**settings.around, **values}, named, remarks)


def _settings(directory: Path, *, is_listed: bool = True) -> Settings:
    """What the files say; ``is_listed`` if there is a tokenizer.json with a list of added tokens."""
    config, special_tokens_map = read_files(directory)
    of_config, of_map = effective(config or {}, special_tokens_map or {})
    check_tokens(directory / "tokenizer_config.json", of_config)
    check_tokens(directory / "special_tokens_map.json", of_map)
    added = directory / "added_tokens.json"
    listed = json_object(added) if added.is_file() and "added_tokens_decoder" not in (config or {}) else {}
    if not all(type(token_id) is int for token_id in listed.values()):
        raise SourceError(added, found="is no object of ids", accepted="it maps the texts of added tokens to their ids")
    path = directory / "tokenizer.json" if is_listed else None
    return merge(config or {}, special_tokens_map or {}, listed, None if path is None else lambda: _listed_tokens(path))


def _listed_tokens(path: Path) -> list[Mapping[str, Any]]:
    """The list of added tokens of a tokenizer.json, which the library could read; to read the rest would take a second."""
    text = path.read_bytes().decode()
    begin = _LISTED.search(text)
    if begin is None:
        return []
    tokens: list[Mapping[str, Any]] = json.JSONDecoder().raw_decode(text, begin.end() - 1)[0]
    return tokens


def _parts(file: Any, content: Once) -> Parts:
    def charsmap() -> bytes | None:
        return _charsmap(content().get("normalizer"))

    return Parts(file.model, lambda: [(piece, score) for piece, score in content()["model"]["vocab"]], charsmap)


def _charsmap(normalizer: Any) -> bytes | None:
    """The first table of characters in a normaliser, or in a sequence of them."""
    if not isinstance(normalizer, Mapping):
        return None
    steps = normalizer.get("normalizers", []) if normalizer.get("type") == "Sequence" else [normalizer]
    found = (step.get("precompiled_charsmap") for step in steps if step.get("type") == "Precompiled")
    return next((base64.b64decode(text) for text in found if text), None)
