"""
A decoder's rules compiled to stages, for one choice of options.

Tokens that are still apart go through the front, a joiner makes one text of them, the tail holds the rules over that text: this
module sorts the rules into the three, and says in notes where one has to hold more than the laws would like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..options import DecodeOptions
from .byte_runs import ByteRuns, LossyRuns, byte_token, raw_bytes
from .char_rules import CharRule, StripText, Substitute
from .cleanup import TRANSFORMERS_CLEANUP, WORDPIECE_CLEANUP
from .joiners import Bytes, Concatenation, Joiner, LastPiece, ValidBytes
from .rewriter import Rewriter, TooManyStates
from .rules import (
    CTC,
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    Denormalizer,
    Fuse,
    JoinWithSpaces,
    Metaspace,
    RawBytes,
    Replace,
    Rule,
    SentencePiece,
    Strip,
    StripEnds,
    WordPiece,
    byte_level_bytes,
    byte_level_spelling,
)
from .stages import EachToken, FirstToken, LastToken, LeadingSpace, Repeats, Runs, TokenStage
from .tail import Tail, TextStage
from .text_rules import ByteLevelText, ByteTokenText, ReplaceMatches, WhiteEnds, WholeText, matched_characters

__all__ = ["Stages", "compile_rules"]


@dataclass(slots=True)
class Stages:
    """What a decoder's rules became."""

    front: tuple[TokenStage, ...] = ()
    joiner: Joiner = field(init=False)
    spell: Callable[[str], Any] = str
    """Turns text that is no piece of the vocabulary into a token."""

    skipped: Any = None
    """What a skipped special is to the stages: nothing at all, or a token without text that counts as one."""

    specials_are_text: bool = False
    """A special that is not skipped is its text, whatever its bytes are."""

    byte_tokens: bool = False
    """A token of the form ``<0xHH>`` is a byte before the tokens are joined."""

    notes: list[str] = field(default_factory=list)
    """What is held longer than the laws would like, and why, for people."""


def compile_rules(rules: Sequence[Rule], options: DecodeOptions) -> Stages:
    """
    Compile rules, flat and in order.

    Args:
        rules: What the decoder says.
        options: With `clean_up_tokenization_spaces` decided.
    """
    compiler = _Compiler(options)
    front, joiner, text = compiler.sort(list(rules))
    if options.clean_up_tokenization_spaces:
        text.append([Substitute(*pair) for pair in TRANSFORMERS_CLEANUP])
    stages = compiler.stages
    stages.front = tuple(_fused(front))
    stages.byte_tokens = any(isinstance(stage, Runs) for stage in front)
    stages.joiner = joiner(Tail(compiler.over_joined_text(text)))
    return stages


