"""
A decoder's rules compiled to stages in a row, for one choice of options.

Tokens that are still apart go through token stages, a joiner makes one text of them, the tail holds the rules over that text.
A pipeline has no state: a state is a plain value, ``(front, joint)``, that goes in and comes out. Nothing here is fast; moves
are remembered in `automaton`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..errors import UnknownTokenId
from .byte_runs import ByteRuns, LossyRuns, byte_token, raw_bytes
from .char_rules import ByteTokenText, CharRule, StripText, Substitute
from .cleanup import TRANSFORMERS_CLEANUP, WORDPIECE_CLEANUP
from .joiners import Bytes, Concatenation, Held, Joiner, LastPiece
from .late_rules import ByteLevelText, ReplaceMatches, WholeText, matched_characters
from .options import DecodeOptions
from .rewriter import Rewriter, TooManyStates
from .rules import (
    CTC,
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    Fuse,
    JoinWithSpaces,
    Metaspace,
    RawBytes,
    Replace,
    Rule,
    SentencePiece,
    Strip,
    WordPiece,
    byte_level_bytes,
    byte_level_spelling,
    byte_of,
)
from .tail import Tail, TextStage
from .token_stages import EachToken, FirstToken, LastToken, LeadingSpace, Repeats, Runs, TokenStage
from .utf8 import REPLACEMENT
from .vocabulary import Piece, Vocabulary

__all__ = ["Pipeline", "State"]


class State(NamedTuple):
    """Where a stream stands: all of it, as a plain value."""

    front: tuple[Any, ...]
    joint: Any
    after_added: bool = False
    """The piece before was an added token (kept only if `spaces_between_special_tokens` is False)."""


class Pipeline:
    """
    Args:
        rules: The decoder, flat and in order.
        vocabulary: The pieces behind the ids.
        options: With `clean_up_tokenization_spaces` decided.
    """

    def __init__(self, rules: Sequence[Rule], vocabulary: Vocabulary, options: DecodeOptions) -> None:
        self.vocabulary = vocabulary
        self.options = options
        self.notes: list[str] = []
        """What is held longer than the laws would like, and why, for people."""
        self._specials_split = any(isinstance(r, SentencePiece) or (isinstance(r, RawBytes) and r.specials_split) for r in rules)
        tokens, joiner, text = self._split(list(rules))
        self._byte_tokens = any(isinstance(stage, Runs) for stage in tokens)
        if options.clean_up_tokenization_spaces:
            text.append([Substitute(*pair) for pair in TRANSFORMERS_CLEANUP])
        self._front = tuple(tokens)
        self._joiner = joiner(Tail(self._stages(text)))
        self._keeps_border = options.spaces_between_special_tokens is False and not options.skip_special_tokens
        self.start = State(tuple(stage.start for stage in tokens), self._joiner.start)
        self.settled = State(tuple(stage.usual for stage in tokens), self._joiner.usual)
        """The state in which nothing is held and the beginning is past; nearly all steps lead from it back to it."""

    def feed(self, state: State, token_id: int) -> tuple[str, State]:
        """
        Take one id and return the text that is certain now, and the next state.

        Raises:
            UnknownTokenId: The id has no piece, and the options ask to be told.
        """
        piece = self.vocabulary.piece(token_id)
        if piece is None:
            match self.options.unknown_ids:
                case "skip":
                    return "", state
                case "replace":
                    return self._feed_text(state, REPLACEMENT)
                case "error":
                    raise UnknownTokenId(token_id)
        token: Any = piece.text if piece.data is None else piece.data
        if piece.special:
            if self.options.skip_special_tokens:
                if not self._specials_split:
                    return "", state
                token = ""
            elif self._specials_split:
                token = piece.text
        if self._keeps_border:
            if piece.added and state.after_added:
                return self._feed_text(state, piece.text)
            state = state._replace(after_added=piece.added)
        out, front, joint = "", [], state.joint
        tokens: tuple[Any, ...] = (token,)
        for stage, at in zip(self._front, state.front, strict=True):
            tokens, at = _through(stage, at, tokens)
            front.append(at)
        for token in tokens:
            text, joint = self._joiner.feed(joint, token)
            out += text
        return out, State(tuple(front), joint, state.after_added)

    def _feed_text(self, state: State, text: str) -> tuple[str, State]:
        """Text that goes round the rules over tokens."""
        out, joint = self._joiner.feed(state.joint, self._spell(text))
        return out, state._replace(joint=joint)

    def finish(self, state: State) -> str:
        """Return the rest of the text."""
        out, joint = self._drain(state)
        return out + self._joiner.finish(joint)

    def _drain(self, state: State) -> tuple[str, Any]:
        tokens: tuple[str, ...] = ()
        for stage, at in zip(self._front, state.front, strict=True):
            tokens, at = _through(stage, at, tokens)
            tokens += stage.finish(at)
        out, joint = "", state.joint
        for token in tokens:
            text, joint = self._joiner.feed(joint, token)
            out += text
        return out, joint

    def border(self, state: State) -> State:
        """Return the state behind the end of a prompt: nothing that the prompt alone decodes to comes out of it."""
        return state._replace(joint=self._joiner.border(state.joint, self.finish(state)))

    def held(self, state: State) -> Held:
        """Return what is held, and why, for display."""
        waiting, joint = self._drain(state)
        what, why = self._joiner.held(joint)
        if not waiting:
            return what, why
        rest = what if isinstance(what, bytes) else what.encode()
        return waiting.encode() + rest, why or "a rule over tokens"

    def says(self, token_id: int) -> bool:
        """Whether the decoder sees this id at all: it has a piece, and is not skipped."""
        piece = self.vocabulary.piece(token_id)
        return piece is not None and not (piece.special and self.options.skip_special_tokens)

    def settles(self, token_id: int) -> bool:
        """Whether the state after this id, which is not the first, is the same whatever came before it."""
        piece = self.vocabulary.piece(token_id)
        # Of two stages one may swallow a token, and the other be before its first: then nothing is certain.
        if piece is None or not self.says(token_id) or len(self._front) > 1:
            return False
        token = piece.text if piece.data is None else piece.data
        tokens = self._middle(token)
        return bool(tokens) and all(stage.forgets(token) for stage in self._front) and all(map(self._joiner.settles, tokens))

    def token_bytes(self, piece: Piece) -> bytes:
        """Return the exact bytes of a piece, in the middle of a text and whatever stands beside it (law 10)."""
        if self._byte_tokens and (byte := byte_of(piece.text)) is not None:
            return bytes([byte])
        return b"".join(map(self._joiner.bytes_of, self._middle(piece.text if piece.data is None else piece.data)))

    def _middle(self, token: Any) -> tuple[Any, ...]:
        tokens: tuple[Any, ...] = (token,)
        for stage in self._front:
            tokens = tuple(out for token in tokens for out in stage.middle(token))
        return tokens

    def _split(self, rules: list[Rule]) -> tuple[list[TokenStage], Callable[[Tail], Joiner], list[TextRule]]:
        """Sort the rules: those over tokens, the one that joins, those over text."""
        self._spell: Callable[[str], Any] = str
        front: list[TokenStage] = []
        while rules:
            rule = rules.pop(0)
            joins = not rules or isinstance(rules[0], Fuse)
            match rule:
                case Fuse():
                    return front, Concatenation, self._over_text(rules)
                case ByteLevel():
                    self._spell = byte_level_spelling
                    return front, lambda tail: Bytes(tail, byte_level_bytes), self._over_text(rules)
                case RawBytes(specials_split=True):
                    return front, lambda tail: LossyRuns(tail, raw_bytes), self._over_text(rules)
                case RawBytes():
                    self._spell = str.encode
                    return front, lambda tail: Bytes(tail, bytes), self._over_text(rules)
                case SentencePiece():
                    strips = rule.add_dummy_prefix or rule.remove_extra_whitespaces
                    front.append(LeadingSpace(strips=strips, every=rule.remove_extra_whitespaces))
                    return front, lambda tail: LossyRuns(tail, raw_bytes, per_byte=True), self._over_text(rules)
                case ByteFallback() if joins:
                    if self.options.byte_fallback == "eager":
                        return front, lambda tail: LossyRuns(tail, byte_token), self._over_text(rules)
                    return front, ByteRuns, self._over_text(rules)
                case BPEDecoder() if joins:
                    return front, _last_piece(rule), self._over_text(rules)
                case _:
                    front.append(self._over_tokens(rule))
        return front, Concatenation, []

    def _over_tokens(self, rule: Rule) -> TokenStage:
        match rule:
            case Metaspace() | WordPiece() | JoinWithSpaces():
                return FirstToken(rule.first, rule.rest)
            case CTC():
                return Repeats(rule.each)
            case ByteFallback():
                self.notes.append("byte runs are held whole, since other rules over tokens follow")
                return Runs(eager=self.options.byte_fallback == "eager")
            case BPEDecoder():
                self.notes.append("one token is held, since other rules over tokens follow the last-token rule")
                return LastToken(rule.inner, rule.last)
            case Strip() | Replace():
                return EachToken(rule.each)
        raise AssertionError(rule)  # all others join, and are no rules over tokens

    def _over_text(self, rules: Sequence[Rule]) -> list[TextRule]:
        """What each rule becomes when the whole text is one token: the first, and the last."""
        found: list[TextRule] = []
        for rule in rules:
            match rule:
                case Fuse() | JoinWithSpaces():
                    pass
                case Strip():
                    found.append([StripText(rule.content, rule.start, rule.stop)])
                case Replace() if rule.regex is None:
                    found.append([Substitute(rule.pattern, rule.content)])
                case Metaspace():
                    found.append([Substitute(rule.replacement, rule.first(rule.replacement))])
                case BPEDecoder():
                    found.append([Substitute(rule.suffix, "")])
                case ByteFallback():
                    found.append([ByteTokenText(byte_of)])
                case WordPiece():
                    found.append([Substitute(*pair) for pair in WORDPIECE_CLEANUP if rule.cleanup])
                case CTC():
                    found.append([Substitute(rule.pad_token, "")])
                    if rule.cleanup:
                        found.append([Substitute(*pair) for pair in WORDPIECE_CLEANUP])
                        found.append([Substitute(rule.word_delimiter_token, " ")])
                case RawBytes() | SentencePiece():
                    raise AssertionError(rule)  # over joined text there are no pieces any more
                case ByteLevel():
                    self.notes.append("all but visible ASCII is held: ByteLevel over joined text looks at the whole of it")
                    found.append(ByteLevelText())
                case Replace():
                    found.append(self._regex(rule))
        return found

    def _regex(self, rule: Replace) -> TextStage:
        """A regular expression over joined text."""
        characters = matched_characters(rule.pattern)
        if characters is None or rule.matches_nothing:
            self.notes.append(f"all text is held to the end: /{rule.pattern}/ may look at the whole of it")
            return WholeText(rule.each)
        self.notes.append(f"what /{rule.pattern}/ may still match is held")
        return ReplaceMatches(rule.each, characters)

    def _stages(self, rules: Sequence[TextRule]) -> list[TextStage]:
        """Compile neighbouring character rules into one table; the others are stages already."""
        stages: list[TextStage] = []
        waiting: list[CharRule] = []
        for rule in [*rules, None]:
            if isinstance(rule, list):
                waiting += [one for one in rule if not _does_nothing(one)]
                continue
            if waiting:
                stages.append(self._table(waiting))
                waiting = []
            if rule is not None:
                stages.append(rule)
        return stages

    def _table(self, rules: list[CharRule]) -> TextStage:
        try:
            return Rewriter(rules)
        except TooManyStates:
            self.notes.append("all text is held to the end: its rules together would need too large a table")
            return WholeText(lambda text: _run(rules, text))


TextRule = list[CharRule] | TextStage


def _through(stage: TokenStage, state: Any, tokens: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    """Feed tokens to one stage."""
    out: tuple[str, ...] = ()
    for token in tokens:
        more, state = stage.feed(state, token)
        out += more
    return out, state


def _last_piece(rule: BPEDecoder) -> Callable[[Tail], Joiner]:
    return lambda tail: LastPiece(tail, rule.inner, rule.last)


def _does_nothing(rule: CharRule) -> bool:
    if isinstance(rule, Substitute):
        return rule.pattern == rule.content
    return isinstance(rule, StripText) and not rule.left and not rule.right


def _run(rules: Sequence[CharRule], text: str) -> str:
    for rule in rules:
        state, out = rule.start, []
        for character in text:
            part, state = rule.feed(state, character)
            out.append(part)
        text = "".join(out) + rule.finish(state)
    return text
