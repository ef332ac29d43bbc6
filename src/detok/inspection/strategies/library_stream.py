"""
The strategy "decodestream": the ``DecodeStream`` of ``tokenizers``, driven as vLLM drives it. For comparison only.

What vLLM's fast detokenizer does: the prompt is given to the constructor; OverflowError and TypeError, which come of ids that the
library does not take, are swallowed; "Invalid prefix encountered" is answered by a new stream without context, which is given the
id once more; what is held at the end is lost. Only the last is done better here: `finish` gives it out.

A ``DecodeStream`` keeps its ids to itself, and so could not go into a snapshot. But what it does depends on two runs of them
alone: those that gave its last text, and those that came since. So these are the state, and a stream is made of them at each
step: the text of each step is the library's own, its speed is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from ...core.decoding.joiners import NOTHING, Held
from ...core.options import DecodeOptions
from ...core.utf8 import REPLACEMENT
from ...core.vocabulary import Vocabulary
from ...errors import UnknownTokenId
from ...ids import as_id
from ...tokenizers.window import INCOMPLETE

if TYPE_CHECKING:
    import tokenizers

__all__ = ["LibraryStream"]

INVALID_PREFIX = "Invalid prefix encountered"
"""How the library's message begins; the error has no class of its own."""

Ids = tuple[int, ...]
Place = tuple[Ids, Ids, bool]
"""The ids that gave the last text, or the prompt's; those that came since; whether the last one was an added token."""


class LibraryStream:
    """
    The steps of a ``DecodeStream``. Clean-up of spaces and `byte_fallback` are unknown to it.

    Args:
        tokenizer: The library's own.
        vocabulary: Says which ids there are, and which of them are added.
        options: Decided.
        recovers: Whether a stream that fails with "Invalid prefix encountered" is opened again, without context, and given the
            id once more. If not, the library's error comes out, and the state is as before.
    """

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, vocabulary: Vocabulary, options: DecodeOptions, *, recovers: bool = True
    ) -> None:
        from tokenizers.decoders import DecodeStream

        self.options = options
        self._recovers = recovers
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._open = DecodeStream
        self._keeps_border = options.spaces_between_special_tokens is False and not options.skip_special_tokens

    def feed(self, place: Place, token_id: int) -> tuple[str, Place]:
        """
        Take one id and return the text that comes out now, and the next state.

        Raises:
            UnknownTokenId: The id has no piece, and the options ask to be told.
        """
        before, since, after_added = place
        piece = self._vocabulary.piece(token_id)
        if piece is None and self.options.unknown_ids != "skip":
            self._refuse(token_id)
            return self.finish(place) + REPLACEMENT, (before, (), False)
        try:
            text = self._step(before, (*since, token_id))
        except (OverflowError, TypeError):
            return "", place
        except Exception as error:  # the library has no class for it, so that only the message tells
            if not self._recovers or not str(error).startswith(INVALID_PREFIX):
                raise
            before = since = ()
            text = self._step((), (token_id,))
        added = piece is not None and piece.added
        since = (*since, token_id)
        if text is not None:
            # A prefix that ends in U+FFFD is none to the library: then its ids stay.
            before, since = (before + since if self._decode(before).endswith(REPLACEMENT) else since), ()
        if self._keeps_border and added and after_added and piece is not None:
            text = piece.text
        return text or "", (before, since, added)

    def finish(self, place: Place) -> str:
        """Return what is held: what the one-shot decode of all that is kept has beyond that of what gave the last text."""
        before, since, _ = place
        return self._decode(before + since)[len(self._decode(before)) :] if since else ""

    def held(self, place: Place) -> Held:
        """Return what is held, and why."""
        text = self.finish(place)
        return (text, INCOMPLETE) if text else NOTHING

    def after_prompt(self, prompt_ids: Sequence[SupportsIndex]) -> Place:
        """Return the state behind a prompt: all of it, as vLLM gives it to the library, which decodes it at the first step."""
        ids = [as_id(prompt_ids[position], where="prompt_ids", position=position) for position in range(len(prompt_ids))]
        for token_id in ids:
            if self._vocabulary.piece(token_id) is None:
                self._refuse(token_id)
        return tuple(token_id for token_id in ids if 0 <= token_id < 1 << 32), (), False

    def _refuse(self, token_id: int) -> None:
        if self.options.unknown_ids == "error":
            raise UnknownTokenId(token_id)

    def _step(self, before: Ids, ids: Ids) -> str | None:
        """What a stream gives for its last id, if it gave nothing for the others."""
        stream = self._open(ids=list(before), skip_special_tokens=self.options.skip_special_tokens)
        text: str | None = stream.step(self._tokenizer, list(ids))
        return text

    def _decode(self, ids: Ids) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=self.options.skip_special_tokens)
        return text
