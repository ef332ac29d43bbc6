"""The options of decoding, checked once when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, Self, TypeVar

from ..errors import OptionError

PlainData = dict[str, Any]
"""What JSON and msgpack can hold."""

UnknownIds = Literal["skip", "error", "replace"]
ByteFallbackMode = Literal["exact", "eager"]

STRATEGY_MOVED = (
    "comparison strategies are in detok.inspection.strategies.open_stream(tokenizer, strategy), "
    "and for requests in detok.inspection.strategies.by_strategy(tokenizer, strategy)"
)
"""The error for the keyword `strategy`, which was an option here in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeOptions:
    """
    How ids become text. The names are those of vLLM's ``SamplingParams`` and of Hugging Face's ``decode``.

    Every combination of accepted values is valid. Equal options are interchangeable, and they can be a dict's key.

    Raises:
        OptionError: A value is not among those that are accepted; the error names the option and lists the values. Or there is no
            option of a name; the error suggests a similar one.
    """

    OF: ClassVar[str] = "a stream"
    """The object that has these options, as error messages name it."""

    skip_special_tokens: bool = True
    """True: the text has no special tokens, as the vocabulary marks them. False: it has their surface strings."""

    spaces_between_special_tokens: bool | None = None
    """
    False: an added token directly after another one gets no space in front, even where the decoder puts one (vLLM's rule).
    None and True: the tokenizer's own library decides. The option has no effect while special tokens are skipped.

    A tokenizer that is known only by its own code is different: True and False both decode the parts between added tokens one by
    one, as vLLM does, and None calls that code once for all ids.
    """

    clean_up_tokenization_spaces: bool | None = None
    """
    True, False: remove spaces before punctuation and contractions, or not. None: as the tokenizer's configuration says, by the
    rules of transformers 5.24, whatever version is installed.
    """

    unknown_ids: UnknownIds = "skip"
    """An id without a piece gives nothing ("skip", as in Hugging Face), U+FFFD ("replace"), or `UnknownTokenId` ("error")."""

    byte_fallback: ByteFallbackMode = "exact"
    """
    "exact": a run of byte tokens (``<0xE3>``) is held until it ends or is invalid, and the text equals the library's.
    "eager": each character comes out once it is complete, and only invalid bytes become U+FFFD.
    """

    def __new__(cls, *args: object, **options: object) -> Self:
        # The `__init__` that `dataclass` writes raises a TypeError without a hint for a name that it does not know.
        cls.check_names(options)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        check_choice("skip_special_tokens", self.skip_special_tokens, (True, False))
        check_choice("spaces_between_special_tokens", self.spaces_between_special_tokens, (None, True, False))
        check_choice("clean_up_tokenization_spaces", self.clean_up_tokenization_spaces, (None, True, False))
        check_choice("unknown_ids", self.unknown_ids, ("skip", "error", "replace"))
        check_choice("byte_fallback", self.byte_fallback, ("exact", "eager"))
        # Equal options are shared, and a snapshot writes them down. So a member of an enum becomes the plain value.
        for field in fields(self):
            value = getattr(self, field.name)
            if as_plain(value) is not value:
                object.__setattr__(self, field.name, as_plain(value))

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the options of a mapping from names to values. Errors as of the class."""
        return cls(**options)

    @classmethod
    def check_names(cls, options: Mapping[str, object]) -> None:
        """Raise `OptionError` if one of the names is unknown; the error suggests a similar name."""
        known = _names_of(cls)  # type: ignore[arg-type]  # mypy takes the hash of its objects for that of the class
        unknown = [option for option in options if option not in known]
        if not unknown:
            return
        option, value = unknown[0], options[unknown[0]]
        if option == "strategy":
            raise OptionError(option=option, value=value, accepted=STRATEGY_MOVED)
        from difflib import get_close_matches  # only needed for the error

        close = get_close_matches(option, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
        raise OptionError(option=option, value=value, accepted=f"{cls.OF} has no such option; {hint}")

    def as_dict(self) -> PlainData:
        """Return the options as plain data, for a snapshot."""
        return asdict(self)


@cache
def _names_of(kind: type[Any]) -> Mapping[str, None]:
    """The names of all options of a class, in their order."""
    return dict.fromkeys(field.name for field in fields(kind))


Value = TypeVar("Value")


def as_plain(value: Value) -> Value:
    """Return the plain str or int that an instance of a subclass (a member of an enum) equals; any other value as it is."""
    if isinstance(value, str) and type(value) is not str:
        return "".join((value,))  # type: ignore[return-value]
    if isinstance(value, int) and type(value) not in (int, bool):
        return int(value)  # type: ignore[return-value]
    return value


def check_choice(option: str, value: object, accepted: tuple[object, ...]) -> None:
    """Raise `OptionError` unless ``value`` is one of ``accepted``."""
    # By identity, since 1 == True: were 1 accepted for True, equal options could differ in their snapshots.
    if not any(value is one or (isinstance(one, str) and isinstance(value, str) and value == one) for one in accepted):
        raise OptionError(option=option, value=value, accepted=f"it is one of {', '.join(map(repr, accepted))}")


def check_at_least(option: str, value: object, least: int) -> None:
    """Raise `OptionError` unless ``value`` is an integer (no bool) of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(option=option, value=value, accepted=f"it is an integer of at least {least}")
