"""What files say of prompts: the special tokens' names, every end, and chat templates, wherever a repository keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import SourceError
from ..prompts.facts import PromptFacts
from .huggingface_config import json_object, read_config
from .reading import read_file

__all__ = ["facts_beside", "facts_by_ids", "facts_of_config", "facts_of_object", "facts_of_ranks", "named_templates"]

IdOf = Callable[[str], int | None]

DEFAULT = "default"

# The tokens that begin and end, where no configuration names them. Of those with ranks, only Llama's prompts begin with one.
BOS = "<|begin_of_text|>"
ENDS = (
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|im_end|>",
    "<|return|>",
    "<|call|>",
    "<|endoftext|>",
)


def facts_beside(directory: Path, id_of: IdOf, base: PromptFacts) -> PromptFacts:
    """
    Return what a directory's configuration says, and where it is silent ``base``. Errors as `facts_of_config`.

    Args:
        directory: Of a vocabulary that brings no configuration of its own.
        id_of: The id of a token, if there is one.
        base: What the vocabulary itself says.
    """
    found = facts_of_config(read_config(directory).values, directory, id_of)
    changed = {name: value for name in ("eos_token_ids", "chat_templates") if (value := getattr(found, name))}
    if found.bos_token_id is not None:
        changed |= {"bos_token_id": found.bos_token_id, "add_bos_token": found.add_bos_token}
    return replace(base, special_tokens={**base.special_tokens, **found.special_tokens}, **changed)


def facts_of_config(values: Mapping[str, Any], directory: Path | None, id_of: IdOf) -> PromptFacts:
    """
    Return what a tokenizer_config.json says, and the files that belong to it.

    Args:
        values: What it says.
        directory: Where it stands; None if there is no such place.
        id_of: The id of a token, if there is one.

    Raises:
        SourceError: A template or an end cannot be.
    """
    names = dict(_named_tokens(values))
    bos, eos = names.get("bos_token"), names.get("eos_token")
    ends = [] if eos is None else [id_of(eos)]
    config = "tokenizer_config.json" if directory is None else directory / "tokenizer_config.json"
    templates = named_templates(values.get("chat_template"), config)
    if directory is not None:
        ends += _generation_ends(directory / "generation_config.json")
        templates = _template_files(directory) or templates
    return PromptFacts(
        bos_token_id=None if bos is None else id_of(bos),
        eos_token_ids=tuple(dict.fromkeys(token_id for token_id in ends if token_id is not None)),
        special_tokens=names,
        chat_templates=templates,
        add_bos_token=values.get("add_bos_token") is True,
    )


def facts_by_ids(
    text_of: Callable[[int], str | None], bos: int | None, ends: Sequence[int | None], others: Mapping[str, int | None]
) -> PromptFacts:
    """Return what a vocabulary says that has ids for its special tokens, and no names."""
    known = [token_id for token_id in ends if token_id is not None and text_of(token_id) is not None]
    ids = {"bos_token": bos, "eos_token": known[0] if known else None, **others}
    texts = {name: text_of(token_id) for name, token_id in ids.items() if token_id is not None}
    return PromptFacts(
        bos_token_id=bos if texts.get("bos_token") is not None else None,
        eos_token_ids=tuple(dict.fromkeys(known)),
        special_tokens={name: text for name, text in texts.items() if text is not None},
    )


def facts_of_ranks(texts: Mapping[str, int], directory: Path | None) -> PromptFacts:
    """
    Return what is known of a vocabulary of ranks, which says nothing of itself: by the usual names, and the configuration.

    Args:
        texts: The special tokens with their ids.
        directory: Where a configuration may stand.
    """
    by_id = {token_id: text for text, token_id in texts.items()}
    bos = texts.get(BOS)
    facts = replace(facts_by_ids(by_id.get, bos, [texts.get(end) for end in ENDS], {}), add_bos_token=bos is not None)
    return facts if directory is None else facts_beside(directory, texts.get, facts)


def facts_of_object(source: Any) -> PromptFacts:
    """Return what a tokenizer of transformers says."""
    eos = source.eos_token_id
    return PromptFacts(
        bos_token_id=source.bos_token_id,
        eos_token_ids=tuple(eos) if isinstance(eos, (list, tuple)) else () if eos is None else (eos,),
        special_tokens={name: str(text) for name, text in source.special_tokens_map.items() if isinstance(text, str)},
        chat_templates=named_templates(getattr(source, "chat_template", None), type(source).__name__),
    )


def named_templates(found: object, source: object) -> dict[str, str]:
    """
    Return chat templates by their names: of one text, a list of objects with name and template, or an object.

    Raises:
        SourceError: It is nothing of these.
    """
    if found is None:
        return {}
    if isinstance(found, str):
        return {DEFAULT: found}
    if isinstance(found, Sequence) and all(isinstance(one, Mapping) for one in found):
        found = {one.get("name"): one.get("template") for one in found}
    if not isinstance(found, Mapping) or not all(isinstance(part, str) for pair in found.items() for part in pair):
        accepted = "it is a template, or a list of objects with name and template"
        raise SourceError(source, found="chat_template is invalid", accepted=accepted)
    return dict(found)


def _named_tokens(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The special tokens that have a name, as a template may use it: ``bos_token``, but ``image_token`` of some models too."""
    extra = values.get("extra_special_tokens")
    for name, token in {**values, **(extra if isinstance(extra, Mapping) else {})}.items():
        if name.endswith("_token") and isinstance(token, (str, Mapping)):
            text = token if isinstance(token, str) else token.get("content")
            if isinstance(text, str):
                yield name, text


def _generation_ends(path: Path) -> list[int]:
    """The ``eos_token_id`` of a generation_config.json, which is one id or several."""
    if not path.is_file():
        return []
    found = json_object(path).get("eos_token_id")
    ends = [] if found is None else found if isinstance(found, list) else [found]
    if not all(type(token_id) is int and token_id >= 0 for token_id in ends):
        raise SourceError(path, found=f"eos_token_id is {found!r}", accepted="it is an id or a list of ids")
    return ends


def _template_files(directory: Path) -> dict[str, str]:
    """The templates that stand in files of their own, which go before those in the configuration."""
    files = {DEFAULT: directory / "chat_template.jinja"}
    files |= {path.stem: path for path in sorted(directory.glob("additional_chat_templates/*.jinja"))}
    return {name: _text(path) for name, path in files.items() if path.is_file()}


def _text(path: Path) -> str:
    try:
        return read_file(path, "a chat template was expected").decode()
    except UnicodeDecodeError as error:
        raise SourceError(path, found=f"is no UTF-8 at byte {error.start}", accepted="a chat template was expected") from error
