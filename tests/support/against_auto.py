"""What AutoTokenizer of transformers makes of a directory, compared with what detok makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import detok

TEXTS = ("Hello, world!", "a", " x  y\n", "naïve café 日本語 🦜", "I do n't know .", "", "Ünïcode <s> [SEP]</s> É", "12 345\t'll")


class Refused(Exception):
    """transformers does not load a directory."""


def auto(path: Path) -> Any:
    """
    Return what AutoTokenizer makes of a directory.

    Raises:
        Refused: It raised.
    """
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers raises whatever its parts raise
        raise Refused(f"{type(error).__name__}: {error}") from error


def differences(path: Path, rng: Random, *, lists: int = 60) -> Iterator[str]:
    """
    Give each difference, as a kind and where it was found.

    Raises:
        Refused: transformers does not load the directory, so that there is no judge.
    """
    theirs = auto(path)
    ours = detok.load(path)
    kind = type(theirs).__name__
    added = sorted(theirs.added_tokens_decoder)
    ids = (
        [*range(min(len(theirs), 100_000)), *added] if len(theirs) < 5000 else [*rng.choices(range(len(theirs)), k=2000), *added]
    )
    for name, one, other in [
        ("size", len(theirs), len(ours.ids)),
        ("eos", (theirs.eos_token_id,), ours.eos_token_ids[:1] or (None,)),
        ("added", added, sorted(ours.added_ids)),
    ]:
        if one != other:
            yield f"{kind} {name}: {one} and {other}"
    for token_id in ids:
        piece = ours.vocabulary.piece(token_id)
        if theirs.convert_ids_to_tokens(token_id) != (piece and piece.text):
            yield f"{kind} piece: {token_id} {theirs.convert_ids_to_tokens(token_id)!r} and {piece}"
            break
    for _ in range(lists):
        some = rng.choices(added, k=rng.randint(0, 3)) if added else []
        one_list = rng.choices(ids, k=rng.randint(1, 8)) + some
        rng.shuffle(one_list)
        for skip in (True, False):
            expected = theirs.decode(one_list, skip_special_tokens=skip)
            if ours.decode(one_list, skip) != expected:
                yield f"{kind} decode, skip {skip}: {one_list} {expected!r} and {ours.decode(one_list, skip)!r}"
                break
    skipped = _skipped(theirs, added)
    if skipped != ours.special_ids:
        yield f"{kind} special: {sorted(skipped ^ ours.special_ids)} of {sorted(skipped)}"
    yield from _encoded(theirs, ours, [*TEXTS, *_texts_with(theirs, rng)], kind)


def _encoded(theirs: Any, ours: Any, texts: list[str], kind: str) -> Iterator[str]:
    for text in texts:
        for adds in (True, False):
            expected = _outcome(theirs.encode, text, adds)
            got = _outcome(ours.encode, text, adds)
            if got != expected:
                yield f"{kind} encode, special tokens {adds}: {text!r} {expected} and {got}"
                return


def _outcome(encode: Any, text: str, adds: bool) -> Any:
    """The ids; of a text that is refused, by vocabularies without an unknown token, the error."""
    try:
        return encode(text, add_special_tokens=adds)
    except Exception as error:  # the library raises Exception itself
        return str(error)


def _texts_with(theirs: Any, rng: Random) -> list[str]:
    added = [token.content for token in theirs.added_tokens_decoder.values()] or ["x"]
    return [rng.choice((" ", "a", "")).join(rng.choices([*added, "Foo", " bar", "é"], k=4)) for _ in range(6)]


def _skipped(theirs: Any, added: list[int]) -> frozenset[int]:
    """The ids that the library leaves out: without a decoder, an id that gives nothing."""
    backend = theirs.backend_tokenizer
    decoder, backend.decoder = backend.decoder, None
    try:
        return frozenset(token_id for token_id in added if backend.id_to_token(token_id) and not backend.decode([token_id]))
    finally:
        if decoder is not None:
            backend.decoder = decoder
