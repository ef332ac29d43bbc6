"""
tiktoken: files of ranks (``.tiktoken``, the ``tokenizer.model`` of Llama 3 and 4), the JSON of its npm package, its ``Encoding``.

The judge is ``Encoding.decode``: the bytes of all ids, decoded lossily. It raises at an id that it does not have; such ids are
left out. tiktoken knows no template, so that ``encode`` adds nothing for ``add_special_tokens``, and `encode_prompt` adds BOS in
its place; special tokens that are spelled out in the text become their ids, as with a tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.decoding.rules import RawBytes
from ..core.vocabulary import Piece, Vocabulary
from ..errors import EncodeUnsupported, OptionError, SourceError
from ..prompts.facts import PromptSupport
from .prompt_files import facts_of_ranks
from .reading import (
    MAX_ID,
    Added,
    ByteVocabulary,
    Once,
    added_pieces,
    byte_piece,
    library,
    read_file,
    utf8,
    with_version,
)
from .tiktoken_ranks import ACCEPTED, added_beside, pattern_of, read_ranks
from .tokenizer import Tokenizer

__all__ = ["from_file", "from_name", "from_object"]

# As many as Llama 3 and Kimi keep behind their ranks.
RESERVED = 256
MAX_RESERVED = 1 << 16
ANY_PATTERN = r"\S+|\s+"
REMARKS = ("encode adds no special tokens",)


class EncodingVocabulary:
    """The tokens of an ``Encoding``, read as ids are met."""

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``, or None."""
        if not _has(self._encoding, token_id):
            return None
        data = self._encoding.decode_single_token_bytes(token_id)
        if self._encoding.is_special_token(token_id):
            return Piece(data.decode(), special=True, added=True, data=data)
        return byte_piece(data)

    def __len__(self) -> int:
        return int(self._encoding.n_vocab)

    def ids(self) -> Iterable[int]:
        """All ids, ascending."""
        return [token_id for token_id in range(self._encoding.max_token_value + 1) if _has(self._encoding, token_id)]

    def added_ids(self) -> Iterable[int]:
        """The ids of the special tokens, ascending."""
        return sorted(self._encoding._special_tokens.values())


