"""
The window algorithm: streams over a tokenizer of which nothing is known but its one-shot decode.

A window of ids is decoded again at every step. Its first ids, up to the offset ``read``, are *context*: their text is out. What
the whole window decodes to beyond the length of what the context decodes to is the new text. If it is empty, or ends in U+FFFD
as an incomplete character does, it is *held*; otherwise it is *committed*: given out, and the ids that gave it are the next
context.

The algorithm is that of text-generation-inference, which vLLM (``detokenize_incrementally``, offsets ``prefix`` and ``read``)
and SGLang (``DetokenizerManager``, offsets ``surr`` and ``read``) took over. Here it is written anew from what they do, with two
differences, both where they lose text or time: `finish` gives out what is held, and a hold has a limit.

It is a guess, not a proof. The length of the context's text says where the new text begins only while the context decodes to the
same text inside the window; U+FFFD says that a character is incomplete only where it stands for nothing else. ``detok check
--strategy`` counts how often that goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, SupportsIndex

from ..core.decoding.joiners import NOTHING, Held
from ..core.options import DecodeOptions, check_at_least
from ..core.utf8 import REPLACEMENT
from ..core.vocabulary import Vocabulary
from ..errors import UnknownTokenId
from ..ids import as_id

__all__ = [
    "Decode",
    "Window",
    "WindowState",
]

Decode = Callable[[Sequence[int]], str]
"""A one-shot decode of ids that the vocabulary has, with the options already decided."""

LOOKBACK = 5
"""Maximum ids of a prompt in the first context (vLLM's INITIAL_INCREMENTAL_DETOKENIZATION_OFFSET, SGLang's of the same name)."""

MORE_TAIL = 2
"""Ids of a prompt looked at beyond those, as some may be specials that are skipped (vLLM's convert_prompt_ids_to_tokens)."""

MAX_HELD = 64
"""
Maximum ids that are held; then they are committed whatever they decode to.

The originals have no limit, so that a run of U+FFFD costs the square of its length. A character has at most four tokens, one a
byte.
"""

INCOMPLETE = "the window ends in U+FFFD"


class WindowState(NamedTuple):
    """Where a window is."""

    ids: tuple[int, ...] = ()
    """The context, and behind it the ids whose text is held."""

    read: int = 0
    """How many of them are context."""

    context: str = ""
    """What the context decodes to."""


class Window:
    """
    vLLM's window of two offsets. A step decodes the window once, and once more its new context if it commits.

    Skipped specials and ids without a piece never get into the window.

    Args:
        vocabulary: Says which ids there are, and which of them are special.
        decode: The tokenizer's own one-shot decode.
        options: Of them, `skip_special_tokens` and `unknown_ids` are heeded here; the others are the decode's.
        lookback: Maximum ids of a prompt in the first context.
        prompt_tail: Ids at the end of a prompt that are looked at for them; by default two more than `lookback`.

    Raises:
        OptionError: One of the two numbers is no integer of at least 0.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        decode: Decode,
        options: DecodeOptions,
        *,
        lookback: int = LOOKBACK,
        prompt_tail: int | None = None,
    ) -> None:
        check_at_least("lookback", lookback, 0)
        self._lookback = lookback
        self._prompt_tail = lookback + MORE_TAIL if prompt_tail is None else prompt_tail
        check_at_least("prompt_tail", self._prompt_tail, 0)
        self.options = options
        self._vocabulary = vocabulary
        self._decode = decode

    def feed(self, state: WindowState, token_id: int) -> tuple[str, WindowState]:
        """
        Take one id and return the text that comes out now, and the next state.

        Raises:
            UnknownTokenId: The id has no piece, and the options ask to be told.
        """
        state = WindowState(*state)  # one from a snapshot is a plain tuple
        if not self._enters(token_id):
            if self.options.unknown_ids == "replace" and self._vocabulary.piece(token_id) is None:
                return self.finish(state) + REPLACEMENT, self._commit(state)
            return "", state
        state = state._replace(ids=(*state.ids, token_id))
        new = self._new_text(state)
        if (not new or new.endswith(REPLACEMENT)) and len(state.ids) - state.read <= MAX_HELD:
            return "", state
        return new, self._commit(state)

    def finish(self, state: WindowState) -> str:
        """Return what is held, whatever it ends in. The originals drop it (vLLM), or have it sent by their caller (SGLang)."""
        return self._new_text(state)

    def held(self, state: WindowState) -> Held:
        """Return what is held, and why."""
        text = self.finish(state)
        return (text, INCOMPLETE) if text else NOTHING

    def after_prompt(self, prompt_ids: Sequence[SupportsIndex]) -> WindowState:
        """Return the state behind a prompt: its last few ids are context. Without a prompt there is none."""
        tail = range(max(0, len(prompt_ids) - self._prompt_tail), len(prompt_ids))
        ids = [as_id(prompt_ids[position], where="prompt_ids", position=position) for position in tail]
        known = [token_id for token_id in ids if self._enters(token_id)]
        return self._state(known[max(0, len(known) - self._lookback) :])

    def _enters(self, token_id: int) -> bool:
        """Whether an id gets into the window."""
        piece = self._vocabulary.piece(token_id)
        if piece is None and self.options.unknown_ids == "error":
            raise UnknownTokenId(token_id)
        return piece is not None and not (piece.special and self.options.skip_special_tokens)

    def _new_text(self, state: WindowState) -> str:
        state = WindowState(*state)
        if len(state.ids) == state.read:
            return ""
        return self._decode(state.ids)[len(state.context) :]

    def _commit(self, state: WindowState) -> WindowState:
        """Make context of the ids whose text is out; where there are none, nothing changes."""
        return self._state(state.ids[state.read :]) if len(state.ids) > state.read else state

    def _state(self, ids: Sequence[int]) -> WindowState:
        return WindowState(tuple(ids), len(ids), self._decode(ids)) if ids else WindowState()
