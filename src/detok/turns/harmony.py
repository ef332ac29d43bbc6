"""
Follows a turn of gpt-oss: messages, each with a header that says what it is.

A message is `<|start|>ROLE<|channel|>CHANNEL to=RECIPIENT <|constrain|>TYPE<|message|>TEXT<|end|>`. The prompt ends in
`<|start|>assistant`, so the output begins inside a header. A message to a function is a call, and ends in `<|call|>`; one on
the channel "analysis" is reasoning; any other is content.

Models leave parts of headers out, and change their order. What cannot be a header any more, or is longer than `MAX_HEADER`, is
content as it is written: an answer without any header is there at once. A header after which no message comes says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..text_search import stop_strings
from .calls.base import delimiter_at, space_end
from .calls.json_text import EMPTY, JsonAt, read_json
from .channels import CONTENT, REASONING, TOOL, ChannelDelta, joined_deltas
from .formats import TurnFormat
from .segments import Segment, Special, Text

__all__ = ["MAX_HEADER", "HarmonyParser", "HarmonyState"]

# Characters of a header. What is longer is content.
MAX_HEADER = 1 << 9
# Characters that are looked at in one go, so that many in one step cost no more each.
CHUNK = 256

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
_ENDS = (END, CALL, RETURN)
_MARKS = (START, CHANNEL, MESSAGE, CONSTRAIN, *_ENDS)
HEADER = "header"

BUILT_IN = frozenset({"python", "browser", "container", "assistant", "user", "system", "developer"})
"""Recipients, or what stands before their first dot, that are no functions, if the request has no tool of that name."""

_WORDS = ("assistant", "analysis", "commentary", "final", "json", "code")
"""Words of headers that need no special token before them. One that is begun may yet be one of these."""
_WORD = "|".join(f"{word}(?![^\\s<])" for word in _WORDS)
_BEGUN = "|".join(rf"{word[:n]}\Z" for word in _WORDS for n in range(1, len(word)))
_NAMED = rf"(?:{re.escape(START)}|{re.escape(CHANNEL)}|{re.escape(CONSTRAIN)})[ \t]*[^\s<]*"
_PARTS = rf"[ \t\n]+|{_NAMED}|to=[^\s<]*|{_WORD}"
_HEADER = re.compile(rf"(?:{_PARTS})*")
_HEADER_SO_FAR = re.compile(rf"(?:{_PARTS}|to?\Z|{_BEGUN})*")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(rf"{re.escape(CHANNEL)}\s*(\w+)")
_NULL = re.compile(r"null(?:[\s<]|\Z)")
_NULL_SO_FAR = re.compile(r"n(?:u(?:ll?)?)?\Z")
_BARE_CHANNEL = re.compile(r"(?:\A|\s)(analysis|commentary|final)\b")


class HarmonyState(NamedTuple):
    """Where a parser stands."""

    mode: str = HEADER
    """"header", or the channel of the message."""
    place: int = 0
    """Characters that were given out, or belong to a header or a delimiter."""
    part: int = -1
    fresh: bool = True
    """Whether what comes begins a new part."""
    held: str = ""
    """A header so far, or the beginning of a delimiter; of arguments, what is not read yet."""
    back: str = CONTENT
    """What the text of the header is, if it is none."""
    header: str = ""
    name: str = ""
    arguments: Any = None
    """Where the reading of arguments stands; None if there are none, or they have ended."""
    given: bool = False
    """Whether the message has something."""
    ended: bool = False
    """Whether only white space came since the arguments ended: it is the delimiter's, or that of text after them."""


