"""
Compiled stages in a row: the front for tokens that are apart, the joiner that makes one text of them, its tail for that text.

A pipeline has no state: a state is a plain value that goes in and comes out. It is written to be read, not to be fast, since
`automaton` remembers its answers. A vocabulary of bytes as an example, where ids 1 and 2 are the bytes E2 82 and AC of "€":

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

from collections.abc import Callable, Sequence
from typing import NamedTuple, SupportsIndex

from ...errors import UnknownTokenId
from ...ids import as_id
from ..options import DecodeOptions
from ..utf8 import REPLACEMENT
from ..vocabulary import Piece, Vocabulary
from .compiler import AnyTokenStage, Stages, compile_rules
from .joiners import Held
from .rules import Rule, byte_of
from .stages import Token

# Maximum ids that are looked at together while a prompt is read backwards: a character has at most four bytes, so four tokens.
MAX_READ_BACK = 4


class State(NamedTuple):
    """The whole state of a stream, as a plain value."""

    front: tuple[object, ...]
    joint: object
    after_added: bool = False
    """Whether the token before was an added token. Used with ``spaces_between_special_tokens=False`` only; else always False."""


class Pipeline:
    """
    Args:
        rules: The decoder's rules in order; a sequence of decoders is flattened.
        vocabulary: The pieces of the ids.
        options: The options. `clean_up_tokenization_spaces` is True or False, no longer None.
    """

    def __init__(self, rules: Sequence[Rule], vocabulary: Vocabulary, options: DecodeOptions) -> None:
        self.vocabulary = vocabulary
        self.options = options
        stages = compile_rules(rules, options)
        self.notes = tuple(stages.notes)
        """For people: the text that is held longer than law 3 allows, and why."""
        self._front, self._joiner, self._spell = stages.front, stages.joiner, stages.spell
        self._skipped, self._specials_are_text = stages.skipped, stages.specials_are_text
        self._byte_tokens = stages.byte_tokens
        self.alone = _alone(stages)
        """
        Gives the text of a token that leads from the idle state back to it, without making states: nearly all tokens do. None
        for a token that does not, and where that is not seen at once.
        """
        self._keeps_border = options.spaces_between_special_tokens is False and not options.skip_special_tokens
        self.start = State(tuple(stage.start for stage in self._front), self._joiner.start)
        self.idle = State(tuple(stage.idle for stage in self._front), self._joiner.idle)
        """The state in which nothing is held and the first token is past. Nearly all steps lead from it back to it."""

    def feed(self, state: State, token_id: int) -> tuple[str, State]:
        """
        Take one id; return the text that is certain now, and the next state.

        Raises:
            UnknownTokenId: The id has no piece (with ``unknown_ids="error"``).
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
        Return the state at which a stream begins after a prompt: none of the prompt's text comes out of it (law 5).

        The prompt is read backwards to an id that *resets*: the state after it does not depend on the ids before it. From there
        it is read forwards. In ordinary prompts the last id or the one before it resets. Qwen's vocabulary as an example:

            prompt            read backwards     why                                     then forwards
            … 785 3974        3974               "quick" resets; it is not the first     785, 3974
                                                 token, so the id before it is read too
            … 785 26525 226   226, 26525         226 is the byte 84, the end of 😄:      785, 26525, 226
                                                 a part of a character does not reset

        A rule that may look at the whole text never resets (a regular expression, say): then the whole prompt is read.

        Raises:
            TokenTypeError: An id that is read is not an integer.
            UnknownTokenId: An id that is read has no piece (with ``unknown_ids="error"``).
        """

        def id_at(position: int) -> int:
            return as_id(prompt_ids[position], where="prompt_ids", position=position)

        seen: list[int] = []
        first = len(prompt_ids)
        while first and not (seen and self.resets(seen)):
            first -= 1
            if self.sees(id_at(first)):
                seen = [id_at(first), *seen[: MAX_READ_BACK - 1]]
        # Begin one visible id earlier; otherwise the id that resets would be treated as the first of the text.
        while first and not self.sees(id_at(first - 1)):
            first -= 1
        state = self.start
        for position in range(max(0, first - 1), len(prompt_ids)):
            _, state = self.feed(state, id_at(position))
        return state._replace(joint=self._joiner.border(state.joint, self.finish(state)))

    def held(self, state: State) -> Held:
        """Return the text or bytes that are held, for display, and the reason."""
        waiting, joint = self._drain(state)
        what, why = self._joiner.held(joint)
        if not waiting:
            return what, why
        rest = what if isinstance(what, bytes) else what.encode()
        return waiting.encode() + rest, why or "a rule over tokens"

    def sees(self, token_id: int) -> bool:
        """Whether the decoder sees this id: it has a piece, and is not skipped."""
        piece = self.vocabulary.piece(token_id)
        return piece is not None and not (piece.special and self.options.skip_special_tokens)

    def resets(self, token_ids: Sequence[int]) -> bool:
        """
        Whether the state after these ids does not depend on the ids before them, of which the decoder sees at least one.

        False is always safe: a prompt is then read from an earlier id.

        Args:
            token_ids: Neighbouring ids that the decoder sees.
        """
        # One of two stages may leave a token out, and then the other has not had its first token yet.
        if len(self._front) > 1:
            return False
        tokens: list[Token] = []
        for piece in filter(None, map(self.vocabulary.piece, token_ids)):
            if not all(stage.resets(_token(piece)) for stage in self._front):
                return False
            tokens += self._middle(_token(piece))
        return bool(tokens) and self._joiner.resets(tokens)

    def token_bytes(self, piece: Piece) -> bytes:
        """Return the exact bytes of a piece in the middle of a text. Its neighbours do not count (law 10)."""
        if self._byte_tokens and (byte := byte_of(piece.text)) is not None:
            return bytes([byte])
        return b"".join(map(self._joiner.bytes_of, self._middle(_token(piece))))

    def _middle(self, token: Token) -> tuple[Token, ...]:
        tokens: tuple[Token, ...] = (token,)
        for stage in self._front:
            tokens = tuple(out for token in tokens for out in stage.middle(token))
        return tokens


def _alone(stages: Stages) -> Callable[[Token], str | None]:
    front, alone = stages.front, stages.joiner.alone
    if not front:
        return alone
    rule = front[0].idle_rule() if len(front) == 1 else None
    if rule is not None:
        return lambda token: alone(rule(token))

    def through(token: Token) -> str | None:
        for stage in front:
            tokens, state = stage.feed(stage.idle, token)
            if state != stage.idle or len(tokens) != 1:
                return None
            (token,) = tokens
        return alone(token)

    return through


def _token(piece: Piece) -> Token:
    return piece.text if piece.data is None else piece.data


def _through(stage: AnyTokenStage, state: object, tokens: Sequence[Token]) -> tuple[Sequence[Token], object]:
    """Feed tokens to one stage."""
    out: list[Token] = []
    for token in tokens:
        more, state = stage.feed(state, token)
        out += more
    return out, state