class TiktokenLibrary:
    """
    The library's own one-shot decode.

    Args:
        encoding: Gives the encoding; asked for at the first use.
        kept: Ids that are special to the encoding but are not skipped.
    """

    def __init__(self, encoding: Callable[[], Any], kept: Collection[int] = ()) -> None:
        self.name = with_version("tiktoken")
        self._encoding = encoding
        self._kept = kept

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode; ids that the encoding does not have, at which it raises, are left out."""
        encoding = self._encoding()
        asked = [token_id for token_id in ids if _has(encoding, token_id)]
        if skip_special_tokens:
            asked = [token_id for token_id in asked if token_id in self._kept or not encoding.is_special_token(token_id)]
        return str(encoding.decode(asked))

    def tokens(self) -> Mapping[str, int]:
        """Every token with its id: special tokens as they are, the others as Python writes bytes."""
        # Both tables are what tiktoken's own documentation extends an encoding by.
        encoding = self._encoding()
        ranks = {repr(token): rank for token, rank in encoding._mergeable_ranks.items()}
        return {**ranks, **encoding._special_tokens}


class TiktokenEncoder:
    """The library's encode, of encodings that have every byte: without one the library ends the thread, not the call."""

    def __init__(self, encoding: Callable[[], Any]) -> None:
        self._encoding = Once(_with_every_byte, encoding)

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return self._encode(text, "all")

    def plain(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """Encode a part of a text; see `PlainEncoder`. tiktoken cuts a text at special tokens and nowhere else."""
        return self._encode(text, self._encoding().special_tokens_set - control)

    def _encode(self, text: str, allowed_special: Any) -> list[int]:
        utf8(text)
        try:
            ids: list[int] = self._encoding().encode(text, allowed_special=allowed_special, disallowed_special=())
        except ValueError as error:
            # Backtracking over a million spaces, say; the whole text would be too long to show.
            shown = f"{text[:30]}... ({len(text)} characters)"
            raise OptionError(option="text", value=shown, accepted=f"tiktoken has to be able to split it ({error})") from error
        return ids


def _with_every_byte(get: Callable[[], Any]) -> Any:
    encoding = get()
    for byte in range(256):
        try:
            encoding.encode_single_token(bytes([byte]))
        except KeyError:
            instead = "take all of them, since there would be text that cannot be encoded"
            raise EncodeUnsupported(f"tiktoken ranks without the byte {byte:#04x}", instead=instead) from None
    return encoding


class NoEncoder:
    """For ranks of which nobody said how text is split."""

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        instead = "give the regular expression that splits text: pat_str=..."
        raise EncodeUnsupported("tiktoken ranks without a pattern", instead=instead)


def from_file(
    path: Path,
    *,
    special_tokens: Mapping[str, int] | None = None,
    pat_str: str | None = None,
    num_reserved_special_tokens: int = RESERVED,
) -> Tokenizer:
    """
    Load a file of ranks, or the JSON of the npm package.

    Args:
        path: The file.
        special_tokens: All special tokens with their ids, as of ``tiktoken.Encoding``. If not given they are those in the file,
            or those in the tokenizer_config.json or tokenizer.json beside it, and those that are reserved.
        pat_str: How text is split, as of ``tiktoken.Encoding``. Only `encode` needs it; it is known for the ranks of OpenAI,
            Llama and Qwen.
        num_reserved_special_tokens: So many ids behind the ranks are special tokens, where nothing says what they are. They are
            named ``<|reserved_token_ID|>``, as Kimi's are in vLLM.

    Raises:
        SourceError: It is no such file, or it or what stands beside it is damaged.
        OptionError: ``special_tokens`` or ``pat_str`` cannot be.
    """
    _check_settings(special_tokens, pat_str, num_reserved_special_tokens)
    ranks = read_ranks(read_file(path, ACCEPTED), path)
    tokens = ranks.tokens
    if special_tokens is not None:
        added = added_pieces(tokens, [(token_id, text, True) for text, token_id in special_tokens.items()])
        if isinstance(added, str):
            raise OptionError(option="special_tokens", value=dict(special_tokens), accepted=added)
    else:
        told = ranks.special_tokens
        known = added_beside(path) if told is None else [(token_id, text, True) for text, token_id in told.items()]
        reserved = [] if told is not None else _reserved(tokens, known, num_reserved_special_tokens)
        added = added_pieces(tokens, [*known, *reserved])
        if isinstance(added, str):
            raise SourceError(path, found=added, accepted="give special_tokens={text: id}")
    vocabulary = ByteVocabulary(tokens, added)
    pattern = pat_str or ranks.pat_str or pattern_of(tokens)
    encoding = Once(_encoding, path.name, tokens, added, pattern)
    encoder = NoEncoder() if pattern is None else TiktokenEncoder(encoding)
    texts = {piece.text: token_id for token_id, piece in added.items()}
    return Tokenizer(
        vocabulary,
        [RawBytes()],
        encoder=encoder,
        library=TiktokenLibrary(encoding, kept=[token_id for token_id, piece in added.items() if not piece.special]),
        source=str(path),
        remarks=REMARKS,
        prompt_support=PromptSupport(facts=Once(facts_of_ranks, texts, path.parent), plain=getattr(encoder, "plain", None)),
    )


def _check_settings(special_tokens: object, pat_str: object, reserved: object) -> None:
    if special_tokens is not None and not isinstance(special_tokens, Mapping):
        raise OptionError(option="special_tokens", value=special_tokens, accepted="it maps the text of a token to its id")
    if not isinstance(pat_str, (str, type(None))):
        raise OptionError(option="pat_str", value=pat_str, accepted="it is a regular expression")
    if type(reserved) is not int or not 0 <= reserved <= MAX_RESERVED:
        accepted = f"it is a number from 0 to {MAX_RESERVED:,}"
        raise OptionError(option="num_reserved_special_tokens", value=reserved, accepted=accepted)


def from_name(name: str) -> Tokenizer:
    """
    Load one of tiktoken's own encodings by its name; tiktoken fetches the ranks that are not in its cache.

    Raises:
        SourceError: There is none of that name, or its ranks cannot be had.
        MissingExtra: tiktoken is not installed.
    """
    module = _module()
    names = module.list_encoding_names()
    source = f"tiktoken:{name}"
    if name not in names:
        found = f"tiktoken has no encoding {name!r}"
        raise SourceError(source, found=found, accepted=f"it has {', '.join(sorted(names))}")
    try:
        encoding = module.get_encoding(name)
    except Exception as error:  # whatever a download raises
        raise SourceError(
            source,
            found=f"its ranks are not in tiktoken's cache, and cannot be fetched ({type(error).__name__}: {error})",
            accepted="fetch them where there is a network, with TIKTOKEN_CACHE_DIR set, and bring that folder; or load the file",
        ) from error
    return from_object(encoding, source=source)


def from_object(encoding: Any, *, source: str = "") -> Tokenizer:
    """
    Make a `Tokenizer` of a ``tiktoken.Encoding``, which must not be changed any more.

    Raises:
        SourceError: A special token has the id of another token.
    """
    for text, token_id in encoding._special_tokens.items():
        data = encoding.decode_single_token_bytes(token_id)
        if data != text.encode():
            found = f"two tokens have the id {token_id}: {text!r} and {data!r}"
            raise SourceError(source or "tiktoken.Encoding", found=found, accepted="every id may stand for one token only")
    vocabulary: Vocabulary = EncodingVocabulary(encoding)
    encoder = TiktokenEncoder(Once.given(encoding))
    return Tokenizer(
        vocabulary,
        [RawBytes()],
        encoder=encoder,
        library=TiktokenLibrary(Once.given(encoding)),
        source=source or f"tiktoken.Encoding {encoding.name}",
        remarks=REMARKS,
        prompt_support=PromptSupport(facts=Once(facts_of_ranks, dict(encoding._special_tokens), None), plain=encoder.plain),
    )


def _encoding(name: str, tokens: Mapping[int, bytes], added: Mapping[int, Piece], pat_str: str | None) -> Any:
    """The library's encoding of a file. It takes longer to make its tables than to read the file."""
    try:
        return _module().Encoding(
            name,
            pat_str=pat_str or ANY_PATTERN,
            mergeable_ranks={token: token_id for token_id, token in tokens.items()},
            special_tokens={piece.text: token_id for token_id, piece in added.items()},
        )
    except ValueError as error:
        accepted = f"it is a regular expression that tiktoken reads ({error})"
        raise OptionError(option="pat_str", value=pat_str, accepted=accepted) from error


def _module() -> Any:
    return library("tiktoken", extra="tiktoken", purpose="tiktoken's own encode, decode and encodings by name")


def _has(encoding: Any, token_id: int) -> bool:
    if not 0 <= token_id <= encoding.max_token_value:
        return False
    try:
        encoding.decode_single_token_bytes(token_id)
    except KeyError:
        return False
    return True


def _reserved(tokens: Mapping[int, bytes], known: Sequence[Added], count: int) -> list[Added]:
    first = max(tokens) + 1
    free = {*range(first, min(first + count, MAX_ID + 1))}.difference(token_id for token_id, _, _ in known)
    return [(token_id, f"<|reserved_token_{token_id}|>", True) for token_id in sorted(free)]
