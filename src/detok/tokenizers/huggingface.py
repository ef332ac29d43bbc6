"""tokenizer.json and everything that is a ``tokenizers.Tokenizer``: its vocabulary, its decoder's rules, its encoder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.decoding.cleanup import TRANSFORMERS_CLEANUP, clean_up
from ..core.vocabulary import Piece
from ..errors import SourceError, UnknownDecoder
from ..prompts.facts import PromptFacts, PromptSupport
from .decoder_json import known_decoders, rules_of
from .encoders import EncoderName, FastestEncoder, LibraryEncoder
from .huggingface_config import TokenizerConfig, read_config
from .huggingface_plain import PlainPieces
from .prompt_files import facts_of_config
from .reading import Once, library
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers

__all__ = ["encoder_of", "from_directory", "from_file", "from_object", "is_tokenizer_object"]

ACCEPTED = "a tokenizer.json of the Hugging Face tokenizers library was expected"

# Up to this many entries the whole vocabulary is looked through for two tokens with one id; beyond it that would slow loading by
# a sixth, so first a look at the highest ids tells whether they are dense: n entries on ids 0 to n-1 cannot share one.
SMALL_VOCABULARY = 65_536


class HuggingFaceVocabulary:
    """
    The pieces of a ``tokenizers.Tokenizer``, read as ids are met.

    ``id_to_token`` asks the added vocabulary first, then the model, as the library's own decode does, and gives an added token's
    *normalised* content where the library looks it up by that; such a special token is not skipped.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._added = tokenizer.get_added_tokens_decoder()
        self._specials = {token.content for token in self._added.values() if token.special}
        self._pieces: dict[int, Piece] = {}

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind ``token_id``, or None."""
        piece = self._pieces.get(token_id)
        if piece is None and 0 <= token_id < 1 << 32:
            text = self._tokenizer.id_to_token(token_id)
            if text is not None:
                piece = Piece(text, special=text in self._specials, added=token_id in self._added)
                self._pieces[token_id] = piece
        return piece

    def ids(self) -> Iterable[int]:
        """All ids, ascending."""
        return sorted({*self._tokenizer.get_vocab().values(), *self._added})

    def added_ids(self) -> Iterable[int]:
        """The ids of the added vocabulary, ascending."""
        return sorted(self._added)


class HuggingFaceLibrary:
    """The library's own one-shot decode; with ``cleans_up``, transformers' clean-up behind it."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, *, cleans_up: bool) -> None:
        import tokenizers

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
    return from_object(_read(path), source=str(path), encoder=encoder)


def from_directory(directory: Path, *, encoder: EncoderName = "auto") -> Tokenizer:
    """Load a directory with a tokenizer.json, as transformers would: with its configuration's special tokens and clean-up."""
    config = read_config(directory)
    tokenizer = _read(directory / "tokenizer.json")
    added = config.missing_tokens(tokenizer)
    if added:
        tokenizer.add_tokens(added)
    return from_object(tokenizer, source=str(directory), config=config, directory=directory, encoder=encoder)


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
) -> Tokenizer:
    """Make a `Tokenizer` of a ``tokenizers.Tokenizer``, which must not be changed any more."""
    _refuse_shared_ids(tokenizer, source)
    cleans_up = config is not None and config.cleans_up(type(tokenizer.model).__name__)
    return Tokenizer(
        HuggingFaceVocabulary(tokenizer),
        rules_of(_decoder_json(tokenizer, source), source=source, compile_regex=_compile_regex),
        encoder=encoder_of(tokenizer, encoder),
        library=HuggingFaceLibrary(tokenizer, cleans_up=cleans_up),
        cleans_up=cleans_up,
        source=source,
        prompt_support=PromptSupport(
            facts=PromptFacts if config is None else Once(facts_of_config, config.values, directory, tokenizer.token_to_id),
            plain=PlainPieces(Once.given(tokenizer)),
            offsets=partial(_offsets, tokenizer),
        ),
    )


def _offsets(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    offsets: list[tuple[int, int]] = tokenizer.encode(text, add_special_tokens=False).offsets
    return offsets


def _library() -> Any:
    return library("tokenizers", extra="hf", purpose="a tokenizer.json")


def _read(path: Path) -> Any:
    tokenizers = _library()
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself, for every fault of a file
        tokenizer = _second_try(path, tokenizers, error)
    # A file may carry the truncation and padding of its training; a serving stack wants all of its text, and nothing else.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _second_try(path: Path, tokenizers: Any, error: Exception) -> Any:
    """Say what is wrong with a file that the library refused; old forms that it no longer reads are brought up to date."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as fault:
        raise SourceError(path, found=f"cannot be read ({fault.strerror})", accepted=ACCEPTED) from fault
    except (ValueError, RecursionError) as fault:
        raise SourceError(path, found=f"is no JSON, or only the beginning of it ({fault})", accepted=ACCEPTED) from fault
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        found = "is JSON but no tokenizer: " + (
            f'it has no "model", only {", ".join(map(repr, list(content)[:5])) or "nothing"}'
            if isinstance(content, dict)
            else f"a {type(content).__name__}"
        )
        raise SourceError(path, found=found, accepted=ACCEPTED) from error
    if isinstance(content.get("decoder"), dict):
        rules_of(content["decoder"], source=path, compile_regex=_compile_regex)
    if _modernise(content):
        try:
            return tokenizers.Tokenizer.from_str(json.dumps(content))
        except Exception as second:  # as above
            error = second
    raise SourceError(path, found=f"the tokenizers library refuses it: {error}", accepted=ACCEPTED) from error


def _modernise(value: Any) -> bool:
    """Give old Metaspace forms the field that newer libraries ask for; true if there was one."""
    if isinstance(value, list):
        return sum(_modernise(item) for item in value) > 0
    if not isinstance(value, dict):
        return False
    if value.get("type") == "Metaspace" and value.get("add_prefix_space") is False and "prepend_scheme" not in value:
        value["prepend_scheme"] = "never"
        return True
    return sum(_modernise(value.get(part)) for part in ("decoder", "pre_tokenizer", "decoders", "pretokenizers")) > 0


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


def _compile_regex(pattern: str, content: str) -> Callable[[str], str]:
    """Replace a regular expression by the library's own engine, so that no other dialect comes in."""
    tokenizers = _library()
    try:
        decode = tokenizers.decoders.Replace(tokenizers.Regex(pattern), content).decode
    except Exception as error:  # the library raises Exception itself
        raise SourceError("decoder", found=f"the pattern {pattern!r} is refused: {error}", accepted=ACCEPTED) from error
    return partial(_replaced, decode)


def _replaced(decode: Callable[[list[str]], str], text: str) -> str:
    return decode([text])


def _refuse_shared_ids(tokenizer: Any, source: str) -> None:
    """
    Refuse a vocabulary in which two tokens have one id: one of them could never be decoded.

    Raises:
        SourceError: Naming the tokens and the id.
    """
    count = tokenizer.get_vocab_size(with_added_tokens=False)
    dense = count > SMALL_VOCABULARY and tokenizer.model.id_to_token(count - 1) is not None
    if dense or not count:
        return
    tokens: dict[int, str] = {}
    for token, token_id in tokenizer.get_vocab(with_added_tokens=False).items():
        other = tokens.setdefault(token_id, token)
        if other != token:
            raise SourceError(
                source,
                found=f"two tokens have the id {token_id}: {min(other, token)!r} and {max(other, token)!r}",
                accepted="every id may stand for one token only",
            )
