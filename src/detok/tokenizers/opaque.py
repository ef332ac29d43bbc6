"""`OpaqueTokenizer`: a tokenizer of which nothing is known but what its own `decode` says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol, SupportsIndex

from ..core.decoding.automaton import Automaton
from ..core.decoding.rules import byte_of
from ..core.decoding.window import Decode
from ..core.options import DecodeOptions
from ..core.vocabulary import Piece
from ..errors import OptionError, UnknownTokenId
from ..ids import as_ids
from ..prompts.facts import PromptSupport
from .tokenizer import Encoder, Library, Tokenizer

__all__ = ["OpaqueTokenizer", "OwnDecode", "TokenVocabulary"]

CHUNK = 256
"""So many ids at a time are decoded for the fingerprint."""


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

    def ids(self) -> Iterable[int]:
        """All ids, ascending."""
        return sorted(self.tokens)

    def added_ids(self) -> Iterable[int]:
        """The ids of the added vocabulary, ascending."""
        return sorted(self.added)


class OpaqueTokenizer(Tokenizer):
    """
    A tokenizer without rules: `decode` is its own, streams are windows of ids that are decoded again at each step.

    The strategy is "window" unless "window+printable" is asked for, and ``stream.exact`` is False: what a stream gives may differ
    from `decode`, and ``detok check`` counts how often it does.

    Args:
        vocabulary: Its tokens.
        own_decode: Its own one-shot decode.
        encoder, library, source, remarks, prompts: As `Tokenizer` has them.
    """

    default_strategy = "window"

    def __init__(
        self,
        vocabulary: TokenVocabulary,
        own_decode: OwnDecode,
        *,
        encoder: Encoder,
        library: Library,
        source: str = "",
        remarks: Sequence[str] = (),
        prompts: PromptSupport | None = None,
    ) -> None:
        super().__init__(vocabulary, (), encoder=encoder, library=library, source=source, remarks=remarks, prompts=prompts)
        self._own_decode = own_decode
        self._bytes: dict[int, bytes] = {}

    def decode(self, ids: Iterable[SupportsIndex], skip_special_tokens: bool = True, **options: Any) -> str:
        """
        Return the text of all ids, by the tokenizer's own decode. Arguments and errors as `stream`; what the decode raises
        comes out.

        With a `strategy` it is the text of a stream instead; with ``unknown_ids="replace"`` too, as only a stream knows where the
        U+FFFD belong.
        """
        chosen = DecodeOptions(skip_special_tokens=skip_special_tokens, **options)
        if chosen.strategy is not None or chosen.unknown_ids == "replace":
            return super().decode(ids, skip_special_tokens, **options)
        known: list[int] = []
        for position, token_id in enumerate(as_ids(ids)):
            if self.vocabulary.piece(token_id) is not None:
                known.append(token_id)
            elif chosen.unknown_ids == "error":
                raise UnknownTokenId(token_id, position=position)
        return self._own_decode(known, chosen)

    def automaton(self, options: DecodeOptions) -> Automaton:
        """Raise the `OptionError` that says why there is none."""
        why = "this tokenizer is known only by its own decode; take 'window' or 'window+printable', or leave it open"
        raise OptionError(option="strategy", value="exact", accepted=why)

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

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """
        Return the bytes of one id as well as they can be known: its decode alone, or the byte that a token ``<0xHH>`` names.

        Where the decode strips a space at the beginning, or a token is a part of a character under another name, they are not the
        exact bytes (law 10 needs rules). Errors as those of `Decoder`.
        """
        piece = self.piece(token_id)
        data = self._bytes.get(int(token_id))
        if data is None:
            text = self.one_shot(DecodeOptions(skip_special_tokens=False))([int(token_id)])
            byte = byte_of(piece.text)
            data = text.encode("utf-8", "replace") if byte is None or text == piece.text else bytes([byte])
            self._bytes[int(token_id)] = data
        return data

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits over every piece, and what the tokenizer's own decode makes of them. Made when first asked
        for."""
        digest = blake2b(self.library.name.encode(), digest_size=16)
        decode = self.one_shot(DecodeOptions(skip_special_tokens=False))
        for first in range(0, len(self.ids), CHUNK):
            ids = self.ids[first : first + CHUNK]
            facts = [(token_id, self.vocabulary.piece(token_id)) for token_id in ids]
            digest.update(repr((facts, decode(ids))).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing: how long a window holds is not known."""
        return ()

    @cached_property
    def description(self) -> str:
        """One line: that there are windows, the number of ids, and the remarks."""
        return "; ".join(["windows of ids", f"{len(self.ids):,} ids, {len(self.added_ids):,} added", *self.remarks])
