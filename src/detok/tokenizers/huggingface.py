"""tokenizer.json and everything that is a ``tokenizers.Tokenizer``: its vocabulary, its decoder's rules, its encoder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.decoding.cleanup import TRANSFORMERS_CLEANUP, clean_up
from ..core.vocabulary import Piece
from ..errors import OptionError, UnknownDecoder
from ..prompts.facts import PromptFacts, PromptSupport
from . import auto
from .decoder_json import known_decoders, rules_of
from .encoders import EncoderName, FastestEncoder, LibraryEncoder
from .huggingface_config import TokenizerConfig
from .huggingface_file import compile_regex, read, unlimited
from .huggingface_plain import PlainPieces
from .prompt_files import facts_of_config
from .reading import Once, is_panic
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers

__all__ = ["encoder_of", "from_directory", "from_file", "from_object", "is_tokenizer_object"]

# Up to this many entries the whole vocabulary is looked through for two tokens with one id; beyond it that would slow loading by
# a sixth, so first a look at the highest ids tells whether they are dense: n entries on ids 0 to n-1 cannot share one.
SMALL_VOCABULARY = 65_536


# A token that is nothing on its own is tried beside so many others.
TRIED = 64


class HuggingFaceVocabulary:
    """
    The pieces of a ``tokenizers.Tokenizer``, read as ids are met.

    ``id_to_token`` asks the added vocabulary first, then the model, as the library's own decode does, and gives an added token's
    *normalised* content where the library looks it up by that; such a special token is not skipped.

    Special is what the library skips. It keeps a set of contents that were special once: a token that is added again as not
    special is skipped all the same, and its flags do not tell. So the library is asked.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._added = tokenizer.get_added_tokens_decoder()
        self._specials = {token.content for token in self._added.values() if token.special}
        self._pieces: dict[int, Piece] = {}
        """Of added tokens that were met: whether they are special is asked of the library once."""
        # The library's own count with added tokens takes 2 ms where there are thousands of them.
        size = tokenizer.get_vocab_size(with_added_tokens=False)
        self._size = size + sum(token_id >= size for token_id in self._added)
        self._skips_no_other = self._finds_none_skipped()

    def __len__(self) -> int:
        return self._size

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``, or None."""
        piece = self._pieces.get(token_id)
        if piece is not None or not 0 <= token_id < 1 << 32:
            return piece
        text = self._tokenizer.id_to_token(token_id)
        if text is None or token_id not in self._added:
            return None if text is None else Piece(text, special=text in self._specials)
        piece = self._pieces[token_id] = Piece(text, text in self._specials or self._is_skipped(token_id), added=True)
        return piece

    def ordinary(self, token_id: int) -> str | None:
        """The token of an id from 0 on, if it is neither special nor added."""
        text: str | None = None if token_id in self._added else self._tokenizer.id_to_token(token_id)
        return None if text in self._specials else text

    def _is_skipped(self, token_id: int) -> bool:
        """Whether the library leaves a token out. Where it is nothing on its own, a neighbour shows whether it was there."""
        if self._skips_no_other:
            return False
        for ids in ([token_id], *self._neighbourhoods(token_id)):
            kept, skipped = self._decoded(ids, False), self._decoded(ids, True)
            if None not in (kept, skipped) and kept != skipped:
                return True
            if kept and len(ids) == 1:
                return False
        return False

    def _finds_none_skipped(self) -> bool:
        """Whether the library leaves out none of the tokens that are added and not special. There may be thousands of them."""
        others = [token_id for token_id, token in self._added.items() if token.content not in self._specials]
        kept, skipped = self._decoded(others, False), self._decoded(others, True)
        # Where each of them is in the text with all its characters, none of them is nothing on its own.
        whole = sum(len(self._added[token_id].content) for token_id in others)
        return kept is not None and kept == skipped and len(kept) >= whole

    def _decoded(self, ids: list[int], skips: bool) -> str | None:
        """What the library says; None if it breaks down, as its Strip does on a short token."""
        try:
            text: str = self._tokenizer.decode(ids, skip_special_tokens=skips)
        except BaseException as error:
            if not is_panic(error):
                raise
            return None
        return text

    def _neighbourhoods(self, token_id: int) -> Iterable[list[int]]:
        """Lists in which a token stands before and between others that are never skipped."""
        usual = (other for other in range(TRIED) if other not in self._added and self._tokenizer.id_to_token(other))
        for other in usual:
            yield from ([token_id, other], [other, token_id, other])

    def ids(self) -> Iterable[int]:
        """All ids, ascending."""
        return sorted({*self._tokenizer.get_vocab().values(), *self._added})

    def added_ids(self) -> Iterable[int]:
        """The ids of the added vocabulary, ascending."""
        return sorted(self._added)


class HuggingFaceLibrary:
    """
    The library's own one-shot decode; with ``cleans_up``, transformers' clean-up after it.

    Args:
        tokenizer: The library's.
        cleans_up: Whether there is clean-up.
        directory: What it was made of, if that is a directory: then AutoTokenizer of transformers has the last word on it.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, *, cleans_up: bool, directory: Path | None = None) -> None:
        import tokenizers

        self.directory = directory

        self.name = f"tokenizers {tokenizers.__version__}" + (" and transformers' clean-up" if cleans_up else "")
        self.backend = tokenizer
        self._cleans_up = cleans_up

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Decode; ids that do not fit into 32 bits, at which the library raises, are left out."""
        asked = [token_id for token_id in ids if 0 <= token_id < 1 << 32]
        text: str = self.backend.decode(asked, skip_special_tokens=skip_special_tokens)
        return clean_up(text, TRANSFORMERS_CLEANUP) if self._cleans_up else text

    def tokens(self) -> Mapping[str, int]:
        """Every token of the model with its id."""
        tokens: Mapping[str, int] = self.backend.get_vocab(with_added_tokens=False)
        return tokens

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Encode, as users of the library do."""
        ids: list[int] = self.backend.encode(text, add_special_tokens=add_special_tokens).ids
        return ids


