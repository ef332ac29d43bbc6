"""`detok stream`: ids in, text out as it becomes certain."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import sleep
from typing import Annotated

import typer

from ..core.request.ends import FinishReason
from ..core.request.output import RequestOutput
from ..core.request.request import RequestDecoder
from ..data import sample, sample_names
from ..errors import OptionError, UnknownTokenId, UsageError
from ..inspection.strategies import by_strategy
from ..tokenizers import Tokenizer
from . import options as o
from . import request_options as r
from .ids import Item, Step, in_steps
from .stream_views import DeltasView, JsonView, TextView, View

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok stream                                    a sample, as a model writes
  detok stream llama3/ --ids "9906 1917"          ids from the command line
  my-engine | detok stream llama3/                ids from a pipe, live
  detok stream llama3/ --file ids.txt --step 4    ids from a file, in fours
  detok stream --ids "166 113" --show-deltas      what a step gives and holds
  detok stream --stop byte. --show-deltas         where a request would end
  detok stream --logprobs --json                  tokens, bytes and offsets
"""

# Tokens a second on a terminal, when nobody says otherwise: quick, but one can see it come.
SAMPLE_RATE = 150.0


def command(
    tokenizer: o.TokenizerSource = None,
    ids: o.Ids = None,
    file: o.File = None,
    sample_name: Annotated[
        str | None, typer.Option("--sample", metavar="NAME", help="Stream one of detok's sample texts.", show_default=False)
    ] = None,
    step: Annotated[int, typer.Option(min=1, help="How many ids make a step; a JSON line is a step of its own.")] = 1,
    rate: Annotated[
        float | None,
        typer.Option(min=0.0, help="Ids a second, 0 for no delay.", show_default="no delay, but for a sample on a terminal"),
    ] = None,
    show_deltas: Annotated[bool, typer.Option("--show-deltas", help="A line a step: the ids, the text, what is held.")] = False,
    as_json: o.AsJson = False,
    prompt_ids: o.PromptIds = None,
    skip_special_tokens: o.SkipSpecials = True,
    clean_up: o.CleanUp = None,
    unknown_ids: o.UnknownIds = o.UnknownIdsChoice.SKIP,
    byte_fallback: o.ByteFallback = o.ByteFallbackChoice.EXACT,
    no_spaces_between_special_tokens: o.NoSpacesBetweenSpecials = False,
    strategy: o.Strategy = None,
    stop: r.Stop = None,
    stop_regex: r.StopRegex = None,
    stop_token_ids: r.StopTokenIds = None,
    include_stop_str_in_output: r.IncludeStop = False,
    min_tokens: r.MinTokens = 0,
    max_tokens: r.MaxTokens = None,
    logprobs: r.Logprobs = False,
    segments: r.Segments = False,
    channels: r.Channels = None,
) -> None:
    """
    Write the text of token ids as it becomes certain.

    Ids come from --ids, from --file, or from a pipe, as soon as they arrive; without any, a sample text is streamed. Text that
    was written never changes. Whatever ends the stream, an error in the input too, what was still held is written then. At a stop
    the text ends, and no more is read. What is to be shown beside the text (--logprobs, --segments, --channels) makes a line a
    step of it, as --show-deltas does.
    """
    made = o.open_tokenizer(tokenizer)
    flags = o.decode_options(skip_special_tokens, clean_up, unknown_ids, byte_fallback, no_spaces_between_special_tokens)
    flags |= r.stops(stop, stop_regex, stop_token_ids, include_stop_str_in_output, min_tokens)
    flags |= {"max_tokens": max_tokens, "segments": segments, "channels": channels}
    request = by_strategy(made, o.value(strategy)).request(o.ids_of(prompt_ids, "--prompt-ids"), **flags)
    if sample_name and (ids or file):
        raise UsageError("give ids or --sample, not both")
    items = None if sample_name else o.given_ids(ids, file, reads_pipe=True, with_logprobs=logprobs)
    if items is None:
        items = _sample(made, sample_name or "mixed")
        rate = SAMPLE_RATE if rate is None and sys.stdout.isatty() else rate
    shows_more = show_deltas or logprobs or segments or channels is not None
    view: View = JsonView() if as_json else DeltasView() if shows_more else TextView()
    _show(view, request, in_steps(items, step), rate, logprobs=logprobs)


def _show(view: View, request: RequestDecoder, steps: Iterator[Step], rate: float | None, *, logprobs: bool) -> None:
    """Feed the steps to a request until it or they end, and show what comes."""
    end: RequestOutput | None = None
    reason: FinishReason = "error"
    try:
        for taken, values in steps:
            count = request.num_tokens
            try:
                output = request.feed(taken, (values or [None] * len(taken)) if logprobs else None)
            except UnknownTokenId as error:
                raise UnknownTokenId(error.token_id, position=count + (error.position or 0)) from None
            view.step(taken, output, request)
            if output.finished:
                end = output
                break
            if rate:
                sleep(len(taken) / rate)
        reason = "stop"
    except KeyboardInterrupt:
        reason = "abort"
        raise
    finally:
        rest = request.finish(reason)
        view.finish(rest, end or rest)


def _sample(tokenizer: Tokenizer, name: str) -> Iterator[Item]:
    if name not in sample_names():
        raise OptionError(option="--sample", value=name, accepted=f"it is one of {', '.join(sample_names())}")
    return iter(tokenizer.encode(sample(name), add_special_tokens=False))
