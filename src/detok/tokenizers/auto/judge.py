"""The judge of a directory: AutoTokenizer of the transformers that is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...errors import SourceError
from ..reading import library, with_version
from .classes import FOLLOWED

__all__ = ["AutoJudge"]


class AutoJudge:
    """
    What AutoTokenizer makes of a directory, with its decode and its encode.

    Args:
        directory: With a tokenizer.json.

    Raises:
        MissingExtra: transformers is not installed.
        SourceError: It refuses the directory.
    """

    def __init__(self, directory: Path) -> None:
        transformers = library("transformers", extra="transformers", purpose=f"AutoTokenizer for {directory}")
        try:
            self._source: Any = transformers.AutoTokenizer.from_pretrained(
                str(directory), local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # transformers raises whatever its parts raise
            found = f"{with_version('transformers')} refuses it: {error}"
            raise SourceError(str(directory), found=found, accepted="give the tokenizer.json as a file") from error
        self.name = f"{with_version('transformers')}, {type(self._source).__name__}, over {with_version('tokenizers')}"
        self.is_older = tuple(map(int, version("transformers").split(".")[:2])) < FOLLOWED
        """Whether its rules are those of an older version than detok follows, so that differences may be of the versions."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode; ids that do not fit into 32 bits, at which the library raises, are left out."""
        asked = [token_id for token_id in ids if 0 <= token_id < 1 << 32]
        text: str = self._source.decode(asked, skip_special_tokens=skip_special_tokens)
        return text

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Encode, as users of the class do."""
        ids: list[int] = self._source.encode(text, add_special_tokens=add_special_tokens, verbose=False)
        return ids

    def tokens(self) -> Mapping[str, int]:
        """Every token with its id."""
        tokens: Mapping[str, int] = self._source.get_vocab()
        return tokens
