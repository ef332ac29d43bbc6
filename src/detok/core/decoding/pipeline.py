"""
Compiled stages in a row: the front for tokens that are still apart, a joiner that makes one text of them, its tail over it.

A pipeline has no state: a state is a plain value that goes in and comes out. Nothing here is fast; moves are remembered in
`automaton`. A byte-level vocabulary as an example, whose tokens 1 and 2 are the bytes E2 82 and AC:

>>> from detok.core.decoding.rules import RawBytes
>>> from detok.core.options import DecodeOptions
>>> class Euro:
...     def piece(self, token_id):
...         return {1: Piece("", data=b"\\xe2\\x82"), 2: Piece("", data=b"\\xac")}.get(token_id)
>>> pipeline = Pipeline([RawBytes()], Euro(), DecodeOptions(clean_up_tokenization_spaces=False))
>>> first, state = pipeline.feed(pipeline.start, 1)
>>> second, state = pipeline.feed(state, 2)
>>> first, second, state == pipeline.idle
('', '€', True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex

from ...errors import UnknownTokenId
from ...ids import as_id
from ..options import DecodeOptions
from ..utf8 import REPLACEMENT
from ..vocabulary import Piece, Vocabulary
from .compiler import AnyTokenStage, compile_rules
from .joiners import Held
from .rules import Rule, byte_of
from .stages import Token

# Maximum ids that are looked at together while a prompt is read backwards: no character is longer than four bytes.
MAX_READ_BACK = 4


class State(NamedTuple):
    """Where a stream stands: all of it, as a plain value."""

    front: tuple[object, ...]
    joint: object
    after_added: bool = False
    """The piece before was an added token (kept only if `spaces_between_special_tokens` is False)."""


class Pipeline:
    """
    Args:
        rules: The decoder, flat and in order.
        vocabulary: The pieces of the ids.
        options: With `clean_up_tokenization_spaces` decided.
    """

    def __init__(self, rules: Sequence[Rule], vocabulary: Vocabulary, options: DecodeOptions) -> None:
        self.vocabulary = vocabulary
        self.options = options
        stages = compile_rules(rules, options)
        self.notes = tuple(stages.notes)
        """What is held longer than the laws would like, and why, for people."""
        self._front, self._joiner, self._spell = stages.front, stages.joiner, stages.spell
        self._skipped, self._specials_are_text = stages.skipped, stages.specials_are_text
        self._byte_tokens = stages.byte_tokens
        self._keeps_border = options.spaces_between_special_tokens is False and not options.skip_special_tokens
        self.start = State(tuple(stage.start for stage in self._front), self._joiner.start)
        self.idle = State(tuple(stage.idle for stage in self._front), self._joiner.idle)
        """The state in which nothing is held and the beginning is past; nearly all steps lead from it back to it."""

    def feed(self, state: State, token_id: int) -> tuple[str, State]:
        """
        Take one id and return the text that is certain now, and the next state.

        Raises:
            UnknownTokenId: The id has no piece, and the options ask to be told.
        """
        piece = self.vocabulary.piece(token_id)
        if piece is None:
            if self.options.unknown_ids == "skip":
                return "", state
            if self.options.unknown_ids == "error":
                raise UnknownTokenId(token_id)
            return self._feed_token(state, self._spell(REPLACEMENT), added=False)
        if not piece.special:
            return self._feed_token(state, _token(piece), added=piece.added)
        if not self.options.skip_special_tokens:
            return self._feed_token(state, piece.text if self._specials_are_text else _token(piece), added=piece.added)
        if self._skipped is None:
            return "", state
        return self._feed_token(state, self._skipped, added=False)

    def alone(self, piece: Piece) -> str | None:
        """
        Return the text of a piece that leads from the idle state back to it, without making states: nearly all pieces do.

        None for a piece that does not, and where that is not seen at once.
        """
        if piece.special or (piece.added and self._keeps_border):
            return None
        token = _token(piece)
        for stage in self._front:
            tokens, state = stage.feed(stage.idle, token)
            if state != stage.idle or len(tokens) != 1:
                return None
            (token,) = tokens
        return self._joiner.alone(token)

    def _feed_token(self, state: State, token: Token, *, added: bool) -> tuple[str, State]:
        """Take one token through all stages."""
        at_front = state.front
        if self._keeps_border:
            if added and state.after_added:
                at_front = tuple(stage.without_space(at) for stage, at in zip(self._front, at_front, strict=True))
            state = state._replace(after_added=added)
        tokens: Sequence[Token] = (token,)
        front = []
        for stage, at in zip(self._front, at_front, strict=True):
            tokens, at = _through(stage, at, tokens)
            front.append(at)
        out, joint = self._join(state.joint, tokens)
        return out, State(tuple(front), joint, state.after_added)

    def _join(self, joint: object, tokens: Sequence[Token]) -> tuple[str, object]:
        texts = []
        for token in tokens:
            text, joint = self._joiner.feed(joint, token)
            texts.append(text)
        return "".join(texts), joint

    def finish(self, state: State) -> str:
        """Return the rest of the text."""
        out, joint = self._drain(state)
        return out + self._joiner.finish(joint)

    def _drain(self, state: State) -> tuple[str, object]:
        """End the stages before the joiner."""
        tokens: Sequence[Token] = ()
        for stage, at in zip(self._front, state.front, strict=True):
            tokens, at = _through(stage, at, tokens)
            tokens = (*tokens, *stage.finish(at))
        return self._join(state.joint, tokens)

    def after_prompt(self, prompt_ids: Sequence[SupportsIndex]) -> State:
        """
        Return the state after a prompt: nothing that the prompt alone decodes to comes out of it.

        The prompt is read backwards to an id after which the state is the same whatever came before, and forwards again from
        there; in ordinary prompts that is the last id or the one before it:

            prompt            read backwards     why                                     then forwards
            … 785 3974        3974, 785          "quick" resets, but it must not be      785, 3974
                                                 taken for the first of the text
            … 785 9754 230    230, 9754, 785     a part of a character resets nothing    785, 9754, 230

        Raises:
            TokenTypeError, UnknownTokenId: Of one of the ids that are read.
        """

        def id_at(position: int) -> int:
            return as_id(prompt_ids[position], where="prompt_ids", position=position)

        seen: list[int] = []
        first = len(prompt_ids)
        while first and not (seen and self.resets(seen)):
            first -= 1
            if self.sees(id_at(first)):
                seen = [id_at(first), *seen[: MAX_READ_BACK - 1]]
        # Begin one id earlier that the decoder sees: else the one that resets would be taken for the first of the text.
        while first and not self.sees(id_at(first - 1)):
            first -= 1
        state = self.start
        for position in range(max(0, first - 1), len(prompt_ids)):
            _, state = self.feed(state, id_at(position))
        return state._replace(joint=self._joiner.border(state.joint, self.finish(state)))

    def held(self, state: State) -> Held:
        """Return what is held, and why, for display."""
        waiting, joint = self._drain(state)
        what, why = self._joiner.held(joint)
        if not waiting:
            return what, why
        rest = what if isinstance(what, bytes) else what.encode()
        return waiting.encode() + rest, why or "a rule over tokens"

    def sees(self, token_id: int) -> bool:
        """Whether the decoder sees this id at all: it has a piece, and is not skipped."""
        piece = self.vocabulary.piece(token_id)
        return piece is not None and not (piece.special and self.options.skip_special_tokens)

    def resets(self, token_ids: Sequence[int]) -> bool:
        """
        Whether the state after these ids is the same whatever came before them, if something did.

        Args:
            token_ids: Ids that the decoder sees, in a row.
        """
        # Of two stages one may swallow a token, and the other be before its first: then nothing is certain.
        if len(self._front) > 1:
            return False
        tokens: list[Token] = []
        for piece in filter(None, map(self.vocabulary.piece, token_ids)):
            if not all(stage.resets(_token(piece)) for stage in self._front):
                return False
            tokens += self._middle(_token(piece))
        return bool(tokens) and self._joiner.resets(tokens)

    def token_bytes(self, piece: Piece) -> bytes:
        """Return the exact bytes of a piece, in the middle of a text and whatever stands beside it (law 10)."""
        if self._byte_tokens and (byte := byte_of(piece.text)) is not None:
            return bytes([byte])
        return b"".join(map(self._joiner.bytes_of, self._middle(_token(piece))))

    def _middle(self, token: Token) -> tuple[Token, ...]:
        tokens: tuple[Token, ...] = (token,)
        for stage in self._front:
            tokens = tuple(out for token in tokens for out in stage.middle(token))
        return tokens


def _token(piece: Piece) -> Token:
    return piece.text if piece.data is None else piece.data


def _through(stage: AnyTokenStage, state: Any, tokens: Sequence[Token]) -> tuple[Sequence[Token], object]:
    """Feed tokens to one stage."""
    out: list[Token] = []
    for token in tokens:
        more, state = stage.feed(state, token)
        out += more
    return out, state
