"""
SentencePiece models: ``.model`` files and ``sentencepiece.SentencePieceProcessor``.

The judge is ``DecodeIds`` (sentencepiece_processor.cc, DecodeOptimized). Control pieces are special: skipped they give nothing,
but end a run of bytes. DecodeIds cannot show them; with ``skip_special_tokens=False`` they are shown as the same model would show
them if they were user-defined pieces. The unknown piece is shown always, as the model's unk_surface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..core.decoding.rules import Denormalizer, Rule, SentencePiece, byte_of
from ..core.vocabulary import Piece
from ..errors import SourceError
from ..prompts.facts import PromptFacts, PromptSupport
from . import mistral_chat
from .prompt_files import facts_beside, facts_by_ids
from .reading import Once, library, read_file, utf8, with_version
from .sentencepiece_model import ModelSettings, fault_of, read_settings, with_controls_shown
from .tokenizer import Tokenizer

__all__ = ["from_file", "from_object"]

ACCEPTED = "a SentencePiece model was expected, as its trainer writes it (tokenizer.model, spiece.model, sentencepiece.bpe.model)"


class SentencePieceVocabulary:
    """The pieces of a processor; the place is the id."""

    def __init__(self, processor: Any) -> None:
        self.known = range(processor.get_piece_size())
        self._every = list(self.known)
        self._texts: Sequence[str] = processor.id_to_piece(self._every)
        self._bytes = self._where(processor.is_byte)
        self.controls = self._where(processor.is_control)
        self.unknown = next(iter(self._where(processor.is_unknown)), None)
        self.unknown_text = "" if self.unknown is None else self._texts[self.unknown]
        while self._texts.count(self.unknown_text) > 1:
            # A piece of another type may have the same name, but is shown differently. No piece has a NUL in its name.
            self.unknown_text += "\0"

    def _where(self, has: Any) -> frozenset[int]:
        return frozenset(token_id for token_id, yes in zip(self._every, has(self._every), strict=True) if yes)

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``, or None."""
        if token_id not in self.known:
            return None
        text = self._texts[token_id]
        if token_id in self.controls:
            return Piece(text, special=True, added=True)
        if token_id in self._bytes:
            return Piece(text, data=bytes([byte_of(text) or 0]))
        return Piece(self.unknown_text if token_id == self.unknown else text)

    def __len__(self) -> int:
        return len(self._every)

    def ids(self) -> Iterable[int]:
        """All ids, ascending."""
        return self._every

    def added_ids(self) -> Iterable[int]:
        """The ids of the control pieces, ascending."""
        return sorted(self.controls)

    def tokens(self) -> Mapping[str, int]:
        """Every piece with its id."""
        tokens = dict(zip(self._texts, self._every, strict=True))
        return tokens if self.unknown is None else {**tokens, self.unknown_text: self.unknown}


class SentencePieceLibrary:
    """The library's own ``DecodeIds``, without the ids out of range at which it raises."""

    def __init__(self, processor: Any, vocabulary: SentencePieceVocabulary) -> None:
        self.name = with_version("sentencepiece")
        self._processor = processor
        self._vocabulary = vocabulary
        self._showing = Once(_showing_controls, processor, vocabulary.controls)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode; control pieces are shown by the model in which they are user-defined."""
        known = self._vocabulary.known
        asked = [token_id for token_id in ids if token_id in known]
        shows = not skip_special_tokens and not self._vocabulary.controls.isdisjoint(asked)
        processor = self._showing() if shows else self._processor
        return str(processor.decode(asked, out_type=str)) if asked else ""

    def tokens(self) -> Mapping[str, int]:
        """Every piece with its id."""
        return self._vocabulary.tokens()


def _showing_controls(processor: Any, controls: frozenset[int]) -> Any:
    return _module().SentencePieceProcessor(model_proto=with_controls_shown(processor.serialized_model_proto(), controls))


class SentencePieceEncoder:
    """The library's encode, with the model's own BOS and EOS as asked for."""

    def __init__(self, processor: Any, *, bos: bool, eos: bool) -> None:
        self._processor = processor
        self._before = [processor.bos_id()] if bos and processor.bos_id() >= 0 else []
        self._behind = [processor.eos_id()] if eos and processor.eos_id() >= 0 else []

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._processor.encode(
            utf8(text), out_type=int, add_bos=False, add_eos=False, reverse=False, enable_sampling=False
        )
        return [*self._before, *ids, *self._behind] if add_special_tokens else ids

    def plain(self, text: str, *, control: frozenset[str], before: str | None, after: str | None) -> list[int]:
        """Encode a part of a text; see `PlainEncoder`. The library never reads a control piece, and begins each part anew."""
        return self(text, add_special_tokens=False)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each piece of a text stands, in characters."""
        plain = {"add_bos": False, "add_eos": False, "reverse": False, "enable_sampling": False}
        try:
            return [*self._processor.encode(text, out_type="offset_mapping", **plain)["offsets"]]
        except (RuntimeError, ValueError):  # up to 0.2.1 the library knows another form, which later ones refuse
            pieces = self._processor.encode(text, out_type="immutable_proto", **plain).pieces
            return [(piece.begin, piece.end) for piece in pieces]


