"""By which of their parts two tokenizers differ: what stands in their files, and why an id list or a text comes out otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from ..tokenizers import Tokenizer
from .judge import outcome_of

__all__ = ["Cause", "facts_that_differ", "why_decoded_differently", "why_encoded_differently"]

Cause = Literal["vocabulary", "added tokens", "special flags", "clean-up", "decoder", "encoder", "end", "template"]
"""A part: the tokens of the model; those that were added; which tokens are skipped; the clean-up of spaces; the rules from tokens
to text; those from text to ids; which ids end an answer; the chat template."""

SHOWN = 4
"""Of ids that differ, so many are shown."""


def facts_that_differ(one: Tokenizer, other: Tokenizer) -> Iterator[tuple[Cause, str, str, str]]:
    """
    Give each fact that differs: its cause, its name, and what it is in either.

    Raises:
        SourceError: A template or an end of one of them cannot be.
    """
    theirs, ours = _texts(one, added=False), _texts(other, added=False)
    yield from _ids("vocabulary", "tokens of the model", theirs, ours)
    yield from _ids("added tokens", "added tokens", _texts(one, added=True), _texts(other, added=True))
    both = one.special_ids ^ other.special_ids
    shared = {token_id for token_id in both if _text(one, token_id) is not None and _text(other, token_id) is not None}
    if shared:
        shown = [sorted(shared & tokenizer.special_ids) for tokenizer in (one, other)]
        yield "special flags", "tokens that only one skips", _some(shown[0]), _some(shown[1])
    if one.cleans_up != other.cleans_up:
        yield "clean-up", "clean-up of spaces", _on(one.cleans_up), _on(other.cleans_up)
    rules = [tokenizer.description.partition(";")[0] for tokenizer in (one, other)]
    if one.rules != other.rules and rules[0] != rules[1]:
        yield "decoder", "rules of the decoder", rules[0], rules[1]
    facts = [tokenizer.prompt_facts for tokenizer in (one, other)]
    ends = [list(found.eos_token_ids) for found in facts]
    if all(ends) and ends[0] != ends[1]:
        yield "end", "ids that end an answer", str(ends[0]), str(ends[1])
    names = [sorted(found.chat_templates) for found in facts]
    if all(names) and names[0] != names[1]:
        yield "template", "chat templates", str(names[0]), str(names[1])


def why_decoded_differently(one: Tokenizer, other: Tokenizer, ids: Sequence[int], *, skip_special_tokens: bool) -> Cause:
    """
    Return the part by which a list of ids, as small as can be, is decoded to two texts.

    What is tried first explains the most: a token that is another needs no other reason. Then each switch is turned the same way
    in both: what makes them agree is the cause.
    """
    for token_id in ids:
        if _text(one, token_id) != _text(other, token_id):
            return "added tokens" if token_id in one.added_ids | other.added_ids else "vocabulary"
    special = one.special_ids ^ other.special_ids
    if skip_special_tokens and not special.isdisjoint(ids):
        return "special flags"
    plain = {outcome_of(lambda: one.decode(ids, skip_special_tokens, clean_up_tokenization_spaces=False))}
    plain.add(outcome_of(lambda: other.decode(ids, skip_special_tokens, clean_up_tokenization_spaces=False)))
    return "clean-up" if len(plain) == 1 else "decoder"


def why_encoded_differently(one: Tokenizer, other: Tokenizer, text: str) -> Cause:
    """Return the part by which a text, as small as can be, is encoded to two lists of ids."""
    added = [set(_texts(tokenizer, added=True).items()) for tokenizer in (one, other)]
    if any(content and content in text for _, content in added[0] ^ added[1]):
        return "added tokens"
    ids = [outcome_of(lambda made=made: made.encode(text, add_special_tokens=False)) for made in (one, other)]  # type: ignore[misc]
    tokens = [
        [tokenizer.token_bytes(token_id) for token_id in some] if isinstance(some, list) else some
        for tokenizer, some in zip((one, other), ids, strict=True)
    ]
    return "vocabulary" if ids[0] != ids[1] and tokens[0] == tokens[1] else "encoder"


def _texts(tokenizer: Tokenizer, *, added: bool) -> dict[int, str]:
    """The added tokens by id, or the others."""
    which = tokenizer.added_ids if added else [token_id for token_id in tokenizer.ids if token_id not in tokenizer.added_ids]
    return {token_id: text for token_id in which if (text := _text(tokenizer, token_id)) is not None}


def _text(tokenizer: Tokenizer, token_id: int) -> str | None:
    piece = tokenizer.vocabulary.piece(token_id)
    return None if piece is None else piece.text


def _ids(cause: Cause, name: str, one: dict[int, str], other: dict[int, str]) -> Iterator[tuple[Cause, str, str, str]]:
    changed = sorted(token_id for token_id in one.keys() | other.keys() if one.get(token_id) != other.get(token_id))
    if changed:
        shown = [", ".join(f"{token_id}: {some.get(token_id)!r}" for token_id in changed[:SHOWN]) for some in (one, other)]
        more = f" and {len(changed) - SHOWN:,} more" if len(changed) > SHOWN else ""
        yield cause, name, f"{len(one):,}, there {shown[0]}{more}", f"{len(other):,}, there {shown[1]}{more}"


def _some(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:SHOWN])) or "none"
    return shown + (f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else "")


def _on(value: bool) -> str:
    return "on" if value else "off"