class _Compiler:
    def __init__(self, options: DecodeOptions) -> None:
        self.stages = Stages()
        self._notes = self.stages.notes
        self._eager = options.byte_fallback == "eager"

    def sort(self, rules: list[Rule]) -> tuple[list[TokenStage], Callable[[Tail], Joiner], list[TextRule]]:
        """Sort the rules: those over tokens, the one that joins, those over text."""
        front: list[TokenStage] = []
        while rules:
            rule = rules.pop(0)
            joins = not rules or isinstance(rules[0], Fuse)
            match rule:
                case Fuse():
                    return front, Concatenation, self._over_text(rules)
                case ByteLevel():
                    self.stages.spell = byte_level_spelling
                    return front, lambda tail: Bytes(tail, byte_level_bytes), self._over_text(rules)
                case RawBytes(specials_split=True):
                    self.stages.skipped, self.stages.specials_are_text = "", True
                    return front, lambda tail: LossyRuns(tail, raw_bytes), self._over_text(rules)
                case RawBytes():
                    self.stages.spell = str.encode
                    if rule.drops_first_space:
                        self.stages.skipped = b""
                        front.append(FirstToken(rule.first, rule.rest))
                    kind = ValidBytes if rule.drops_invalid else Bytes
                    return front, partial(kind, to_bytes=bytes), self._over_text(rules)
                case SentencePiece():
                    self.stages.skipped, self.stages.specials_are_text = "", True
                    strips = rule.add_dummy_prefix or rule.remove_extra_whitespaces
                    surfaces = {rule.unknown: rule.unknown_surface} if rule.unknown else {}
                    front.append(LeadingSpace(strips=strips, every=rule.remove_extra_whitespaces, surfaces=surfaces))
                    return front, lambda tail: LossyRuns(tail, raw_bytes, per_byte=True), self._over_text(rules)
                case ByteFallback() if joins:
                    if self._eager:
                        return front, lambda tail: LossyRuns(tail, byte_token), self._over_text(rules)
                    return front, ByteRuns, self._over_text(rules)
                case BPEDecoder() if joins:
                    return front, _last_piece(rule), self._over_text(rules)
                case _:
                    front.append(self._over_tokens(rule))
        return front, Concatenation, []

    def _over_tokens(self, rule: Rule) -> TokenStage:
        match rule:
            case Metaspace():
                return FirstToken(rule.first, rule.rest)
            case WordPiece() | JoinWithSpaces():
                return FirstToken(rule.first, rule.rest, spaces=True)
            case CTC():
                return Repeats(rule.each)
            case ByteFallback():
                self._notes.append("byte runs are held whole, since other rules over tokens follow")
                return Runs(eager=self._eager)
            case BPEDecoder():
                self._notes.append("one token is held, since other rules over tokens follow the last-token rule")
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
                    found.append(ByteTokenText())
                case WordPiece():
                    found.append([Substitute(*pair) for pair in WORDPIECE_CLEANUP if rule.cleanup])
                case CTC():
                    found.append([Substitute(rule.pad_token, "")])
                    if rule.cleanup:
                        found.append([Substitute(*pair) for pair in WORDPIECE_CLEANUP])
                        found.append([Substitute(rule.word_delimiter_token, " ", in_nothing=True)])
                case Denormalizer():
                    self._notes.append("all text is held to the end: the model's denormalizer may look at the whole of it")
                    found.append(WholeText(rule.each))
                case StripEnds():
                    self._notes.append("white space is held until something follows it, since at the end it vanishes")
                    found.append(WhiteEnds())
                case RawBytes() | SentencePiece():
                    raise AssertionError(rule)  # over joined text there are no pieces any more
                case ByteLevel():
                    self._notes.append("all but visible ASCII is held: ByteLevel over joined text looks at the whole of it")
                    found.append(ByteLevelText())
                case Replace():
                    found.append(self._regex(rule))
        return found

    def _regex(self, rule: Replace) -> TextStage:
        """A regular expression over joined text."""
        characters = matched_characters(rule.pattern)
        if characters is None or rule.matches_nothing:
            self._notes.append(f"all text is held to the end: /{rule.pattern}/ may look at the whole of it")
            return WholeText(rule.each)
        self._notes.append(f"what /{rule.pattern}/ may still match is held")
        return ReplaceMatches(rule.each, characters)

    def over_joined_text(self, rules: Sequence[TextRule]) -> list[TextStage]:
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
            self._notes.append("all text is held to the end: its rules together would need too large a table")
            return WholeText(lambda text: _run(rules, text))


TextRule = list[CharRule] | TextStage


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


def _fused(front: Sequence[TokenStage]) -> list[TokenStage]:
    """Neighbouring stages that give one token for each become one, so that streams have less state and prompts settle sooner."""
    fused: list[TokenStage] = []
    for stage in front:
        before = fused[-1] if fused else None
        if isinstance(before, (EachToken, FirstToken)) and isinstance(stage, (EachToken, FirstToken)):
            fused[-1] = before.then(stage)
        else:
            fused.append(stage)
    return fused
