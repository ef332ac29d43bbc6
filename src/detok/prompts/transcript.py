"""`Transcript`: a conversation whose ids are the truth. What the model wrote is kept as it wrote it, and never encoded again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile
from typing import Literal, Protocol, SupportsIndex

from ..errors import OptionError
from ..ids import as_ids
from .drift import DEFAULT_BLOCK_SIZE, Drift, RoundTrip, drift_of
from .turns import RESULTS, Message, Render, behind_turn, is_instruction, special_pattern, still_to_say

__all__ = ["Part", "Transcript", "TranscriptTokenizer"]

# Encoded in front of a text so that it does not look like the beginning of one, where many encoders add a space.
ANCHOR = "a"


class TranscriptTokenizer(RoundTrip, Protocol):
    """A tokenizer, as far as transcripts need it."""

    @property
    def special_ids(self) -> frozenset[int]: ...


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a transcript."""

    kind: Literal["text", "messages", "generated"]
    start: int
    end: int


class Transcript:
    """
    A conversation, from first prompt to last answer.

    Give ``ids`` to the engine, and what it generates to `add_generated`, with the token that ended it. A new turn is rendered and
    encoded alone, at a cost that does not grow with what is there already.

    Args:
        tokenizer: Encodes and decodes.
        render: The chat template, with its tools and other variables; only messages need it.
        encode: Encodes a text in which special tokens are spelled, and adds none; by default the tokenizer's own ``encode``.
        as_prompt: Makes a prompt of encoded ids, with one BOS; by default they are left as they are.
    """

    def __init__(
        self,
        tokenizer: TranscriptTokenizer,
        *,
        render: Render | None = None,
        encode: Callable[[str], list[int]] | None = None,
        as_prompt: Callable[[list[int], bool], list[int]] | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._as_prompt = as_prompt or (lambda ids, adds: ids)
        self._render = render
        self._encode = encode or partial(tokenizer.encode, add_special_tokens=False)
        self._ids: list[int] = []
        self._parts: list[Part] = []
        self._instructions: list[Message] = []
        """Those at the beginning of the chat."""

        self._ended: bool | None = None
        """Whether the model has ended its turn; None while there is none behind which messages could stand."""

        self._pending: list[Message] = []
        """Messages behind all that. What they are in ids depends on what still follows them."""

        self._pending_ids: list[int] | None = None

    @property
    def ids(self) -> list[int]:
        """All ids so far. Behind messages the next turn of the assistant begins, unless the last message is its own."""
        return self._ids + self._encoded()

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the ids are: tiles without a gap."""
        return (*self._parts, *self._part("messages", self._encoded()))

    def __len__(self) -> int:
        return len(self._ids) + len(self._encoded())

    def add_text(self, text: str, *, add_special_tokens: bool | None = None) -> None:
        """
        Add a text as it is: a prompt, what a tool answered, the beginning of an answer.

        Args:
            text: The text; special tokens that it spells become special tokens.
            add_special_tokens: Whether the encoder adds those of its template; by default only where nothing stands before.

        Raises:
            OptionError: The text cannot be encoded.
        """
        in_chat = self._ended is not None or bool(self._pending)
        first = not self._ids and not self._pending
        adds = first if add_special_tokens is None else add_special_tokens
        if adds:
            ids = self._tokenizer.encode(text, add_special_tokens=True)
        else:
            ids = self._behind(text, [*self._ids[-1:], *self._encoded()[-1:]])
        self._commit("text", self._with_one_bos([*self._ids[:2], *self._encoded()[:2]], ids, adds))
        if in_chat:
            self._ended = self._ends_turn(ids)

    def add_message(self, message: Message) -> None:
        """Add a message. Errors as `add_messages`."""
        self.add_messages([message])

    def add_messages(self, messages: Iterable[Message]) -> None:
        """
        Add messages, as a chat template takes them; all or none.

        Raises:
            OptionError: One of them is no message, or there is no template. Whatever else the template raises.
        """
        if self._render is None:
            raise OptionError(option="render", value=None, accepted="messages need a chat template; without one, take add_text")
        pending = list(self._pending)
        for message in messages:
            if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
                raise OptionError(option="message", value=message, accepted='it is an object with "role" and "content"')
            pending.append(deepcopy(dict(message)))
        if pending != self._pending:
            # Instructions alone are no chat to most templates. What they are in ids is seen when somebody asks.
            alone = all(map(is_instruction, pending))
            self._text(self._render, [*pending, {"role": "user", "content": ""}] if alone else pending)
            self._pending, self._pending_ids = pending, None

    def add_generated(self, ids: Iterable[SupportsIndex], *, ends_turn: bool | None = None) -> None:
        """
        Add what the model wrote, ids as they were sampled.

        Args:
            ids: With the token that ended the turn, if there was one.
            ends_turn: Whether the last of them ended the turn; by default whether it is a special token. If not, the next message
                ends it as the template does.

        Raises:
            TokenTypeError: They are no ids.
        """
        generated = as_ids(ids)
        self._commit("generated", generated)
        self._ended = self._ends_turn(generated) if ends_turn is None else ends_turn

    def drift(self, *, block_size: int = DEFAULT_BLOCK_SIZE) -> Drift:
        """
        Tell what a client would send that keeps the text instead of the ids, and what of a prefix cache that would lose.

        Raises:
            OptionError: There is no such block size.
        """
        return drift_of(self._tokenizer, self.ids, block_size=block_size, encode=self._encode)

    def _commit(self, kind: Literal["text", "generated"], ids: list[int]) -> None:
        """Make of the pending messages ids that stay, and put others behind them."""
        pending = self._encoded()
        self._parts += self._part("messages", pending)
        self._ids += pending
        if self._pending and self._ended is None:
            self._instructions = list(takewhile(is_instruction, self._pending))
        self._pending, self._pending_ids = [], None
        self._parts += self._part(kind, ids)
        self._ids += ids

    def _part(self, kind: Literal["text", "messages", "generated"], ids: Sequence[int]) -> list[Part]:
        return [Part(kind, len(self._ids), len(self._ids) + len(ids))] if ids else []

    def _ends_turn(self, ids: Sequence[int]) -> bool:
        return bool(ids) and ids[-1] in self._tokenizer.special_ids

    def _encoded(self) -> list[int]:
        """The ids of the pending messages."""
        if self._pending_ids is None:
            ids: list[int] = []
            if self._pending and self._render is not None:
                text = self._text(self._render, self._pending)
                ids = self._with_one_bos(self._ids[:2], self._behind(text, self._ids[-1:]))
            self._pending_ids = ids
        return self._pending_ids

    def _with_one_bos(self, begin: Sequence[int], ids: list[int], adds: bool = False) -> list[int]:
        """Return new ids without the BOS that stands in front already, be it here or among the first ids of the transcript."""
        return ids if len(begin) > 1 else self._as_prompt([*begin, *ids], adds)[len(begin) :]

    def _text(self, render: Render, messages: Sequence[Message]) -> str:
        """What the template says of messages behind all that is there."""
        begins_turn = messages[-1]["role"] != "assistant"
        if self._ended is None:
            return render(messages, add_generation_prompt=begins_turn)
        end, rest = behind_turn(render, self._instructions, messages, add_generation_prompt=begins_turn)
        return still_to_say(end, self._special, calls=messages[0]["role"] in RESULTS, ended=self._ended) + rest

    @cached_property
    def _special(self) -> re.Pattern[str] | None:
        return special_pattern([self._spelled(token_id) for token_id in self._tokenizer.special_ids])

    def _spelled(self, token_id: int) -> str:
        return self._tokenizer.token_bytes(token_id).decode(errors="replace")

    def _behind(self, text: str, last: Sequence[int]) -> list[int]:
        """
        Encode a text that stands behind an id.

        It is encoded behind an anchor, whose ids are taken away: the last id if that is a special token, at which every encoder
        splits, else any letter, which tells if it grew together with the text.
        """
        if not last:
            return self._encode(text)
        anchor = self._spelled(last[-1]) if last[-1] in self._tokenizer.special_ids else ANCHOR
        before, whole = self._encode(anchor), self._encode(anchor + text)
        return whole[len(before) :] if whole[: len(before)] == before else self._encode(text)
