"""Two tokens with one id: the exhaustive look. `load` looks at the ends of a huge vocabulary only, since it must be quick."""

from __future__ import annotations

from typing import NamedTuple

from ..tokenizers import Tokenizer

__all__ = ["SharedId", "shared_ids"]


class SharedId(NamedTuple):
    """An id, and two tokens that have it, of which only one can ever be decoded."""

    token_id: int
    first: str
    second: str


def shared_ids(tokenizer: Tokenizer) -> tuple[SharedId, ...]:
    """Return every id that two tokens of the model have; nothing if the library has no list of its tokens."""
    # Only the library's object knows: by ids, as `vocabulary` is read, the second token is never met.
    library = getattr(tokenizer.library, "_tokenizer", None)
    if library is None:
        return ()
    tokens: dict[int, str] = {}
    found = []
    for token, token_id in sorted(library.get_vocab(with_added_tokens=False).items()):
        other = tokens.setdefault(token_id, token)
        if other != token:
            found.append(SharedId(token_id, other, token))
    return tuple(found)
