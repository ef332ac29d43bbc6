"""
The choice of an encoder for a ``tokenizers.Tokenizer``: the fastest one that gives the library's own ids.

``fastokens`` reads a tokenizer.json and encodes unseen text seven to fifty times as fast. It is taken if it loads the tokenizer
and gives equal ids on every text of a corpus: the hard ones and the samples of `detok.data`, and texts around the special and
other tokens of this vocabulary. Loading it takes seconds for the largest, so that nobody waits for it who has little to encode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from itertools import pairwise
from random import Random
from threading import Lock
from typing import Any, Literal, get_args
from weakref import WeakValueDictionary

from ..core.options import check_choice
from ..data import sample, sample_names
from ..data.hard_texts import HARD_TEXTS
from ..errors import MissingExtra, OptionError
from .reading import utf8, with_version

__all__ = ["EncoderInfo", "EncoderName", "FastestEncoder", "LibraryEncoder", "check_encoder"]

EncoderName = Literal["auto", "tokenizers", "fastokens"]
"""What encodes a tokenizer.json: the fastest that is exact, or the one that is named."""

FAST = "fastokens"

# So many bytes of UTF-8 take about half a millisecond on one core of 2026, on Llama 3 and Gemma 3 alike: what an event loop can
# spare. Handing them to a thread and back takes a tenth of that.
LIBRARY_INLINE_BYTES = 2048
FAST_INLINE_BYTES = 16_384

PATIENCE = 1 << 16
"""
So many characters are encoded by the library before a choice is made that nobody asked for.

The library takes 30 ms for them, and fastokens up to 3 s to load; whoever has encoded so much may well have more.
"""

# Of added tokens, and of the others, at most so many are looked at; some vocabularies have added tokens by the thousand.
MAX_ADDED = 512
TOKENS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderInfo:
    """Which encoder a tokenizer has."""

    name: str
    """The library, with its version."""

    reason: str = ""
    """Why it is none that is faster; "" if there is nothing to say."""

    refused: bool = False
    """Whether a faster one is installed and was tried."""

    inline_bytes: int = LIBRARY_INLINE_BYTES
    """So many bytes of UTF-8 are encoded while an event loop waits; `AsyncEncoder` gives longer texts to a thread."""


class LibraryEncoder:
    """
    The encode of ``tokenizers``, with the truncation and padding of the object that was given, if it has them.

    Its ``encode`` keeps the interpreter lock, and counts offsets that nobody here asks for; ``encode_batch_fast`` does neither,
    and gives the same ids in two thirds of the time.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.info = EncoderInfo(name=with_version("tokenizers"))

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Encode one text. Errors as ``Tokenizer.encode``."""
        return self.batch([text], add_special_tokens=add_special_tokens)[0]

    def batch(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[int]]:
        """Encode several texts, on all cores."""
        if self.tokenizer.padding is not None and len(texts) > 1:
            # The library pads the texts of a batch to one length.
            return [self(text, add_special_tokens=add_special_tokens) for text in texts]
        try:
            encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=add_special_tokens)
        except TypeError:
            for text in texts:
                utf8(text)  # says what is wrong with the text, if that is it
            raise
        return [encoding.ids for encoding in encodings]


class FastokensEncoder:
    """
    The encode of ``fastokens``. What it refuses, the library's own encoder has the last word on.

    Args:
        native: Its tokenizer.
        own: The library's own encoder.
    """

    def __init__(self, native: Any, own: LibraryEncoder) -> None:
        self._native, self._own = native, own
        self.info = EncoderInfo(name=with_version(FAST), inline_bytes=FAST_INLINE_BYTES)

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Encode one text. Errors as ``Tokenizer.encode``."""
        try:
            ids: list[int] = self._native.encode(text, add_special_tokens=add_special_tokens).ids
        except Exception:  # a limit of its regular expressions, or no text at all
            return self._own(text, add_special_tokens=add_special_tokens)
        return ids

    def batch(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[int]]:
        """Encode several texts, on all cores."""
        try:
            encodings = self._native.encode_batch(list(texts), add_special_tokens=add_special_tokens)
        except Exception:  # as above
            return [self(text, add_special_tokens=add_special_tokens) for text in texts]
        return [encoding.ids for encoding in encodings]