def encoder_of(tokenizer: tokenizers.Tokenizer, wanted: EncoderName = "auto") -> FastestEncoder:
    """Return the fastest encoder that gives the library's ids, or the one that is named. Errors as `FastestEncoder`."""
    return FastestEncoder(LibraryEncoder(tokenizer), wanted)


def from_file(path: Path, *, encoder: EncoderName = "auto") -> Tokenizer:
    """Load a tokenizer.json, exactly as the tokenizers library has it: no configuration beside it is looked at."""
    return from_object(unlimited(read(path)), source=str(path), encoder=encoder)


def from_directory(directory: Path, *, encoder: EncoderName = "auto") -> Tokenizer:
    """
    Load a directory with a tokenizer.json as AutoTokenizer of transformers would, by detok's own rules.

    A class that builds its tokenizer itself, and that detok has no rules for, is made by transformers where that is installed.

    Raises:
        SourceError: A file is damaged, or the tokenizer is code of its own.
        OptionError: An encoder is insisted on, and transformers makes the tokenizer.
    """
    chosen, file = auto.class_of(directory), read(directory / "tokenizer.json")
    if auto.needs_transformers(chosen, file):
        from . import transformers

        if encoder != "auto":
            why = f"transformers makes this {chosen.name}, and encodes itself; take 'auto'"
            raise OptionError(option="encoder", value=encoder, accepted=why)
        return transformers.from_directory(directory)
    built = auto.build(directory, chosen, file)
    return of_directory(built, directory, source=str(directory), encoder=encoder)


def of_directory(
    built: auto.Built,
    directory: Path,
    *,
    source: str,
    encoder: EncoderName = "auto",
    remarks: Sequence[str] = (),
    judged: bool = True,
) -> Tokenizer:
    """Make a `Tokenizer` of what was built of a directory; ``judged`` by AutoTokenizer, or by the tokenizers library alone."""
    values = {**built.values, **{name: str(token) for name, token in built.named.by_name.items()}}
    return from_object(
        unlimited(built.tokenizer),
        source=source,
        config=TokenizerConfig(values),
        directory=directory,
        encoder=encoder,
        remarks=[*built.remarks, *remarks],
        judged=directory if judged else None,
    )


