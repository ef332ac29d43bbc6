"""
Python tokenizers whose `decode` turns out to be a join over pieces: found by trying, and believed after a check.

A Python tokenizer may do anything in its decode, so that nothing can be read off it. But most just join what each token is, take
a mark away, and strip the ends. The usual joins are tried one after another, each as rules of the core, and one is taken if it
equals the tokenizer's own decode on random lists, on many ids alone, and on all ids in random order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from random import Random

from ..core.decoding.rules import Fuse, JoinWithSpaces, RawBytes, Replace, Rule, StripEnds
from ..core.options import DecodeOptions
from ..prompts.facts import PromptSupport
from .opaque import OwnDecode, TokenVocabulary
from .tokenizer import Encoder, Library, Tokenizer

__all__ = ["equals_library", "find_join"]

LISTS = 200
"""So many random lists are tried before anything else."""

ALONE = 2000
"""So many ids are tried alone, where they are first and last at once."""

CHUNK = 100
"""All ids are tried in random order, so many at a time."""

Spell = Callable[[int, str], bytes]


def find_join(
    vocabulary: TokenVocabulary,
    own_decode: OwnDecode,
    *,
    encoder: Encoder,
    library: Library,
    cleans_up: bool,
    source: str,
    remarks: Sequence[str],
    prompt_support: PromptSupport,
) -> Tokenizer | None:
    """
    Return a tokenizer with rules that equals the tokenizer's own decode on all that was tried; None if no join does.

    Args:
        vocabulary: Its tokens.
        own_decode: Its own one-shot decode, whose single tokens may be what is joined.
        library: The same, as a judge.
        cleans_up: Whether it cleans up spaces when nobody says otherwise.
        encoder, source, remarks, prompt_support: As `Tokenizer` has them.
    """
    by_token, by_decode = partial(_spelled_by_token, vocabulary.added), partial(_spelled_by_decode, own_decode)
    joins: list[tuple[Sequence[Rule], Spell | None]] = [
        ([RawBytes(drops_invalid=True)], by_token),  # ByT5
        ([RawBytes()], by_token),  # Perceiver
        ([RawBytes()], by_decode),  # strings that are joined: their bytes are valid, so that nothing is lost or held
        ([JoinWithSpaces()], None),  # what transformers does if the class says nothing
        ([Fuse(), Replace("▁", " "), StripEnds()], None),  # those with a SentencePiece model
        ([JoinWithSpaces(), Fuse(), Replace("@@ ", ""), StripEnds()], None),  # CTRL, PhoBERT, BERTweet
        ([Fuse(), Replace("</w>", " "), StripEnds()], None),  # XLM, FlauBERT
    ]
    for rules, spell in joins:
        pieces = TokenVocabulary(vocabulary.tokens, special=vocabulary.special, added=vocabulary.added, spell=spell)
        found = Tokenizer(
            pieces,
            rules,
            encoder=encoder,
            library=library,
            cleans_up=cleans_up,
            source=source,
            remarks=remarks,
            prompt_support=prompt_support,
        )
        with suppress(Exception):  # of foreign code that spells a piece, or of UTF-8, which cannot spell all strings
            if equals_library(found):
                return found
    return None


def _spelled_by_token(added: frozenset[int], token_id: int, token: str) -> bytes:
    """A token of one character below U+0100 is a byte, unless it was added."""
    is_byte = len(token) == 1 and ord(token) < 0x100 and token_id not in added
    return bytes([ord(token)]) if is_byte else token.encode()


def _spelled_by_decode(own_decode: OwnDecode, token_id: int, _: str) -> bytes:
    """A token is what it decodes to alone."""
    return own_decode([token_id], DecodeOptions(skip_special_tokens=False, clean_up_tokenization_spaces=False)).encode()


def equals_library(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer equals its library's decode on all lists that are tried. One that raises is no plain join."""
    compared = False
    for ids, skips in _lists(tokenizer):
        try:
            expected = tokenizer.library.decode(ids, skip_special_tokens=skips)
        except Exception:  # of foreign code
            return False
        if tokenizer.decode(ids, skip_special_tokens=skips) != expected:
            return False
        compared = True
    return compared


def _lists(tokenizer: Tokenizer) -> Iterator[tuple[Sequence[int], bool]]:
    """Lists of ids, and whether to skip special tokens: those first that are likely to tell."""
    rng = Random(0)
    ids = tokenizer.ids
    kinds = [kind for kind in (ids, ids[:512], sorted(tokenizer.added_ids), sorted(tokenizer.special_ids)) if kind]
    for number in range(LISTS if ids else 0):
        some = [token_id for _ in range(rng.randint(1, 6)) for token_id in rng.choices(rng.choice(kinds), k=rng.randint(1, 3))]
        yield some + some[-1:] * rng.randint(0, 2), number % 2 == 0
    for token_id in rng.sample(ids, min(ALONE, len(ids))):
        yield [token_id], False
    for skips in (True, False):
        order = rng.sample(ids, len(ids))
        for first in range(0, len(order), CHUNK):
            yield order[first : first + CHUNK], skips
