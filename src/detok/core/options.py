"""The options of decoding, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Self

from ..errors import OptionError

UnknownIds = Literal["skip", "error", "replace"]
ByteFallbackMode = Literal["exact", "eager"]

STRATEGY_MOVED = (
    "comparison strategies are in detok.inspection.strategies.open_stream(tokenizer, strategy), "
    "and for requests in detok.inspection.strategies.by_strategy(tokenizer, strategy)"
)
"""What the error for the keyword `strategy` says, which was an option here once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeOptions:
    """
    How ids become text. The names are those of vLLM and Hugging Face.

    Raises:
        OptionError: A value is not among those that are accepted.
    """

    OF: ClassVar[str] = "a stream"
    """What has these options, for errors."""

    skip_special_tokens: bool = True
    """Leave out the pieces that the vocabulary calls special."""

    spaces_between_special_tokens: bool | None = None
    """False: an added token right after another is written as it is, without the space a decoder puts in front (vLLM's rule).
    None and True: as the tokenizer's own library does. Without effect while special tokens are skipped. Where only the
    tokenizer's own code is known, both values segment the text at added tokens as vLLM does; None
    leaves it to that code."""

    clean_up_tokenization_spaces: bool | None = None
    """True or False: as told. None: as the tokenizer's configuration and the installed rules say."""

    unknown_ids: UnknownIds = "skip"
    """An id without a piece gives nothing ("skip", as Hugging Face does), raises ("error"), or gives U+FFFD ("replace")."""

    byte_fallback: ByteFallbackMode = "exact"
    """"exact": a byte run is held until it is decided, and equals the tokenizer's library. "eager": each character at once."""

    def __post_init__(self) -> None:
        check_choice("skip_special_tokens", self.skip_special_tokens, (True, False))
        check_choice("spaces_between_special_tokens", self.spaces_between_special_tokens, (None, True, False))
        check_choice("clean_up_tokenization_spaces", self.clean_up_tokenization_spaces, (None, True, False))
        check_choice("unknown_ids", self.unknown_ids, ("skip", "error", "replace"))
        check_choice("byte_fallback", self.byte_fallback, ("exact", "eager"))

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """
        Return the options of these keywords.

        Raises:
            OptionError: There is no such option, or its value is not accepted.
        """
        cls.check_names(options)
        return cls(**options)

    @classmethod
    def check_names(cls, options: Mapping[str, object]) -> None:
        """Raise `OptionError` if one of these keywords is no option. The error says what to do."""
        known = [field.name for field in fields(cls)]
        for option, value in options.items():
            if option == "strategy":
                raise OptionError(option=option, value=value, accepted=STRATEGY_MOVED)
            if option not in known:
                from difflib import get_close_matches  # only needed for the error

                close = get_close_matches(option, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
                raise OptionError(option=option, value=value, accepted=f"{cls.OF} has no such option; {hint}")

    def as_dict(self) -> dict[str, Any]:
        """The options as plain data, for a snapshot."""
        return asdict(self)


def check_choice(option: str, value: object, accepted: tuple[object, ...]) -> None:
    """Raise `OptionError` if a value is none of those that are accepted."""
    # By identity of type too: 1 is no True here, so that options that are equal are also written alike.
    if not any(value is one or (isinstance(one, str) and isinstance(value, str) and value == one) for one in accepted):
        raise OptionError(option=option, value=value, accepted=f"it is one of {', '.join(map(repr, accepted))}")


def check_at_least(option: str, value: object, least: int) -> None:
    """Raise `OptionError` if a value is no integer of at least this."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(option=option, value=value, accepted=f"it is an integer of at least {least}")