def is_tokenizer_object(source: object) -> bool:
    """Whether ``source`` is a ``tokenizers.Tokenizer``, without importing the library for something else."""
    return any(kind.__module__.partition(".")[0] == "tokenizers" for kind in type(source).__mro__) and hasattr(
        source, "id_to_token"
    )


def from_object(
    tokenizer: Any,
    *,
    source: str = "tokenizers.Tokenizer",
    config: TokenizerConfig | None = None,
    directory: Path | None = None,
    encoder: EncoderName = "auto",
    remarks: Sequence[str] = (),
    judged: Path | None = None,
) -> Tokenizer:
    """
    Make a `Tokenizer` of a ``tokenizers.Tokenizer``, which must not be changed any more.

    Args:
        tokenizer: The library's.
        source: What to call it.
        config: What the files beside it say.
        directory: Where these are.
        encoder: As `detok.load` takes it.
        remarks: What else there is to say of it.
        judged: The directory of which AutoTokenizer of transformers is the judge, if there is one.

    Raises:
        SourceError: A part of it cannot be.
        UnknownDecoder: Its decoder has a type that detok does not know.
    """
    cleans_up = config is not None and config.cleans_up(type(tokenizer.model).__name__)
    return Tokenizer(
        HuggingFaceVocabulary(tokenizer),
        rules_of(_decoder_json(tokenizer, source), source=source, compile_regex=partial(compile_regex, source)),
        encoder=encoder_of(tokenizer, encoder),
        library=HuggingFaceLibrary(tokenizer, cleans_up=cleans_up, directory=judged),
        cleans_up=cleans_up,
        source=source,
        remarks=[*remarks, *_shared_ids(tokenizer)],
        prompt_support=PromptSupport(
            facts=PromptFacts if config is None else Once(facts_of_config, config.values, directory, tokenizer.token_to_id),
            plain=PlainPieces(Once.given(tokenizer)),
            offsets=partial(_offsets, tokenizer),
        ),
    )


def _offsets(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    offsets: list[tuple[int, int]] = tokenizer.encode(text, add_special_tokens=False).offsets
    return offsets


def _decoder_json(tokenizer: Any, source: str) -> dict[str, Any] | None:
    if tokenizer.decoder is None:
        return None
    try:
        decoder: dict[str, Any] = json.loads(tokenizer.decoder.__getstate__())
    except Exception as error:  # a decoder written in Python has no such form; the library raises Exception itself
        raise UnknownDecoder(
            source, decoder=f"{type(tokenizer.decoder).__name__} (written in Python)", known=known_decoders()
        ) from error
    return decoder


def _shared_ids(tokenizer: Any) -> list[str]:
    """
    Say which tokens have one id, if some do; as half a sentence.

    The library loads such a vocabulary, encodes all of them and decodes one. Which one depends on the order of a hash table, and
    that is another at every load. So it is loaded here too, and equals the library's object that was loaded for it.
    """
    count = tokenizer.get_vocab_size(with_added_tokens=False)
    dense = count > SMALL_VOCABULARY and tokenizer.model.id_to_token(count - 1) is not None
    if dense or not count:
        return []
    tokens: dict[int, list[str]] = {}
    for token, token_id in tokenizer.get_vocab(with_added_tokens=False).items():
        tokens.setdefault(token_id, []).append(token)
    shared = sorted((token_id, sorted(names)) for token_id, names in tokens.items() if len(names) > 1)
    if not shared:
        return []
    token_id, names = shared[0]
    more = f", and {len(shared) - 1:,} more ids are shared" if len(shared) > 1 else ""
    found = f"two tokens have the id {token_id}: {names[0]!r} and {names[1]!r}"
    return [f"{found}; which of them is decoded may change at the next load{more}"]
