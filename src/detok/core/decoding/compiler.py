"""
Compiles a decoder's rules to stages, for one choice of options.

Tokens that are still apart go through the *front*, the *joiner* makes one text of them, and the *tail* has the rules over that
text. This module sorts the rules into these three. Llama 2's decoder as an example:

    rule            while tokens are apart    joins           over joined text
    Replace ▁       EachToken
    ByteFallback                              ByteRuns
    Fuse                                      (already one)   nothing
    Strip 1 left                                              StripText, in a Rewriter

If a rule holds text longer than law 3 allows, a note says so; ``tokenizer.description`` shows the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, assert_never

from ..options import DecodeOptions
from . import rules as kinds
from .byte_runs import ByteRuns
from .cleanup import TRANSFORMERS_CLEANUP
from .joiners import Joiner, LastPiece, OneAfterAnother, byte_token, raw_bytes
from .rewriter import Rewriter, TooManyStates
from .rules import Rule, TextRule, byte_level_bytes, byte_level_spelling
from .stages import EachToken, FirstToken, HeldRuns, LastToken, LeadingSpace, Repeats, Token, TokenStage
from .tail import Tail
from .text_rules import AnyTextStage, CharRule, StripText, Substitute, WholeText

# A pipeline has stages of many kinds in one tuple, and gives each the states that it returned; mypy cannot follow that.
AnyTokenStage = TokenStage[Any]
AnyJoiner = Joiner[Any]


@dataclass(slots=True)
class Stages:
    """A decoder's rules, compiled."""

    front: tuple[AnyTokenStage, ...] = ()
    joiner: AnyJoiner = field(init=False)
    spell: Callable[[str], Token] = str
    """Makes a token of text that is not in the vocabulary, such as U+FFFD for an unknown id."""

    skipped: Token | None = None
    """The token that a skipped special is for the stages. None: they do not see it. An empty token may still be the first one."""

    specials_are_text: bool = False
    """Whether a special that is not skipped is its text, even if the piece has bytes."""

    byte_tokens: bool = False
    """Whether a token ``<0xHH>`` becomes a byte already in the front."""

    notes: list[str] = field(default_factory=list)
    """For people: the text that is held longer than law 3 allows, and why."""


def compile_rules(rules: Sequence[Rule], options: DecodeOptions) -> Stages:
    """
    Compile a decoder's rules to stages.

    Args:
        rules: The decoder's rules in order; a sequence of decoders is flattened.
        options: The options. `clean_up_tokenization_spaces` is True or False, no longer None.
    """
    compiler = _Compiler(eager=options.byte_fallback == "eager")
    stages = compiler.stages
    front: list[AnyTokenStage] = []
    join: Callable[[Tail], AnyJoiner] = OneAfterAnother
    over_text: list[TextRule] = []
    for place, rule in enumerate(rules):
        is_last = place + 1 == len(rules) or isinstance(rules[place + 1], kinds.Fuse)
        step = compiler.over_tokens(rule, is_last=is_last)
        if isinstance(step, _Joins):
            join = step.joiner
            front += step.front
            over_text += compiler.over_text(rules[place + 1 :])
            break
        front.append(step)
    if options.clean_up_tokenization_spaces:
        over_text.append([Substitute(*pair) for pair in TRANSFORMERS_CLEANUP])
    stages.front = tuple(_fused(front))
    stages.byte_tokens = any(isinstance(stage, HeldRuns) for stage in front)
    stages.joiner = join(Tail(compiler.compose(over_text)))
    return stages


@dataclass(frozen=True, slots=True)
class _Joins:
    """A rule that makes one text of the tokens: a joiner, and perhaps stages before it."""

    joiner: Callable[[Tail], AnyJoiner]
    front: tuple[AnyTokenStage, ...] = ()


