"""
Tekken, Mistral's tokenizer: tekken.json, and the tokenizer objects of mistral_common.

The judge is ``Tekkenizer.decode``. The ids below the number of special tokens are special, the others ranks behind that number.
A special token ends what is incomplete, skipped or not: ``E2 82 <s> AC`` are two U+FFFD. The policies of mistral_common are
``skip_special_tokens=True`` (IGNORE) and False (KEEP); RAISE has no counterpart, since no stream raises: ask whether an id is in
``tokenizer.special_ids``. As there, ``encode`` reads no special token out of a text.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.decoding.rules import RawBytes
from ..core.vocabulary import Piece, Vocabulary
from ..errors import OptionError, SourceError
from ..prompts.facts import PromptFacts, PromptSupport
from . import mistral_chat, sentencepiece
from .prompt_files import facts_by_ids
from .reading import ByteVocabulary, Once, byte_piece, library, read_file, refuse_byte_order_mark, utf8, with_version
from .tokenizer import Tokenizer

__all__ = ["from_file", "from_object"]

ACCEPTED = "a tekken.json was expected, as mistral_common reads it: config, vocab and, from version 11 on, special_tokens"

# What a file up to version 7 that does not name them has (mistral_common, Tekkenizer.DEPRECATED_SPECIAL_TOKENS).
OLD_SPECIAL_TOKENS = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]"),
    *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]"),
    *("[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"),
    *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
LAST_OLD_VERSION = 7

# Mistral's files have 1,000. A file that asks for many more asks for memory out of proportion to its own size.
MAX_SPECIAL_TOKENS = 1 << 16


class TekkenizerVocabulary:
    """The tokens of a ``Tekkenizer``, read as ids are met."""

    def __init__(self, tekkenizer: Any) -> None:
        self._tekkenizer = tekkenizer

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``, or None."""
        if not 0 <= token_id < self._tekkenizer.n_words:
            return None
        if token_id < self._tekkenizer.num_special_tokens:
            return _special(self._tekkenizer.id_to_piece(token_id))
        return byte_piece(self._tekkenizer.id_to_byte_piece(token_id))

    def __len__(self) -> int:
        return int(self._tekkenizer.n_words)

    def ids(self) -> Iterable[int]:
        """All ids, ascending."""
        return range(self._tekkenizer.n_words)

    def added_ids(self) -> Iterable[int]:
        """The ids of the special tokens, ascending."""
        return range(self._tekkenizer.num_special_tokens)


