"""`open_stream`: a stream by the strategy that is named, with the strategy's own settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, SupportsIndex, get_args

from ...core.decoder import Decoder
from ...core.decoding.automaton import Decoding, StreamMachine
from ...core.options import DecodeOptions, check_choice
from ...core.stream import TextStream
from ...core.vocabulary import Piece
from ...errors import OptionError
from ...tokenizers.opaque import OpaqueTokenizer
from ...tokenizers.tokenizer import Tokenizer, TokenizersLibrary
from ...tokenizers.window import Decode, Window
from .library_stream import LibraryStream
from .printable import PrintableWindow

__all__ = ["COMPARED", "STRATEGIES", "ByStrategy", "Strategy", "by_strategy", "open_stream", "own_strategy"]

Strategy = Literal["exact", "window", "window+printable", "decodestream"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
COMPARED = STRATEGIES[1:]
"""Those that promise nothing."""

_WINDOW = ("lookback", "prompt_tail")
_SETTINGS: Mapping[Strategy, Sequence[str]] = {
    "exact": (),
    "window": (*_WINDOW, "third_offset"),
    "window+printable": _WINDOW,
    "decodestream": ("recovers",),
}
"""The settings that each strategy has."""


def open_stream(
    tokenizer: Decoder,
    strategy: Strategy,
    prompt_ids: Iterable[SupportsIndex] = (),
    *,
    lookback: int | None = None,
    prompt_tail: int | None = None,
    third_offset: bool | None = None,
    recovers: bool | None = None,
    **options: Any,
) -> TextStream:
    """
    Open a stream by a strategy. It has `step`, `extend`, `finish`, `held`, `exact`, `finished` and so on, as every stream has.

    Args:
        tokenizer: Whose ids they are.
        strategy: "exact", "window", "window+printable" or "decodestream".
        prompt_ids: The ids before the stream: context, whose text does not come out.
        lookback, prompt_tail, third_offset, recovers: See `by_strategy`.
        options: As ``tokenizer.stream`` takes them.

    Raises:
        OptionError: There is no such strategy, this tokenizer does not have it, or it does not have this setting; or as
            ``tokenizer.stream``.
        TokenTypeError, UnknownTokenId: As ``tokenizer.stream``.
    """
    decoder = by_strategy(
        tokenizer, strategy, lookback=lookback, prompt_tail=prompt_tail, third_offset=third_offset, recovers=recovers
    )
    return decoder.stream(prompt_ids, **options)


def by_strategy(
    tokenizer: Decoder,
    strategy: Strategy | None,
    *,
    lookback: int | None = None,
    prompt_tail: int | None = None,
    third_offset: bool | None = None,
    recovers: bool | None = None,
) -> Decoder:
    """
    Return a decoder with the ids of a tokenizer whose streams, requests and snapshots go by a strategy.

    Args:
        tokenizer: Whose ids they are.
        strategy: None: the tokenizer's own; then it is the tokenizer that is returned.
        lookback: Of the windows: maximum ids of a prompt that are context; 5 in vLLM and SGLang, and here by default.
        prompt_tail: Of the windows: ids at the end of a prompt that are looked at for them, since specials may be skipped. By
            default two more than `lookback`, as in vLLM; SGLang looks at no more than `lookback`.
        third_offset: Of "window": whether a part of what is held is sent, as SGLang does; "window+printable" by another name.
        recovers: Of "decodestream": whether a stream that fails with "Invalid prefix encountered" is opened again without
            context, as vLLM's fast path does (the default). If not, the error of the library comes out.

    Raises:
        OptionError: There is no such strategy, this tokenizer does not have it, or it does not have this setting.
    """
    check_choice("strategy", strategy, (None, *STRATEGIES))
    given = {"lookback": lookback, "prompt_tail": prompt_tail, "third_offset": third_offset, "recovers": recovers}
    settings = {name: value for name, value in given.items() if value is not None}
    for name, value in settings.items():
        has = () if strategy is None else _SETTINGS[strategy]
        if name not in has:
            accepted = f"the strategy {strategy!r} has {', '.join(has) or 'no settings'}"
            raise OptionError(option=name, value=value, accepted=accepted)
    for name in ("third_offset", "recovers"):
        check_choice(name, given[name], (None, True, False))
    if strategy is None:
        return tokenizer
    if strategy == "exact":
        if own_strategy(tokenizer) != "exact":
            why = "this tokenizer is known only by its own decode; take 'window' or 'window+printable', or leave it open"
            raise OptionError(option="strategy", value="exact", accepted=why)
        return tokenizer
    decoder = ByStrategy(tokenizer, strategy, settings)
    decoder.machine(DecodeOptions())  # what this tokenizer does not have is refused here
    return decoder


def own_strategy(tokenizer: Decoder) -> Strategy:
    """Return the strategy of a tokenizer's own streams: "exact", or "window" where only its decode is known."""
    return "exact" if tokenizer.stream().exact else "window"


class ByStrategy(Decoder):
    """
    The ids of a tokenizer, streamed by another strategy. Made by `by_strategy`.

    Args:
        tokenizer: Whose vocabulary, bytes and ends these are.
        strategy: Not "exact".
        settings: Those that differ from the strategy's own.
    """

    def __init__(self, tokenizer: Decoder, strategy: Strategy, settings: Mapping[str, Any]) -> None:
        super().__init__(tokenizer.vocabulary, tokenizer.rules, cleans_up=tokenizer.cleans_up)
        self.tokenizer = tokenizer
        self.strategy = strategy
        self.settings = dict(settings)

    def machine(self, options: DecodeOptions) -> StreamMachine:
        """Return a machine without a memory over the strategy's steps. Raises `OptionError` if the tokenizer has none."""
        return StreamMachine(self._steps(options), lambda: self.fingerprint)

    def _steps(self, options: DecodeOptions) -> Decoding:
        if self.strategy == "decodestream":
            backend = _backend(self.tokenizer)
            return LibraryStream(backend, self.vocabulary, options, **self.settings)
        settings = dict(self.settings)
        is_printable = settings.pop("third_offset", self.strategy == "window+printable")
        window = Window(self.vocabulary, _one_shot(self.tokenizer, options), options, **settings)
        return PrintableWindow(window) if is_printable else window

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The ids that end an answer, as the tokenizer has them."""
        return self.tokenizer.eos_token_ids

    def _bytes_of(self, token_id: int, piece: Piece) -> bytes:
        return self.tokenizer.token_bytes(token_id)

    def _facts(self) -> Iterable[object]:
        # So that a snapshot goes on by the strategy and the settings that made it, or not at all.
        yield self.tokenizer.fingerprint, self.strategy, sorted(self.settings.items())


def _backend(tokenizer: Decoder) -> Any:
    """Return the ``tokenizers.Tokenizer`` behind a tokenizer; or raise `OptionError`."""
    if isinstance(tokenizer, Tokenizer) and isinstance(tokenizer.library, TokenizersLibrary):
        return tokenizer.library.backend
    why = '"decodestream" drives a tokenizers.Tokenizer, and this tokenizer is none; take "exact" or "window"'
    raise OptionError(option="strategy", value="decodestream", accepted=why)


def _one_shot(tokenizer: Decoder, options: DecodeOptions) -> Decode:
    """Return the one-shot decode that a window calls, with the options decided."""
    if isinstance(tokenizer, OpaqueTokenizer):
        return tokenizer.one_shot(options)
    start = tokenizer.stream(**options.as_dict())

    def decode(ids: Sequence[int]) -> str:
        stream = start.copy()
        return stream.extend(ids) + stream.finish()

    return decode
