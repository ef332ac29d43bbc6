"""
Who judges a GGUF vocabulary: llama.cpp itself where llama-cpp-python is installed, else its rule as it reads, over our pieces.

Either is asked piece by piece, as llama.cpp generates text itself.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..core.decoding.cleanup import clean_up
from ..core.vocabulary import Vocabulary
from .reading import Once

__all__ = ["LlamaCpp"]

ROOM = 256
"""Bytes for a piece; where that is too little, llama.cpp says how much it needs."""


class LlamaCpp:
    """
    The one-shot decode of llama.cpp.

    Args:
        path: The file, which llama.cpp reads for itself.
        vocabulary: The pieces, for where llama.cpp is not installed.
        drops_first_space: Whether the first piece loses one leading space.
        clean_spaces: The replacements over the whole text.
    """

    def __init__(
        self, path: Path, vocabulary: Vocabulary, *, drops_first_space: bool, clean_spaces: tuple[tuple[str, str], ...]
    ) -> None:
        self._vocabulary = vocabulary
        self._drops_first_space = drops_first_space
        self._clean_spaces = clean_spaces
        self._version = _installed()
        self._model = Once(_Model, path)
        judge = "llama.cpp" if self._version else "llama.cpp's rule as detok reads it"
        self.name = f"{judge} ({self._version or 'llama-cpp-python is not installed to judge'})"

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode; ids that the vocabulary does not have, at which llama.cpp ends the process, are left out."""
        known = [token_id for token_id in ids if self._vocabulary.piece(token_id) is not None]
        piece = self._model().piece if self._version else self._piece
        strips = self._drops_first_space
        pieces = [piece(known[0], strips, not skip_special_tokens)] if known else []
        pieces += [piece(token_id, False, not skip_special_tokens) for token_id in known[1:]]
        return clean_up(b"".join(pieces).decode(errors="replace"), self._clean_spaces)

    def tokens(self) -> Mapping[str, int]:
        """Every entry with its id."""
        pieces = ((self._vocabulary.piece(token_id), token_id) for token_id in self._vocabulary.ids())
        return {piece.text: token_id for piece, token_id in pieces if piece is not None}

    def _piece(self, token_id: int, strips: bool, special: bool) -> bytes:
        piece = self._vocabulary.piece(token_id)
        if piece is None or piece.data is None or (piece.special and not special):
            return b""
        return piece.data.removeprefix(b" ") if strips else piece.data


class _Model:
    """A model of llama.cpp of which only the vocabulary is loaded. It lives as long as the process does, like its log."""

    def __init__(self, path: Path) -> None:
        logging.getLogger("llama-cpp-python").setLevel(logging.CRITICAL)  # else it prints every key of the file
        llama_cpp: Any = import_module("llama_cpp")
        llama_cpp.llama_backend_init()
        settings = llama_cpp.llama_model_default_params()
        settings.vocab_only = True
        self._library = llama_cpp
        model = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
        if not model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        self._vocabulary: Any = llama_cpp.llama_model_get_vocab(model)

    def piece(self, token_id: int, strips: bool, special: bool) -> bytes:
        """The bytes of one id, without a leading space if it ``strips``; nothing for special ids that are not asked for."""
        room = ROOM
        while True:
            buffer = ctypes.create_string_buffer(room)
            used: int = self._library.llama_token_to_piece(self._vocabulary, token_id, buffer, room, int(strips), special)
            if used >= 0:
                return buffer.raw[:used]
            room = -used


def _installed() -> str:
    try:
        return f"llama-cpp-python {version('llama-cpp-python')}"
    except PackageNotFoundError:
        return ""