class _Compiler:
    def __init__(self, *, eager: bool) -> None:
        self.stages = Stages()
        self._notes = self.stages.notes
        self._eager = eager

    def over_tokens(self, rule: Rule, *, is_last: bool) -> AnyTokenStage | _Joins:
        """
        Compile a rule that is applied while tokens are apart.

        Args:
            rule: The rule.
            is_last: Whether no rule after this one looks at single tokens.
        """
        match rule:
            case kinds.OneToken():
                return EachToken(rule.each)
            case kinds.FirstDiffers():
                return FirstToken(rule.first, rule.rest, spaces=isinstance(rule, (kinds.WordPiece, kinds.JoinWithSpaces)))
            case kinds.CTC():
                return Repeats(rule.each)
            case kinds.Fuse():
                return _Joins(OneAfterAnother)
            case kinds.ByteLevel():
                self.stages.spell = byte_level_spelling
                return _Joins(partial(OneAfterAnother, bytes_in=byte_level_bytes))
            case kinds.RawBytes() | kinds.SentencePiece():
                return self._pieces(rule)
            case kinds.BPEDecoder():
                if is_last:
                    return _Joins(partial(LastPiece, inner=rule.inner, last=rule.last))
                self._notes.append("one token is held, since other rules over tokens follow the last-token rule")
                return LastToken(rule.inner, rule.last)
            case kinds.ByteFallback():
                if is_last:
                    return _Joins(partial(OneAfterAnother, bytes_in=byte_token) if self._eager else ByteRuns)
                self._notes.append("byte runs are held whole, since other rules over tokens follow")
                return HeldRuns(eager=self._eager)
            case _:
                assert_never(rule)

    def _pieces(self, rule: kinds.RawBytes | kinds.SentencePiece) -> _Joins:
        """Compile a format that ``tokenizers`` does not have. Its pieces are joined at once."""
        if isinstance(rule, kinds.SentencePiece):
            self.stages.skipped, self.stages.specials_are_text = "", True
            strips = rule.add_dummy_prefix or rule.remove_extra_whitespaces
            surfaces = {rule.unknown: rule.unknown_surface} if rule.unknown else {}
            leading = LeadingSpace(strips=strips, every=rule.remove_extra_whitespaces, surfaces=surfaces)
            return _Joins(partial(OneAfterAnother, bytes_in=raw_bytes, invalid="byte"), (leading,))
        if rule.specials_split:
            self.stages.skipped, self.stages.specials_are_text = "", True
            return _Joins(partial(OneAfterAnother, bytes_in=raw_bytes))
        self.stages.spell = str.encode
        join = _Joins(partial(OneAfterAnother, bytes_in=bytes, invalid="nothing" if rule.drops_invalid else "subpart"))
        if not rule.drops_first_space:
            return join
        self.stages.skipped = b""
        return _Joins(join.joiner, (FirstToken(rule.first, rule.rest),))

    def over_text(self, rules: Sequence[Rule]) -> list[TextRule]:
        """Compile rules that are applied to joined text."""
        found = []
        for rule in rules:
            text_rule = rule.over_text()
            if callable(text_rule):
                name = "the model's denormalizer" if isinstance(rule, kinds.Denormalizer) else type(rule).__name__
                self._notes.append(f"all text is held to the end: {name} may look at the whole of it")
            elif not isinstance(text_rule, (list, tuple)):
                self._notes.append("white space is held until something follows it, since at the end it vanishes")
            found.append(text_rule)
        return found

    def compose(self, rules: Sequence[TextRule]) -> list[AnyTextStage]:
        """Compile neighbouring character rules into one table. A function becomes `WholeText`, and a stage stays."""
        stages: list[AnyTextStage] = []
        waiting: list[CharRule] = []
        for rule in [*rules, None]:
            if isinstance(rule, (list, tuple)):
                waiting += [one for one in rule if not _does_nothing(one)]
                continue
            if waiting:
                stages.append(self._table(waiting))
                waiting = []
            if rule is not None:
                stages.append(WholeText(rule) if callable(rule) else rule)
        return stages

    def _table(self, rules: list[CharRule]) -> AnyTextStage:
        try:
            return Rewriter(rules)
        except TooManyStates:
            self._notes.append("all text is held to the end: its rules together would need too large a table")
            return WholeText(lambda text: _run(rules, text))


def _does_nothing(rule: CharRule) -> bool:
    if isinstance(rule, Substitute):
        return rule.pattern == rule.content
    return isinstance(rule, StripText) and not rule.left and not rule.right


def _run(rules: Sequence[CharRule], text: str) -> str:
    """Apply rules to a whole text, one after another: `WholeText` does this when their table is too large."""
    for rule in rules:
        state, out = rule.start, []
        for character in text:
            part, state = rule.feed(state, character)
            out.append(part)
        text = "".join(out) + rule.finish(state)
    return text


def _fused(front: Sequence[AnyTokenStage]) -> list[AnyTokenStage]:
    """Make one stage of neighbours that give one token for one token: with a single stage `Pipeline.resets` knows more."""
    fused: list[AnyTokenStage] = []
    for stage in front:
        before = fused[-1] if fused else None
        if isinstance(before, (EachToken, FirstToken)) and isinstance(stage, (EachToken, FirstToken)):
            fused[-1] = before.then(stage)
        else:
            fused.append(stage)
    return fused