class TekkenLibrary:
    """The library's own decode; the tekkenizer is asked for at the first use."""

    def __init__(self, tekkenizer: Callable[[], Any]) -> None:
        self.name = with_version("mistral-common")
        self._tekkenizer = tekkenizer

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode; ids out of range, at which the library raises, are left out."""
        tekkenizer = self._tekkenizer()
        policies = library("mistral_common.tokens.tokenizers.base", extra="mistral", purpose=PURPOSE).SpecialTokenPolicy
        asked = [token_id for token_id in ids if 0 <= token_id < tekkenizer.n_words]
        return str(tekkenizer.decode(asked, policies.IGNORE if skip_special_tokens else policies.KEEP))

    def tokens(self) -> Mapping[str, int]:
        """Every token with its id: special tokens as they are, the others as Python writes bytes."""
        vocabulary = TekkenizerVocabulary(self._tekkenizer())
        pieces = ((vocabulary.piece(token_id), token_id) for token_id in vocabulary.ids())
        return {piece.text if piece.data is None else repr(piece.data): token_id for piece, token_id in pieces if piece}


class TekkenEncoder:
    """The library's encode; ``add_special_tokens`` is BOS in front, as in every prompt of Mistral's."""

    def __init__(self, tekkenizer: Callable[[], Any]) -> None:
        self._tekkenizer = tekkenizer

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        utf8(text)
        try:
            ids: list[int] = self._tekkenizer().encode(text, bos=add_special_tokens, eos=False)
        except ValueError as error:
            shown = f"{text[:30]}... ({len(text)} characters)"
            raise OptionError(option="text", value=shown, accepted=f"tiktoken has to be able to split it ({error})") from error
        return ids

    def plain(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """Encode a part of a text; see `PlainEncoder`. The library never reads a special token."""
        return self(text, add_special_tokens=False)


def from_file(path: Path) -> Tokenizer:
    """
    Load a tekken.json. Decoding needs no library; `encode` needs mistral_common.

    Raises:
        SourceError: It is none, or damaged.
    """
    vocabulary = _read(read_file(path, ACCEPTED), path)
    return _tokenizer(vocabulary, Once(_tekkenizer, path), source=str(path))


def from_object(tokenizer: Any, **settings: Any) -> Tokenizer:
    """
    Make a `Tokenizer` of an object of mistral_common, which must not be changed any more.

    Args:
        tokenizer: A ``Tekkenizer``, a ``SentencePieceTokenizer``, or a ``MistralTokenizer`` around one of them.
        settings: For a ``SentencePieceTokenizer`` those of `sentencepiece.from_object`.

    Raises:
        SourceError: It is another object.
    """
    kind = f"mistral_common {type(tokenizer).__name__}"
    inner = getattr(getattr(tokenizer, "instruct_tokenizer", None), "tokenizer", tokenizer)
    bases = {base.__name__ for base in type(inner).__mro__}
    chat = None if inner is tokenizer else Once(mistral_chat.from_mistral, tokenizer)
    if "SentencePieceTokenizer" in bases:
        return sentencepiece.from_object(inner._model, source=kind, chat=chat, **settings)
    if "Tekkenizer" in bases:
        return _tokenizer(TekkenizerVocabulary(inner), Once.given(inner), source=kind, chat=chat, **settings)
    raise SourceError(kind, found=f"has a {type(inner).__name__}", accepted="a Tekkenizer or SentencePieceTokenizer was expected")


PURPOSE = "Tekken's own encode and decode"


def _tekkenizer(path: Path) -> Any:
    module = library("mistral_common.tokens.tokenizers.tekken", extra="mistral", purpose=PURPOSE)
    return module.Tekkenizer.from_file(path)


def _tokenizer(
    vocabulary: Vocabulary, tekkenizer: Callable[[], Any], *, source: str, chat: Callable[[], Any] | None = None
) -> Tokenizer:
    encoder = TekkenEncoder(tekkenizer)
    return Tokenizer(
        vocabulary,
        [RawBytes(specials_split=True)],
        encoder=encoder,
        library=TekkenLibrary(tekkenizer),
        source=source,
        prompt_support=PromptSupport(
            facts=Once(_facts, vocabulary),
            plain=encoder.plain,
            reads_special_tokens=False,
            chat=chat or Once(_chat, tekkenizer),
        ),
    )


def _chat(tekkenizer: Callable[[], Any]) -> mistral_chat.MistralChat:
    return mistral_chat.from_tekkenizer(tekkenizer())


def _facts(vocabulary: Vocabulary) -> PromptFacts:
    pieces = ((token_id, vocabulary.piece(token_id)) for token_id in vocabulary.added_ids())
    ids = {piece.text: token_id for token_id, piece in pieces if piece is not None}
    texts = {token_id: text for text, token_id in ids.items()}
    others = {"unk_token": ids.get("<unk>"), "pad_token": ids.get("<pad>")}
    return facts_by_ids(texts.get, ids.get("<s>"), [ids.get("</s>")], others)


def _read(content: bytes, source: object) -> ByteVocabulary:
    refuse_byte_order_mark(content, source)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SourceError(source, found=f"is no JSON, or only the beginning of it ({error})", accepted=ACCEPTED) from error
    try:
        config, vocab = value["config"], value["vocab"]
        count, size = config["default_num_special_tokens"], config["default_vocab_size"]
        if not 0 <= count <= MAX_SPECIAL_TOKENS or not 256 <= size - count <= len(vocab):
            raise ValueError(f"{len(vocab)} tokens and {count} special ones do not go with {size} ids")
        specials = _special_tokens(value.get("special_tokens"), str(config["version"]), count)
        # More tokens than the default size has room for are in the file, and are left out.
        tokens = [_token(entry, rank) for rank, entry in enumerate(vocab[: size - count])]
        if tokens[:256] != [bytes([byte]) for byte in range(256)] or len({*tokens}) != len(tokens):
            raise ValueError("the first 256 tokens are not the bytes in order, or a token stands there twice")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        found = f"a field is missing or wrong ({type(error).__name__}: {error})"
        raise SourceError(source, found=found, accepted=ACCEPTED) from error
    added = {token_id: _special(text) for token_id, text in enumerate(specials)}
    return ByteVocabulary(dict(enumerate(tokens, count)), added)


def _special_tokens(listed: Sequence[Mapping[str, Any]] | None, version: str, count: int) -> list[str]:
    """The texts of the special tokens, by their places, as the library decodes them; places without a name get one."""
    if listed is None and int(version.removeprefix("v")) > LAST_OLD_VERSION:
        raise ValueError(f"special_tokens is not there, which version {version} has")
    texts = list(OLD_SPECIAL_TOKENS) if listed is None else [token["token_str"] for token in listed]
    texts += [f"<SPECIAL_{token_id}>" for token_id in range(len(texts), count)]
    if len(texts) != count or len({*texts}) != count:
        raise ValueError(f"{len({*texts})} different special tokens, not {count}")
    return [_as_text(text) for text in texts]


def _as_text(text: str) -> str:
    text.encode()
    return text


def _token(entry: Mapping[str, Any], rank: int) -> bytes:
    if entry["rank"] != rank:
        raise ValueError(f"rank {entry['rank']!r} stands at place {rank}")
    return a2b_base64(entry["token_bytes"], strict_mode=True)


def _special(text: str) -> Piece:
    # Text, not bytes: it ends what is incomplete before it.
    return Piece(text, special=True, added=True)
