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
    """Return every id that two tokens of the model have."""
    # Only the library knows: by ids, as `vocabulary` is read, the second token is never met.
    tokens: dict[int, str] = {}
    found = []
    for token, token_id in sorted(tokenizer.library.tokens().items()):
        other = tokens.setdefault(token_id, token)
        if other != token:
            found.append(SharedId(token_id, other, token))
    return tuple(found)
