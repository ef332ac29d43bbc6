"""
RWKV's world list, a line ``id literal length`` for each token, the literal a Python str or bytes; the ``rwkv`` package's object.

The judge is ``TRIE_TOKENIZER.decodeBytes``, decoded lossily. Its ``decode`` is the same where the bytes are valid, but makes one
U+FFFD of a whole text with one bad byte anywhere in it, so that no stream could say a word before its end. Ids start at 1. The
model's end of text, 0, is not in the list and unknown to the package; ``special_tokens`` names it.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..core.decoding.rules import RawBytes
from ..errors import OptionError, SourceError
from ..prompts.facts import PromptFacts, PromptSupport
from .reading import MAX_ID, ByteVocabulary, Once, added_pieces, library, read_file, refuse_byte_order_mark, utf8, with_version
from .tokenizer import Tokenizer

__all__ = ["from_file", "from_object"]

ACCEPTED = "an RWKV world list was expected: lines of an id, a Python literal of str or bytes, and its length in bytes"

# One literal and nothing else, with the escapes that `repr` writes: neither Python here nor the package, which evaluates these
# lines as code, is given anything that is not one string.
_LINE = re.compile(
    r"""
    (?P<id> [0-9]{1,10} ) [ ]
    (?P<literal> (?P<bytes>b)? (?P<quote>['"])
        (?P<inside> (?:
            (?! (?P=quote) ) [^\\\r\0]
          | \\ (?: [\\'"abfnrtv] | x[0-9a-fA-F]{2} | (?(bytes)(?!)|(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})) )
        )* )
    (?P=quote) ) [ ]
    (?P<length> [0-9]{1,8} ) \r?
    """,
    re.VERBOSE,
).fullmatch


class RwkvLibrary:
    """
    The package's own decoding of bytes.

    Args:
        tokenizer: Gives the ``TRIE_TOKENIZER``; asked for at the first use, since its trie takes 6 s and 300 MB.
        special: The text of the special tokens, of which the package knows nothing.
    """

    def __init__(self, tokenizer: Callable[[], Any], special: Mapping[int, bytes]) -> None:
        self.name = with_version("rwkv")
        self._tokenizer = tokenizer
        self._special = special

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode; ids that the list does not have, at which the package raises, are left out."""
        tokenizer = self._tokenizer()
        parts = []
        for token_id in ids:
            if token_id in self._special:
                parts.append(b"" if skip_special_tokens else self._special[token_id])
            elif token_id in tokenizer.idx2token:
                parts.append(tokenizer.decodeBytes([token_id]))
        return b"".join(parts).decode(errors="replace")

    def tokens(self) -> Mapping[str, int]:
        """Every token with its id, as Python writes bytes."""
        return {repr(token): token_id for token_id, token in self._tokenizer().idx2token.items()}


class GreedyEncoder:
    """
    The longest token that fits, from left to right, as the package's trie finds it.

    Args:
        tokens: The bytes of each id; of two ids with the same bytes the last counts.
    """

    def __init__(self, tokens: Mapping[int, bytes]) -> None:
        self._tokens = tokens

    @cached_property
    def _tables(self) -> tuple[Mapping[bytes, int], Mapping[bytes, Sequence[int]]]:
        """The id of each token, and for each two bytes the lengths of the tokens that begin with them, longest first."""
        ids = {token: token_id for token_id, token in self._tokens.items()}
        lengths: dict[bytes, set[int]] = {}
        for token in ids:
            if len(token) > 1:
                lengths.setdefault(token[:2], set()).add(len(token))
        return ids, {begin: sorted(found, reverse=True) for begin, found in lengths.items()}

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        data = utf8(text)
        ids, lengths = self._tables
        found: list[int] = []
        at = 0
        while at < len(data):
            for length in (*lengths.get(data[at : at + 2], ()), 1):
                token_id = ids.get(data[at : at + length])
                if token_id is not None:
                    break
            else:
                accepted = f"no token of this list begins with its byte {data[at]:#04x} at {at}"
                raise OptionError(option="text", value=text, accepted=accepted)
            found.append(token_id)
            at += length
        return found

    def plain(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """Encode a part of a text; see `PlainEncoder`. No special token is ever read."""
        return self(text, add_special_tokens=False)


def from_file(path: Path, *, special_tokens: Mapping[str, int] | None = None) -> Tokenizer:
    """
    Load a world list.

    Args:
        path: The file.
        special_tokens: Texts of special tokens with their ids, such as ``{"<|endoftext|>": 0}``; the list itself has none.

    Raises:
        SourceError: It is no such list, or damaged; the message says in which line.
        OptionError: A special token has an id that cannot be, or that the list has.
    """
    content = read_file(path, ACCEPTED)
    refuse_byte_order_mark(content, path)
    tokens = _read(content, path)
    return _tokenizer(tokens, special_tokens or {}, Once(_package, str(path)), source=str(path))


def from_object(
    tokenizer: Any, *, special_tokens: Mapping[str, int] | None = None, source: str = "rwkv TRIE_TOKENIZER"
) -> Tokenizer:
    """Make a `Tokenizer` of a ``rwkv.rwkv_tokenizer.TRIE_TOKENIZER``. Arguments and errors as `from_file`."""
    return _tokenizer(dict(tokenizer.idx2token), special_tokens or {}, Once.given(tokenizer), source=source)


def _package(path: str) -> Any:
    # The package evaluates each line as code. Of this file each line is one literal, as was seen when it was read.
    return library("rwkv.rwkv_tokenizer", extra="rwkv", purpose="RWKV's own decode").TRIE_TOKENIZER(path)


def _tokenizer(
    tokens: Mapping[int, bytes], special_tokens: Mapping[str, int], package: Callable[[], Any], source: str
) -> Tokenizer:
    if not isinstance(special_tokens, Mapping):
        raise OptionError(option="special_tokens", value=special_tokens, accepted="it maps the text of a token to its id")
    added = added_pieces(tokens, [(token_id, text, True) for text, token_id in special_tokens.items()])
    if isinstance(added, str):
        raise OptionError(option="special_tokens", value=dict(special_tokens), accepted=added)
    special = {token_id: piece.data or b"" for token_id, piece in added.items()}
    encoder = GreedyEncoder(tokens)
    return Tokenizer(
        ByteVocabulary(tokens, added),
        [RawBytes()],
        encoder=encoder,
        library=RwkvLibrary(package, special),
        source=source,
        prompt_support=PromptSupport(
            # The only special token that these models have is the end of a text, which is their padding too.
            facts=partial(PromptFacts, eos_token_ids=tuple(sorted(special))),
            plain=encoder.plain,
            reads_special_tokens=False,
        ),
    )


def _read(content: bytes, source: object) -> dict[int, bytes]:
    tokens: dict[int, bytes] = {}
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            break
        try:
            token_id, token = _token(line.decode())
        except (ValueError, SyntaxError) as error:
            found = f"line {number}: {error}"
            raise SourceError(source, found=found, accepted=ACCEPTED) from error
        if tokens.setdefault(token_id, token) is not token:
            found = f"line {number}: the id {token_id} stands for {tokens[token_id]!r} too"
            raise SourceError(source, found=found, accepted="every id may stand for one token only")
    return tokens


def _token(line: str) -> tuple[int, bytes]:
    match = _LINE(line)
    if match is None:
        raise ValueError(f"this is no id, literal and length: {line[:60]!r}")
    token_id, length = int(match["id"]), int(match["length"])
    # Evaluation takes most of the time; what has no escape is what it says.
    token = literal_eval(match["literal"]) if "\\" in match["inside"] or match["bytes"] else match["inside"]
    data: bytes = token.encode() if isinstance(token, str) else token
    if len(data) != length:
        raise ValueError(f"{match['literal'][:60]} has {len(data)} bytes, not {length}")
    if token_id > MAX_ID:
        raise ValueError(f"the id {token_id} is beyond {MAX_ID}")
    return token_id, data