class FastestEncoder:
    """
    An encoder that is chosen when somebody asks which one it is, or when there is much to encode.

    Args:
        own: The library's own encoder, which is the judge.
        wanted: A name insists, and is tried at once.

    Raises:
        OptionError: The one that was named cannot be had for this tokenizer.
        MissingExtra: It is not installed.
    """

    def __init__(self, own: LibraryEncoder, wanted: EncoderName = "auto") -> None:
        self.own = own
        self._wanted: EncoderName = wanted
        self._chosen: LibraryEncoder | FastokensEncoder | None = own if wanted == "tokenizers" else None
        self._info = own.info
        self._lock = Lock()
        self._seen = 0
        """So many characters came before there was a choice."""

        if wanted == FAST:
            found = self._choose()
            if found is own:
                if not _is_installed():
                    raise MissingExtra(FAST, extra="fast", purpose="encoder='fastokens'")
                raise OptionError(option="encoder", value=wanted, accepted=f"{self._info.reason}; take 'auto' or 'tokenizers'")

    @property
    def info(self) -> EncoderInfo:
        """Which one it is."""
        self._chosen or self._choose()
        return self._info

    @property
    def maybe_info(self) -> EncoderInfo | None:
        """Which one it is, if it was chosen already."""
        return self._info if self._chosen else None

    def __call__(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Encode one text."""
        return (self._chosen or self._for(text))(text, add_special_tokens=add_special_tokens)

    def batch(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[int]]:
        """Encode several texts."""
        return (self._chosen or self._for(*texts)).batch(texts, add_special_tokens=add_special_tokens)

    def _for(self, *texts: str) -> LibraryEncoder | FastokensEncoder:
        self._seen += sum(len(text) for text in texts if isinstance(text, str))
        return self.own if self._seen <= PATIENCE else self._choose()

    def _choose(self) -> LibraryEncoder | FastokensEncoder:
        with self._lock:
            if self._chosen is None:
                found = _find_fast(self.own)
                if isinstance(found, FastokensEncoder):
                    self._info, self._chosen = found.info, found
                else:
                    name = self.own.info.name
                    self._info, self._chosen = EncoderInfo(name=name, reason=found, refused=_is_installed()), self.own
            return self._chosen

    def __reduce__(self) -> tuple[object, ...]:
        # What was chosen here need not be there.
        return FastestEncoder, (self.own, "tokenizers" if self._wanted == "tokenizers" else "auto")


# Of this process: why a tokenizer was refused, "" if it was not, by the fingerprint of its JSON; and what is in use, since one
# takes 100 MB and more.
_verdicts: dict[str, str] = {}
_in_use: WeakValueDictionary[str, FastokensEncoder] = WeakValueDictionary()
_finding = Lock()


def _find_fast(own: LibraryEncoder) -> FastokensEncoder | str:
    """Return the fast encoder; or, as a text, why there is none."""
    if not _is_installed():
        return f"{FAST} is not installed: pip install 'detok[fast]'"
    tokenizer = own.tokenizer
    if tokenizer.truncation is not None or tokenizer.padding is not None or tokenizer.encode_special_tokens:
        return "the object truncates, pads or encodes special tokens as text"
    try:
        content = tokenizer.to_str()
    except Exception as error:  # the library raises Exception itself, for parts that are written in Python
        return f"it has no form as JSON ({error})"
    fingerprint = blake2b(content.encode(), digest_size=16).hexdigest()
    with _finding:
        found = _in_use.get(fingerprint)
        if found is not None:
            return found
        if _verdicts.get(fingerprint):
            return _verdicts[fingerprint]
        try:
            native = import_module(FAST).Tokenizer.from_json_str(content)
        except Exception as error:  # ValueError, and whatever else it may come to raise
            _verdicts[fingerprint] = f"{with_version(FAST)} does not load it ({error})"
            return _verdicts[fingerprint]
        if fingerprint not in _verdicts:
            _verdicts[fingerprint] = _difference(native, own)
        if _verdicts[fingerprint]:
            return _verdicts[fingerprint]
        return _in_use.setdefault(fingerprint, FastokensEncoder(native, own))


def _difference(native: Any, own: LibraryEncoder) -> str:
    """Say on which text of the corpus the ids differ; "" if on none."""
    texts = corpus(own.tokenizer)
    for add_special_tokens in (True, False):
        expected = own.batch(texts, add_special_tokens=add_special_tokens)
        for text, ids in zip(texts, expected, strict=True):
            shown = repr(text if len(text) <= 60 else f"{text[:60]}…")
            try:
                got = native.encode(text, add_special_tokens=add_special_tokens).ids
            except Exception as error:  # as above
                return f"{with_version(FAST)} does not encode {shown} ({error})"
            if got != ids:
                return f"{with_version(FAST)} encodes {shown} differently"
    return ""


def corpus(tokenizer: Any) -> list[str]:
    """
    Return the texts on which two encoders of one ``tokenizers.Tokenizer`` have to agree.

    The longest is longer than any piece in which an encoder may cut its work.
    """
    rng = Random(0)
    samples = [sample(name) for name in sample_names()]
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    added = rng.sample(added, MAX_ADDED) if len(added) > MAX_ADDED else added
    around = [f"{token}a {token} b{token}{token}\n{token}\t{token[:-1]} {token.upper()} x{token[1:]}" for token in added]
    ids = rng.choices(range(max(1, tokenizer.get_vocab_size())), k=TOKENS)
    tokens = [tokenizer.decode([token_id], skip_special_tokens=False) for token_id in ids]
    everything = [*HARD_TEXTS, *samples, *around, *tokens]
    mixed = [first[-40:] + second[:40] for first, second in pairwise(rng.sample(everything, len(everything)))]
    return [*HARD_TEXTS, *samples, *around, *mixed, "".join(tokens), "\n".join([*samples, *HARD_TEXTS, *samples])]


def _is_installed() -> bool:
    try:
        import_module(FAST)
    except ImportError:
        return False
    return True


def check_encoder(encoder: str) -> None:
    """
    Refuse an encoder that there is not.

    Raises:
        OptionError: Naming those that there are.
    """
    check_choice("encoder", encoder, get_args(EncoderName))