class HarmonyParser:
    """
    Follows a turn of harmony.

    Args:
        turn: The format.
        state: Where another parser stood.
    """

    __slots__ = (*HarmonyState._fields, "_deltas", "turn")

    mode: str
    place: int
    part: int
    fresh: bool
    held: str
    back: str
    header: str
    name: str
    arguments: Any
    given: bool
    ended: bool

    def __init__(self, turn: TurnFormat, state: HarmonyState | None = None) -> None:
        self.turn = turn
        self._deltas: list[ChannelDelta] = []
        if state is None:
            state = HarmonyState(turn.start or HEADER)
        for field, value in zip(HarmonyState._fields, state, strict=True):
            setattr(self, field, value)

    @property
    def state(self) -> HarmonyState:
        """Where it stands."""
        return HarmonyState(*(getattr(self, field) for field in HarmonyState._fields))

    def copy(self) -> HarmonyParser:
        """Return another one that stands here too."""
        return HarmonyParser(self.turn, self.state)

    def feed(self, segments: Sequence[Segment]) -> list[ChannelDelta]:
        """Take segments and return what of each channel is certain now."""
        for segment in segments:
            if isinstance(segment, Text):
                self._text(segment.text)
            elif segment.text in _MARKS:
                self._special(segment.text)
            else:
                self._other(segment)
        return self._given()

    def finish(self) -> list[ChannelDelta]:
        """Return what is still held."""
        self._break()
        self._close()
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
        if self.mode == HEADER:
            return self._head(text)
        if self.arguments is not None:
            return self._argue(self.held + text, ends=False)
        if self.ended:
            return self._after_arguments(text)
        strings = stop_strings(_MARKS)
        candidate, match = strings.scan(strings.candidate(self.held), text)
        whole = self.held + text
        if match is None:
            self.held = candidate.text
            self._give(whole[: len(whole) - candidate.length])
            return ""
        begin = len(self.held) + match.end - match.length
        self.held = ""
        self._give(whole[:begin])
        self._mark(match.reason)
        return text[match.end :]

    def _mark(self, mark: str) -> None:
        """Come to a delimiter in a message."""
        if mark in _ENDS:
            self._close()
            self.place += len(mark)
            self._begin("", CONTENT)
        elif mark in (START, CHANNEL):
            # A model may leave out the end of a message. If this is no header, it is the message's text.
            self._begin(mark, self.mode)
        else:
            self._give(mark)

    def _begin(self, held: str, back: str) -> None:
        self.mode, self.held, self.back = HEADER, held, back

    def _head(self, text: str) -> str:
        """Look whether a header goes on."""
        taken = max(1, MAX_HEADER - len(self.held))
        held, rest = self.held + text[:taken], text[taken:]
        for at in range(len(self.held), len(held)):
            if held[at] != ">":
                continue
            for mark in (MESSAGE, *_ENDS, START):
                if held.endswith(mark, 0, at + 1) and at + 1 > len(mark):
                    return self._headed(held[: at + 1 - len(mark)], mark) + held[at + 1 :] + rest
                if at + 1 == len(mark) and held.startswith(mark) and mark != START:
                    return self._headed("", mark) + held[at + 1 :] + rest
        if len(held) >= MAX_HEADER or not _may_go_on(held):
            return self._fail(held) + rest
        self.held = held
        return rest

    def _headed(self, header: str, mark: str) -> str:
        """Come to the delimiter that ends a header; return what is to be looked at again."""
        self.held = ""
        if mark != MESSAGE and not (mark == CALL and self._function(header)):
            if header.strip() and not _HEADER.fullmatch(header):
                return self._fail(header + mark)
            # Nothing came after it; what was before has ended all the same.
            self._close()
            self.place += len(header) + (len(mark) if mark != START else 0)
            self._begin(START if mark == START else "", CONTENT)
            return ""
        if not _HEADER.fullmatch(header):
            return self._fail(header + mark)
        self._close()
        self._open(header, mark)
        if mark == CALL:
            self._close()
            self._begin("", CONTENT)
        return ""

    def _open(self, header: str, mark: str) -> None:
        """Begin the message of a header."""
        name = self._function(header)
        channel = _CHANNEL.search(header) or _BARE_CHANNEL.search(header)
        is_reasoning = channel is not None and channel[1] == "analysis"
        self.fresh, self.given = True, False
        self.header, self.name = header.removeprefix(START), ""
        if not name:
            self.mode = REASONING if is_reasoning else CONTENT
            self.place += len(header) + len(mark)
        elif self.turn.calls:
            self.mode, self.name, self.arguments = TOOL, name, JsonAt()
            self.place += len(header) + len(mark)
        else:
            self.mode = CONTENT
            self._give(header + mark)

    def _function(self, header: str) -> str:
        """The function that a message goes to; "" if it goes to none."""
        found = _RECIPIENT.search(header)
        if found is None:
            return ""
        recipient, types = found[1], self.turn.types
        if recipient in types:
            return recipient
        if recipient.startswith("functions."):
            return recipient.removeprefix("functions.")
        return "" if recipient.split(".", 1)[0] in BUILT_IN else recipient

    def _fail(self, held: str) -> str:
        """What was held is no header: its first character is text. Return the others."""
        self.mode, self.held = self.back, ""
        self._give(held[:1])
        return held[1:]

    def _argue(self, text: str, *, ends: bool) -> str:
        """Read arguments."""
        if not self.arguments.kind:
            space = space_end(text)
            may_be_null = _NULL_SO_FAR.match(text, space) is not None
            if (may_be_null or space == len(text)) and not ends and space < MAX_HEADER:
                self.held = text
                return ""
            if not _is_json(text[space:]):
                # Something else, such as code: it is passed on as it is.
                self.arguments, self.held = None, ""
                return text
            # White space before it is the header's.
            self.place, text = self.place + space, text[space:]
        piece = read_json(self.arguments, text, _MARKS, ends=ends)
        if piece.state is not None:
            if piece.text:
                self._tool(piece.text, piece.used)
            self.held = text[piece.used :]
            self.arguments = piece.state
            return ""
        if self.given or not ends or text.strip():
            self._tool(piece.text, piece.used)
        self.arguments, self.held, self.ended = None, "", True
        return text[piece.used :]

    def _after_arguments(self, text: str) -> str:
        """Look at what is after arguments: a delimiter with white space before it, or text."""
        whole = self.held + text
        space = space_end(whole)
        found = delimiter_at(whole, space, _MARKS)
        if (space == len(whole) or found == "") and len(whole) < MAX_HEADER:
            self.held = whole
            return ""
        self.held, self.ended = "", False
        if found:
            self.place += space
            return whole[space:]
        self._close()
        return whole

    def _tool(self, text: str, used: int) -> None:
        if self.fresh:
            self.part += 1
            self.fresh = False
        begin, self.place, self.given = self.place, self.place + used, True
        self._deltas.append(ChannelDelta(TOOL, text, self.part, self.header, self.name, "", begin, self.place))

    def _give(self, text: str) -> None:
        if not text:
            return
        if self.mode == TOOL:
            self._tool(text, len(text))
            return
        if self.fresh:
            self.part += 1
            self.fresh = False
        begin, self.place = self.place, self.place + len(text)
        self._deltas.append(ChannelDelta(self.mode, text, self.part, self.header, begin=begin, end=self.place))

    def _close(self) -> None:
        """End a message. A call without arguments has `{}`."""
        if self.mode == TOOL and not self.given:
            self._tool(EMPTY, 0)
        if self.mode == TOOL:
            self.mode = CONTENT
        self.arguments, self.name, self.header, self.fresh, self.given, self.ended = None, "", "", True, False, False

    def _special(self, mark: str) -> None:
        """
        A special token that is a delimiter: text cannot spell it by chance.

        It ends a message wherever it comes. What only begins one says nothing in a string of arguments, which has not ended.
        """
        if mark not in _ENDS and self.arguments is not None and self.arguments.quoted:
            self._text(mark)
        elif self.mode != HEADER:
            self._break()
            self._mark(mark)
        else:
            self._text(mark)

    def _other(self, special: Special) -> None:
        self._break()
        if special.shown:
            self._text(special.shown)
        else:
            self.place += len(special.text)

    def _break(self) -> None:
        """Decide what is held: nothing follows that could."""
        while self.held or (self.mode == TOOL and self.arguments is not None):
            held = self.held
            if self.mode == HEADER:
                if _says_nothing(held):
                    self.place += len(held)
                    self.held = ""
                else:
                    self._text(self._fail(held))
            elif self.arguments is not None:
                self._text(self._argue(held, ends=True))
            elif self.ended and not held.strip():
                self.place += len(held)
                self.held = ""
            elif self.ended:
                self.held = ""
                self._close()
                self._give(held)
            else:
                self.held = ""
                self._give(held)


def _is_json(text: str) -> bool:
    """Whether arguments that begin so are JSON, or none."""
    return not text or text[0] in '{["' or _NULL.match(text) is not None or delimiter_at(text, 0, _MARKS) is not None


def _may_go_on(held: str) -> bool:
    """Whether a text may be the beginning of a header."""
    found = _HEADER_SO_FAR.match(held)
    end = 0 if found is None else found.end()
    if end == len(held):
        return True
    rest = held[end:]
    return any(len(rest) < len(mark) and mark.startswith(rest) for mark in _MARKS)


def _says_nothing(header: str) -> bool:
    """Whether a header that was cut off had only a role, or nothing."""
    return not header.removeprefix(START).strip() or (
        header.startswith(START) and header.removeprefix(START).strip() == "assistant"
    )
