"""
What looks like a broken export: the tokenizer does what its library does, and yet hardly what its makers meant.

Nothing is refused for it and no text is changed. `Tokenizer.description` and `detok check` say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ..core.decoding.rules import byte_of
from ..errors import DetokError

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

__all__ = ["suspicions_of"]

# So many usual tokens are looked at, and a mark counts if one in so many of them bears it. A vocabulary of the other alphabet has
# a space at the beginning of about every second token; one that just contains the letter has it in a handful.
LOOKED_AT = 4000
ONE_IN = 10

BYTE_LEVEL_SPACE = "Ġ"
"""The letter for a space in GPT-2's byte alphabet."""

SENTENCEPIECE_SPACE = "▁"

MARKER = re.compile(r"<\|[^<>|\s'\"{}+]+\|>|<｜[^<>｜\s'\"{}+]+｜>")
"""A special token that is written out in a template. Tags such as ``<tools>`` are often meant as text."""

NAMED = re.compile(r"\{\{-?\s*(\w+_token)\b(?!\s*(?:\||if\b))")
"""A special token that a template writes by its name."""

SHOWN = 3
"""Of several tokens with one fault, so many are named."""


def suspicions_of(tokenizer: Tokenizer) -> Iterator[str]:
    """Give each thing that is suspicious, as half a sentence."""
    yield from _alphabet(tokenizer)
    yield from _added(tokenizer)
    yield from _templates(tokenizer)


def _alphabet(tokenizer: Tokenizer) -> Iterator[str]:
    """Pieces of one alphabet with the decoder of another."""
    added = tokenizer.added_ids
    usual = islice((token_id for token_id in tokenizer.ids if token_id not in added), 256, LOOKED_AT)
    pieces = [(token_id, tokenizer.piece(token_id)) for token_id in usual]
    for mark, alphabet in ((BYTE_LEVEL_SPACE, "GPT-2's byte alphabet"), (SENTENCEPIECE_SPACE, "SentencePiece's spelling")):
        marked = [(token_id, piece.text) for token_id, piece in pieces if piece.data is None and piece.text.startswith(mark)]
        left = [(token_id, text) for token_id, text in marked if mark in tokenizer.token_text(token_id)]
        if len(left) * ONE_IN > len(pieces):
            token_id, text = left[0]
            shown = tokenizer.token_text(token_id)
            yield f"its pieces are in {alphabet} and its decoder is for another, so that {text!r} is written as {shown!r}"


def _added(tokenizer: Tokenizer) -> Iterator[str]:
    """Added tokens that are decoded to another text; what a decoder does to spaces is no matter."""
    changed = []
    for token_id in sorted(tokenizer.added_ids):
        piece = tokenizer.piece(token_id)
        if _letters(tokenizer.token_text(token_id)) == _letters(piece.text):
            continue
        text = tokenizer.decode([token_id], skip_special_tokens=False)
        if piece.data is None and byte_of(piece.text) is None and text and _letters(text) != _letters(piece.text):
            changed.append(f"{piece.text!r} as {text!r}")
    if changed:
        more = f" and {len(changed) - SHOWN:,} more" if len(changed) > SHOWN else ""
        yield f"added tokens do not come back: {', '.join(changed[:SHOWN])}{more}"


def _templates(tokenizer: Tokenizer) -> Iterator[str]:
    """Templates that write a byte order mark, or tokens which there are not, which a model gets in pieces or not at all."""
    try:
        facts = tokenizer.prompt_facts
    except DetokError:  # said when a prompt is made
        return
    texts = {tokenizer.piece(token_id).text for token_id in tokenizer.added_ids}
    for name, template in facts.chat_templates.items():
        written = dict.fromkeys(MARKER.findall(template))
        named = dict.fromkeys(NAMED.findall(template))
        missing = [
            *(text for text in written if text not in texts),
            *(text for text in named if text not in facts.special_tokens),
        ]
        of = "" if name == "default" else f" {name!r}"
        if template.startswith("\ufeff"):
            yield f"its chat template{of} starts with a byte order mark, which stands at the beginning of every prompt"
        if missing:
            more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
            yield f"its chat template{of} names tokens that do not exist: {', '.join(missing[:SHOWN])}{more}"


def _letters(text: str) -> str:
    return "".join(character for character in text if not character.isspace() and character != SENTENCEPIECE_SPACE)
