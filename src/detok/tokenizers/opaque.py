"""`OpaqueTokenizer`: a tokenizer of which nothing is known but what its own `decode` says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex

from ..core.decoding.automaton import StreamMachine
from ..core.decoding.rules import byte_of
from ..core.options import DecodeOptions
from ..core.vocabulary import Piece
from ..errors import UnknownTokenId
from ..ids import as_ids
from ..prompts.facts import PromptSupport
from .tokenizer import Encoder, Library, Tokenizer
from .window import Decode, Window

__all__ = ["OpaqueTokenizer", "OwnDecode", "TokenVocabulary"]

CHUNK = 256
"""Ids that are decoded at a time for the fingerprint."""


class OwnDecode(Protocol):
    """A tokenizer's own one-shot decode."""

    def __call__(self, ids: Sequence[int], options: DecodeOptions, /) -> str:
        """Decode ids that the vocabulary has; of the options, `skip_special_tokens` and those on spaces are heeded."""
        ...


class TokenVocabulary:
    """
    The tokens of a tokenizer that lists them.

    Args:
        tokens: The surface string of each id.
        special: The ids that are left out with `skip_special_tokens`.
        added: The ids of the added vocabulary.
        spell: Gives the bytes of a piece, where they are what is joined.
    """

    def __init__(
        self,
        tokens: Mapping[int, str],
        *,
        special: frozenset[int],
        added: frozenset[int],
        spell: Callable[[int, str], bytes] | None = None,
    ) -> None:
        self.tokens = tokens
        self.special = special
        self.added = added
        self._spell = spell
        self._pieces: dict[int, Piece] = {}

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``, or None."""
        piece = self._pieces.get(token_id)
        if piece is None:
            text = self.tokens.get(token_id)
            if text is not None:
                data = None if self._spell is None else self._spell(token_id, text)
                piece = Piece(text, special=token_id in self.special, added=token_id in self.added, data=data)
                self._pieces[token_id] = piece
        return piece

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self) -> Iterable[int]:
        """All ids, ascending."""
        return sorted(self.tokens)

    def added_ids(self) -> Iterable[int]:
        """The ids of the added vocabulary, ascending."""
        return sorted(self.added)


class OpaqueTokenizer(Tokenizer):
    """
    A tokenizer without rules: `decode` is its own, streams are windows of ids that are decoded again at each step.

    ``stream.exact`` is False: what a stream gives may differ from `decode`, and ``detok check`` counts how often it does.

    Args:
        vocabulary: Its tokens.
        own_decode: Its own one-shot decode.
        encoder, library, source, remarks, prompt_support: As `Tokenizer` has them.
    """

    def __init__(
        self,
        vocabulary: TokenVocabulary,
        own_decode: OwnDecode,
        *,
        encoder: Encoder,
        library: Library,
        source: str = "",
        remarks: Sequence[str] = (),
        prompt_support: PromptSupport | None = None,
    ) -> None:
        super().__init__(
            vocabulary, (), encoder=encoder, library=library, source=source, remarks=remarks, prompt_support=prompt_support
        )
        self._own_decode = own_decode

    def decode(self, ids: Iterable[SupportsIndex], skip_special_tokens: bool = True, **options: Any) -> str:
        """
        Return the text of all ids, by the tokenizer's own decode. Arguments and errors as `stream`; what the decode raises
        comes out.

        With ``unknown_ids="replace"`` it is the text of a stream, as only a stream knows where the U+FFFD belong.
        """
        chosen = DecodeOptions.of({"skip_special_tokens": skip_special_tokens, **options})
        if chosen.unknown_ids == "replace":
            return super().decode(ids, skip_special_tokens, **options)
        known: list[int] = []
        for position, token_id in enumerate(as_ids(ids)):
            if self.vocabulary.piece(token_id) is not None:
                known.append(token_id)
            elif chosen.unknown_ids == "error":
                raise UnknownTokenId(token_id, position=position)
        return self._own_decode(known, chosen)

    def machine(self, options: DecodeOptions) -> StreamMachine:
        """Return a window of ids over the tokenizer's own decode: without rules there is no automaton."""
        return StreamMachine(Window(self.vocabulary, self.one_shot(options), options), lambda: self.fingerprint)

    def one_shot(self, options: DecodeOptions) -> Decode:
        """
        Return the one-shot decode that windows call.

        Where the tokenizer's own raises, or gives no text, it is "", so that the ids are held.
        """

        def decode(ids: Sequence[int]) -> str:
            try:
                text: object = self._own_decode(ids, options)
                return text if isinstance(text, str) else ""
            except Exception:  # of foreign code; no list of integers may make a stream raise
                return ""

        return decode

    def _bytes_of(self, token_id: int, piece: Piece) -> bytes:
        """
        Return the bytes of one id as well as they can be known: its decode alone, or the byte that a token ``<0xHH>`` names.

        Where the decode strips a space at the beginning, or a token is a part of a character under another name, they are not the
        exact bytes (law 10 needs rules).
        """
        text = self.one_shot(DecodeOptions(skip_special_tokens=False))([token_id])
        byte = byte_of(piece.text)
        return text.encode("utf-8", "replace") if byte is None or text == piece.text else bytes([byte])

    def _facts(self) -> Iterable[object]:
        """Give every piece, and what the tokenizer's own decode makes of them."""
        yield self.library.name
        decode = self.one_shot(DecodeOptions(skip_special_tokens=False))
        for first in range(0, len(self.ids), CHUNK):
            ids = self.ids[first : first + CHUNK]
            yield [(token_id, self.vocabulary.piece(token_id)) for token_id in ids], decode(ids)

    @property
    def _way(self) -> str:
        return "windows of ids"
