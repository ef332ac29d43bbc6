"""A vocabulary for windows that counts what it is asked to decode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from detok.core.decoding.automaton import Decoding, StreamMachine
from detok.core.options import DecodeOptions
from detok.core.stream import TextStream
from detok.core.vocabulary import Piece
from detok.tokenizers.window import Window


class Made:
    """Byte strings as a vocabulary, the specials after them; and a one-shot decode that counts what it is asked."""

    def __init__(self, *tokens: bytes, specials: int = 0) -> None:
        self._pieces = [Piece(token.decode(errors="backslashreplace"), data=token) for token in tokens]
        self._pieces += [Piece(f"<{number}>", special=True, added=True, data=b"<>") for number in range(specials)]
        self.decodes = self.decoded = 0

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind an id."""
        return self._pieces[token_id] if 0 <= token_id < len(self._pieces) else None

    def ids(self) -> Iterable[int]:
        """All ids."""
        return range(len(self._pieces))

    def added_ids(self) -> Iterable[int]:
        """The specials."""
        return [token_id for token_id in self.ids() if self._pieces[token_id].added]

    def decode(self, ids: Sequence[int]) -> str:
        """Join bytes, and decode them lossily."""
        self.decodes += 1
        self.decoded += len(ids)
        return b"".join(self._pieces[token_id].data or b"" for token_id in ids).decode(errors="replace")

    def window(self, *, lookback: int = 5, prompt_tail: int | None = None, **options: Any) -> Window:
        """A window over the decode."""
        return Window(self, self.decode, DecodeOptions(**options), lookback=lookback, prompt_tail=prompt_tail)

    def stream(self, prompt: Sequence[int] = (), **options: Any) -> TextStream:
        """A stream by windows, with the settings of a window and the options of a stream."""
        return by_steps(self.window(**options), prompt)


def by_steps(steps: Decoding, prompt: Sequence[int] = ()) -> TextStream:
    """A stream by the steps of a window."""
    return TextStream(StreamMachine(steps, lambda: "made").after_prompt(prompt))


def steps(stream: TextStream, ids: Iterable[int]) -> list[str]:
    """What each step gives, and `finish`."""
    return [*map(stream.step, ids), stream.finish()]
