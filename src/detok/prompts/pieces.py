"""Text with special tokens in it to ids, by a library that may or may not read them, and with the text of users kept as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from ..errors import EncodeUnsupported
from .disguise import Controls, Disguise, pattern_of
from .facts import PlainEncoder

__all__ = ["encode_around", "encode_disguised"]

Encode = Callable[[str], list[int]]

Part = tuple[str, str | None]
"""A text, and the token behind it."""


def encode_around(encode: Encode, text: str, tokens: Mapping[str, int]) -> list[int]:
    """Encode a text by a library that reads no special tokens: each of ``tokens`` becomes its id, what is between is encoded."""
    ids: list[int] = []
    for part, token in _parts(text, frozenset(tokens)):
        if part:
            ids += encode(part)
        if token:
            ids.append(tokens[token])
    return ids


def encode_disguised(
    encode: Encode, plain: PlainEncoder | None, text: str, disguise: Disguise, ids_of: Mapping[str, int]
) -> list[int]:
    """
    Encode a rendered chat in which what spells a control text is masked.

    Only what stands between two control tokens and has a mask is taken out: no tokenizer joins text over an added token, so that
    the rest has the same ids as ever. If there are other control tokens then than the template wrote, as a normaliser made one of
    what spelled none (full-width letters, say), everything between them is.

    Args:
        encode: Encodes a text and reads control texts in it.
        plain: Encodes a text and does not.
        text: The rendered chat.
        disguise: Its masks.
        ids_of: The ids of the control texts.

    Raises:
        EncodeUnsupported: There is something to keep as text, and this tokenizer cannot.
    """
    control = disguise.controls.texts
    parts = list(_parts(text, control))
    ids = _encoded(encode, plain, parts, [bool(disguise.masked.search(part)) for part, _ in parts], disguise, ids_of)
    if _has_others(encode, ids, parts, disguise.controls, ids_of):
        ids = _encoded(encode, plain, parts, [bool(part) for part, _ in parts], disguise, ids_of)
    return ids


def _has_others(encode: Encode, ids: list[int], parts: Sequence[Part], controls: Controls, ids_of: Mapping[str, int]) -> bool:
    """
    Whether there are control tokens that the template did not write.

    A tokenizer need not read each that it wrote (one that wants whole words): then equal numbers tell nothing, and the texts
    between are looked at alone.
    """
    control_ids = {ids_of[one] for one in controls.texts}
    found = [one for one in ids if one in control_ids]
    written = [token for _, token in parts if token]
    for token in set(written) - controls.is_read.keys():
        controls.is_read[token] = ids_of[token] in encode(f"a{token}a")
    if found == [ids_of[token] for token in written] and all(controls.is_read[token] for token in written):
        return False
    return len(found) > len(written) or any(control_ids.intersection(encode(part)) for part, _ in parts if part)


def _encoded(
    encode: Encode,
    plain: PlainEncoder | None,
    parts: Sequence[Part],
    kept: Sequence[bool],
    disguise: Disguise,
    ids_of: Mapping[str, int],
) -> list[int]:
    """Encode parts, some of which are kept as text."""
    ids: list[int] = []
    usual: list[str] = []
    before: str | None = None
    for (part, token), is_kept in zip(parts, kept, strict=True):
        if is_kept:
            if plain is None:
                kind = "text that spells a special token without becoming it"
                raise EncodeUnsupported(kind, instead="give safe=False, or take such texts out of the messages")
            ids += encode("".join(usual)) if any(usual) else []
            usual = []
            ids += _kept_as_text(plain, disguise.show(part), disguise.controls.texts, ids_of, (before, token))
        else:
            usual.append(part)
        if token:
            usual.append(token)
        before = token
    return ids + (encode("".join(usual)) if any(usual) else [])


def _kept_as_text(
    plain: PlainEncoder, text: str, control: frozenset[str], ids_of: Mapping[str, int], beside: tuple[str | None, str | None]
) -> list[int]:
    """
    Encode by ``plain``. Where a model has the spelling as a piece of its own all the same, it is encoded in two parts, cut behind
    its first character. (What it gives for unknown characters is no such piece, though the unknown token may be a control token.)
    """
    ids = plain(text, control=control, before=beside[0], after=beside[1])
    found = set(ids)  # a text may have as many spellings as ids
    spelled = [match for match in _tokens(control, overlap=True).finditer(text) if ids_of[match[1]] in found]
    if not spelled:
        return ids
    if any(len(match[1]) == 1 for match in spelled):
        kind = f"the text {text[:60]!r} without one of its special tokens"
        raise EncodeUnsupported(kind, instead="take it out of the messages")
    ids = []
    for start, stop in pairwise([0, *(match.start() + 1 for match in spelled), len(text)]):
        before, after = beside[0] if start == 0 else "", beside[1] if stop == len(text) else ""
        ids += plain(text[start:stop], control=control, before=before, after=after)
    return ids


def _parts(text: str, tokens: frozenset[str]) -> Iterator[Part]:
    """The text before each token, and the token; at last the rest, and None."""
    at = 0
    for match in _tokens(tokens).finditer(text):
        yield text[at : match.start()], match.group()
        at = match.end()
    yield text[at:], None


@lru_cache(maxsize=32)
def _tokens(tokens: frozenset[str], *, overlap: bool = False) -> re.Pattern[str]:
    return re.compile(f"(?=({pattern_of(tokens)}))" if overlap else pattern_of(tokens))
