"""
Follows a turn whose format has delimiters between its parts.

Models write delimiters as special tokens in one vocabulary, as plain text in another, split over tokens in a third. A
`TagParser` reads
them by a `TurnFormat`. What it gives out is never taken back, and nothing is lost: each character is in a part, or belongs to a
delimiter, or is white space between delimiters.

What may become a delimiter or the head of a call is held until that is decided, up to `MAX_HELD` characters; then it is content
as it is written. An example in the format "hermes", fed in four pieces:

| fed                  | given                         | held                      | mode      |
| -------------------- | ----------------------------- | ------------------------- | --------- |
| `So: <tool`          | content `So: `                | `<tool`                   | content   |
| `_call>{"name": "f"` |                               | `<tool_call>{"name": "f"` | head      |
| `, "arguments": {"a` | call f, arguments `{"a`       |                           | arguments |
| `": 1}}</tool_call>` | arguments `": 1}`             |                           | content   |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..text_search import StopStrings, stop_strings
from .calls.base import Call, Done, Grammar, More, space_end
from .calls.grammars import grammar
from .calls.json_calls import JsonCalls
from .channels import CONTENT, REASONING, TOOL, ChannelDelta, joined_deltas
from .formats import ReasoningFormat, ToolFormat, TurnFormat
from .segments import Segment, Special, Text

__all__ = ["MAX_HELD", "ParserState", "TagParser"]

# Characters that are held at most while it is undecided whether they are a call: models may write long arguments before the name.
MAX_HELD = 1 << 12
# Characters that are looked at in one go, so that many in one step cost no more each.
CHUNK = 256

HEAD, ARGUMENTS, AFTER = "head", "arguments", "after"
"""The modes of a `TagParser` besides the channels "content" and "reasoning"."""

_OPEN, _CLOSE, _CALL, _END = "open", "close", "call", "end"


class ParserState(NamedTuple):
    """Where a parser stands."""

    mode: str = CONTENT
    place: int = 0
    """Characters that were given out, or belong to a delimiter."""
    part: int = -1
    """The last part."""
    fresh: bool = True
    """Whether what comes begins a new part."""
    border: bool = True
    """Whether only white space came since a delimiter or the beginning."""
    seen: bool = False
    """Whether there was a delimiter."""
    opened: bool = False
    """Whether a section of calls is open, so that its closing delimiter is one."""
    white: str = ""
    """White space at the border: it is the next delimiter's, or the text's that comes first."""
    gap: int = 0
    """Characters of special tokens in it that are not shown."""
    held: str = ""
    """What may yet become a delimiter or a call; of arguments, what is not read yet."""
    back: str = CONTENT
    """The channel of what is held, if it is no call."""
    plain: bool = False
    """Whether the candidate is a forced call, without delimiters."""
    memo: Any = None
    """What the grammar remembers."""
    name: str = ""
    call_id: str = ""


class TagParser:
    """
    Follows a turn whose format has delimiters.

    Args:
        format: What matters.
        state: Where another parser of the same format stood.
    """

    __slots__ = (*ParserState._fields, "_deltas", "_delimiters", "format")

    mode: str
    place: int
    part: int
    fresh: bool
    border: bool
    seen: bool
    opened: bool
    white: str
    gap: int
    held: str
    back: str
    plain: bool
    memo: Any
    name: str
    call_id: str

    def __init__(self, format: TurnFormat, state: ParserState | None = None) -> None:
        self.format = format
        self._delimiters = _delimiters_of(format.reasoning, format.tools, format.calls, format.forced)
        self._deltas: list[ChannelDelta] = []
        if state is None:
            is_implied = format.reasoning is not None and format.reasoning.implied
            is_open = format.start == REASONING or (is_implied and not format.start)
            state = ParserState(REASONING if is_open else CONTENT, seen=is_open)
        for field, value in zip(ParserState._fields, state, strict=True):
            setattr(self, field, value)

    @property
    def state(self) -> ParserState:
        """Where it stands."""
        return ParserState(*(getattr(self, field) for field in ParserState._fields))

    def copy(self) -> TagParser:
        """Return another one that stands here too."""
        return TagParser(self.format, self.state)

    def feed(self, segments: Sequence[Segment]) -> list[ChannelDelta]:
        """Take segments and return what of each channel is certain now."""
        for segment in segments:
            if isinstance(segment, Text):
                self._text(segment.text)
            else:
                self._special(segment)
        return self._given()

    def finish(self) -> list[ChannelDelta]:
        """Return what is still held. What is undecided is content as it is written."""
        while self.held or self.mode == ARGUMENTS:
            self._text(self._end())
        if self.white:
            if self.seen:
                self._drop(0)
            else:
                self._give_white()
        return self._given()

    def _given(self) -> list[ChannelDelta]:
        deltas, self._deltas = self._deltas, []
        return joined_deltas(deltas)

    def _text(self, text: str) -> None:
        for begin in range(0, len(text), CHUNK):
            rest = text[begin : begin + CHUNK]
            while rest:
                rest = self._step(rest)

    def _step(self, text: str) -> str:
        """Take some text, and return what is to be looked at next: of this text, or what was held before."""
        if self.mode in (HEAD, AFTER):
            return self._head(text)
        if self.mode == ARGUMENTS:
            return self._arguments(text)
        if self.border and not self.held:
            white = space_end(text)
            if white:
                self.white += text[:white]
                if len(self.white) >= MAX_HELD:
                    self._give_white()
                return text[white:]
            if self.mode == CONTENT and text[0] in self._delimiters.bare:
                self._begin(text[0], plain=self._delimiters.forced is not None)
                return text[1:]
        return self._search(text)

    def _search(self, text: str) -> str:
        """Look for a delimiter."""
        strings, kinds = self._delimiters.of(self.mode, self.opened)
        if strings is None:
            self._give(text)
            return ""
        candidate, match = strings.scan(strings.candidate(self.held), text)
        whole = self.held + text
        if match is None:
            self.held = candidate.text
            self._give(whole[: len(whole) - candidate.length])
            return ""
        begin = len(self.held) + match.end - match.length
        self.held = ""
        self._give(whole[:begin])
        return self._delimiter(kinds[match.reason], match.reason) + text[match.end :]

    def _delimiter(self, kind: str, written: str) -> str:
        """Come to a delimiter. One that says nothing here is text: return what of it is to be looked at again."""
        if kind == _CALL:
            self._begin(written)
        elif kind == _END:
            self.opened = self._delimiters.calls is not None and written not in self._delimiters.calls.last
            self._drop(len(written))
            self._enter(CONTENT)
        elif kind == _CLOSE and self.mode == REASONING:
            self._drop(len(written))
            self._enter(CONTENT)
        elif self.border:
            # Reasoning that is opened twice, or closed before it was opened, is so once.
            self._drop(len(written))
            if kind == _OPEN and self.mode == CONTENT:
                self._enter(REASONING)
        else:
            self._give(written[:1])
            return written[1:]
        return ""

    def _enter(self, mode: str) -> None:
        self.mode, self.border, self.fresh = mode, True, True

    def _begin(self, written: str, *, plain: bool = False) -> None:
        """Hold what may be a call."""
        self.back, self.mode, self.held, self.memo, self.plain = self.mode, HEAD, written, None, plain

    @property
    def _grammar(self) -> Grammar:
        found = self._delimiters.forced if self.plain else self._delimiters.calls
        assert found is not None
        return found

    def _head(self, text: str) -> str:
        """Look whether a call begins, or what is after one."""
        taken = max(1, MAX_HELD - len(self.held))
        held = self.held + text[:taken]
        found = self._grammar.head(held, self.memo, follows=self.mode == AFTER)
        if isinstance(found, More) and len(held) < MAX_HELD:
            self.held, self.memo = held, found.memo
            return text[taken:]
        if isinstance(found, Done):
            self.held, self.memo = "", None
            self._drop(found.used)
            if found.last:
                self.opened = False
                self._enter(CONTENT)
            return held[found.used :] + text[taken:]
        if isinstance(found, Call) and self._commit(found):
            return held[found.used :] + text[taken:]
        return self._fail(held) + text[taken:]

    def _fail(self, held: str) -> str:
        """Return what of the text that was held is to be looked at again: it is no call."""
        self.held, self.memo = "", None
        if self.mode == AFTER:
            self._enter(CONTENT)
            return held
        self.mode = self.back
        self._give(held[:1])
        return held[1:]

    def _commit(self, call: Call) -> bool:
        """Begin a call; False if there is no such tool, and the format takes no other for a call."""
        name, types = call.name, self.format.types
        if types and name not in types:
            name = name.removeprefix("functions.")
            tools = self.format.tools
            if name not in types:
                if tools is not None and tools.known_only:
                    return False
                name = call.name
        if call.call_id or not types:
            name = name.removeprefix("functions.") or name
        self.held, self.memo, self.name, self.call_id = "", (call.state, call.after), name, call.call_id
        self._drop(0)
        self.mode, self.opened, self.fresh = ARGUMENTS, True, False
        self.part += 1
        self._tool(call.text, call.used)
        return True

    def _arguments(self, text: str) -> str:
        return self._argue(self.held + text, ends=False)

    def _argue(self, text: str, *, ends: bool) -> str:
        """Read arguments."""
        state, after = self.memo
        piece = self._grammar.arguments(state, text, self.format.types.get(self.name, {}), ends=ends)
        if piece.text or piece.used:
            self._tool(piece.text, piece.used)
        if piece.state is None or (ends and not piece.used):
            self.held, self.memo, self.name, self.call_id = "", after, "", ""
            self._enter(AFTER)
            return text[piece.used :]
        self.held, self.memo = text[piece.used :], (piece.state, after)
        return ""

    def _tool(self, text: str, used: int) -> None:
        begin, self.place = self.place, self.place + used
        self._deltas.append(ChannelDelta(TOOL, text, self.part, "", self.name, self.call_id, begin, self.place))

    def _give(self, text: str) -> None:
        """Give out text of the channel; at the border, white space only with what follows it."""
        if not text:
            return
        if self.border:
            text = self.white + text
            self.white, self.border = "", False
        if self.fresh:
            self.part += 1
            self.fresh = False
        begin, self.place, self.gap = self.place, self.place + len(text) + self.gap, 0
        self._deltas.append(ChannelDelta(self.mode, text, self.part, begin=begin, end=self.place))

    def _give_white(self) -> None:
        white, self.white = self.white, ""
        self._give(white)

    def _drop(self, length: int) -> None:
        """Leave out a delimiter, with the white space between it and the one before."""
        self.place += len(self.white) + self.gap + length
        self.white, self.gap, self.border, self.seen = "", 0, True, True

    def _special(self, special: Special) -> None:
        if self.mode in (CONTENT, REASONING) and special.token_id in self._delimiters.ids:
            self._break()
            self._text(self._delimiter(self._delimiters.ids[special.token_id], special.text))
        elif self._delimiters.has(special.text):
            self._text(special.text)
        else:
            # No delimiter goes on after it.
            self._break()
            if special.shown:
                self._text(special.shown)
            elif self.white:
                self.gap += len(special.text)
            else:
                self.place += len(special.text)

    def _break(self) -> None:
        while self.held and self.mode != ARGUMENTS:
            self._text(self._end())

    def _end(self) -> str:
        """Decide what is held, as nothing follows that could; return what of it is to be looked at again."""
        held = self.held
        if self.mode == ARGUMENTS:
            return self._argue(held, ends=True)
        if self.mode == AFTER and held.isspace():
            self._drop(len(held))
            self.held = ""
            return ""
        if self.mode in (HEAD, AFTER):
            return self._fail(held)
        self.held = ""
        self._give(held)
        return ""


class _Delimiters:
    """What matters to a parser of a format, found once."""

    def __init__(self, reasoning: ReasoningFormat | None, tools: ToolFormat | None, calls: bool, forced: bool) -> None:
        every = None if tools is None else grammar(tools.grammar, tools.opens, tools.closes)
        tools = tools if calls else None
        self.calls = every if calls else None
        is_forced = forced and tools is not None
        self.forced = JsonCalls((), () if tools is None else tools.closes, ("{", "[")) if is_forced else None
        self.bare = frozenset() if self.calls is None else frozenset((self.forced or self.calls).bare)
        opens, closes = ((), ()) if reasoning is None else (reasoning.opens, reasoning.closes)
        think: dict[str | int, str] = dict.fromkeys(opens, _OPEN) | dict.fromkeys(closes, _CLOSE)
        heads: dict[str | int, str] = {} if self.calls is None else dict.fromkeys(self.calls.opens, _CALL)
        ends: dict[str | int, str] = {} if self.calls is None else dict.fromkeys(self.calls.closes, _END)
        self.ids = {at: kind for at, kind in think.items() if isinstance(at, int)}
        interrupts = tools is not None and tools.interrupts
        kinds: dict[tuple[str, bool], dict[str | int, str]] = {
            (CONTENT, False): {**think, **heads},
            # An opening delimiter may also close what was before: that of the next call is one first.
            (CONTENT, True): {**think, **ends, **heads},
            (REASONING, False): {**think, **(heads if interrupts else {})},
        }
        kinds[REASONING, True] = kinds[REASONING, False]
        self._of = {key: _strings(value) for key, value in kinds.items()}
        # Where no call is looked for, one that is written in special tokens is shown all the same.
        marks = () if every is None else (*every.opens, *every.closes, *every.marks)
        self._marks = (*(at for at in think if isinstance(at, str)), *marks)
        self._has: dict[str, bool] = {}

    def of(self, channel: str, opened: bool) -> tuple[StopStrings | None, Mapping[str, str]]:
        """What finds the delimiters of a channel, and what each says."""
        return self._of[channel, opened]

    def has(self, text: str) -> bool:
        """Whether a special token of this text is a delimiter, or a part of one."""
        found = self._has.get(text)
        if found is None:
            found = self._has[text] = bool(text) and any(text in mark for mark in self._marks)
        return found


def _strings(kinds: Mapping[str | int, str]) -> tuple[StopStrings | None, Mapping[str, str]]:
    texts = {at: kind for at, kind in kinds.items() if isinstance(at, str)}
    return stop_strings(tuple(texts)) if texts else None, texts


@lru_cache(maxsize=64)
def _delimiters_of(reasoning: ReasoningFormat | None, tools: ToolFormat | None, calls: bool, forced: bool) -> _Delimiters:
    return _Delimiters(reasoning, tools, calls, forced)