class LibraryDenormalizer:
    """The library's own normalizer, with the specification of a denormalizer."""

    def __init__(self, specification: bytes) -> None:
        self._normalizer = Once(_normalizer, specification)
        self._normalizer()  # the library refuses a damaged one here

    def __call__(self, text: str) -> str:
        # As bytes: a damaged map may write what is no UTF-8, and no stream raises.
        return bytes(self._normalizer().Normalize(text.encode())).decode(errors="replace")


def _normalizer(specification: bytes) -> Any:
    return _module().SentencePieceNormalizer(normalizer_spec=specification)


def from_file(path: Path, *, add_bos_token: bool = True, add_eos_token: bool = False) -> Tokenizer:
    """
    Load a ``.model`` file.

    Args:
        path: The file. What stands beside it (tokenizer_config.json) counts for prompts alone: chat templates, and every end.
        add_bos_token, add_eos_token: What ``encode(add_special_tokens=True)`` adds, if the model has it. The defaults are those
            of Llama and Mistral, of transformers and mistral-common alike; T5 and its kind have no BOS and want an EOS.

    Raises:
        SourceError: It is no SentencePiece model, or damaged.
        MissingExtra: sentencepiece is not installed.
    """
    content = read_file(path, ACCEPTED)
    module = _module()
    try:
        processor = module.SentencePieceProcessor(model_proto=content)
    except Exception as error:  # the library raises RuntimeError, OSError and ValueError, by version
        fault = fault_of(content)
        found = f"is no protobuf, or only the beginning of one ({fault})" if fault else f"the library refuses it: {error}"
        raise SourceError(path, found=found, accepted=ACCEPTED) from error
    # Mistral's own files have the version in their names, by which mistral_common knows them.
    chat = Once(mistral_chat.from_path, path) if path.suffix[:2] == ".v" and path.suffix[2:].isdecimal() else None
    settings = {"add_bos_token": add_bos_token, "add_eos_token": add_eos_token}
    return from_object(processor, source=str(path), directory=path.parent, chat=chat, **settings)


def from_object(
    processor: Any,
    *,
    add_bos_token: bool = True,
    add_eos_token: bool = False,
    source: str = "sentencepiece.SentencePieceProcessor",
    directory: Path | None = None,
    chat: Callable[[], Any] | None = None,
) -> Tokenizer:
    """Make a `Tokenizer` of a ``SentencePieceProcessor``, which must not be changed any more. For the rest see `from_file`."""
    if not processor.get_piece_size():
        raise SourceError(source, found="the processor has no model", accepted=ACCEPTED)
    try:
        settings = read_settings(processor.serialized_model_proto())
        vocabulary = SentencePieceVocabulary(processor)
        rules = _rules(vocabulary, settings)
    except Exception as error:  # pieces or settings that are no UTF-8: each version has its own
        raise SourceError(source, found=f"the model is damaged ({error})", accepted=ACCEPTED) from error
    encoder = SentencePieceEncoder(processor, bos=add_bos_token, eos=add_eos_token)
    return Tokenizer(
        vocabulary,
        rules,
        encoder=encoder,
        library=SentencePieceLibrary(processor, vocabulary),
        source=source,
        prompt_support=PromptSupport(
            facts=Once(_facts, processor, directory),
            plain=encoder.plain,
            reads_special_tokens=False,
            offsets=encoder.offsets,
            chat=chat,
        ),
    )


def _facts(processor: Any, directory: Path | None) -> PromptFacts:
    bos, eos, unknown, pad = (
        None if token_id < 0 else token_id
        for token_id in (processor.bos_id(), processor.eos_id(), processor.unk_id(), processor.pad_id())
    )
    facts = facts_by_ids(processor.id_to_piece, bos, [eos], {"unk_token": unknown, "pad_token": pad})
    if directory is None:
        return facts
    known = {piece: token_id for token_id, piece in enumerate(processor.id_to_piece(list(range(processor.get_piece_size()))))}
    return facts_beside(directory, known.get, facts)


def _module() -> Any:
    return library("sentencepiece", extra="sentencepiece", purpose="a SentencePiece model")


def _rules(vocabulary: SentencePieceVocabulary, settings: ModelSettings) -> list[Rule]:
    rules: list[Rule] = [
        SentencePiece(
            add_dummy_prefix=settings.add_dummy_prefix,
            remove_extra_whitespaces=settings.remove_extra_whitespaces,
            unknown=vocabulary.unknown_text,
            unknown_surface=settings.unk_surface,
        )
    ]
    if settings.denormalizer:
        digest = blake2b(settings.denormalizer, digest_size=16).hexdigest()
        rules.append(Denormalizer(digest, LibraryDenormalizer(settings.denormalizer)))
    return rules
