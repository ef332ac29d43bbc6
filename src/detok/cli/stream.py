"""`detok stream`: ids in, text out as it becomes certain."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import sleep
from typing import Annotated, Protocol

import typer

from ..core.stream import TextStream
from ..data import sample, sample_names
from ..errors import OptionError, UnknownTokenId, UsageError
from ..tokenizers import Tokenizer
from . import options as o
from .ids import Item, in_steps
from .output import plain_held, write, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok stream                                    a sample, as a model writes
  detok stream llama3/ --ids "9906 1917"          ids from the command line
  my-engine | detok stream llama3/                ids from a pipe, live
  detok stream llama3/ --file ids.txt --step 4    ids from a file, in fours
  detok stream --ids "166 113" --show-deltas      what a step gives and holds
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
) -> None:
    """
    Write the text of token ids as it becomes certain.

    Ids come from --ids, from --file, or from a pipe, as soon as they arrive; without any, a sample text is streamed. Text that
    was written never changes. Whatever ends the stream, an error in the input too, what was still held is written then.
    """
    made = o.open_tokenizer(tokenizer)
    flags = o.decode_options(skip_special_tokens, clean_up, unknown_ids, byte_fallback, no_spaces_between_special_tokens)
    stream = made.stream(o.ids_of(prompt_ids, "--prompt-ids"), strategy=o.value(strategy), **flags)
    if sample_name and (ids or file):
        raise UsageError("give ids or --sample, not both")
    items = None if sample_name else o.given_ids(ids, file, reads_pipe=True)
    if items is None:
        items = _sample(made, sample_name or "mixed")
        rate = SAMPLE_RATE if rate is None and sys.stdout.isatty() else rate
    view: _View = _JsonView() if as_json else _DeltasView() if show_deltas else _TextView()
    count = 0
    try:
        for taken in in_steps(items, step):
            view.step(taken, stream.extend(taken), stream)
            count += len(taken)
            if rate:
                sleep(len(taken) / rate)
    except UnknownTokenId as error:
        raise UnknownTokenId(error.token_id, position=count + (error.position or 0)) from None
    finally:
        view.finish(stream.finish())


def _sample(tokenizer: Tokenizer, name: str) -> Iterator[Item]:
    if name not in sample_names():
        raise OptionError(option="--sample", value=name, accepted=f"it is one of {', '.join(sample_names())}")
    return iter(tokenizer.encode(sample(name), add_special_tokens=False))


class _View(Protocol):
    """How steps are shown."""

    def step(self, ids: list[int], text: str, stream: TextStream) -> None: ...

    def finish(self, text: str) -> None: ...


class _TextView:
    """The text and nothing else; on a terminal, the prompt that follows begins a new line."""

    def __init__(self) -> None:
        self._ends_line = True

    def step(self, ids: list[int], text: str, stream: TextStream) -> None:
        if text:
            write(text)
            self._ends_line = text.endswith("\n")

    def finish(self, text: str) -> None:
        ends_line = text.endswith("\n") if text else self._ends_line
        write(text if ends_line or not sys.stdout.isatty() else f"{text}\n")


class _DeltasView:
    """A line a step, for people."""

    def step(self, ids: list[int], text: str, stream: TextStream) -> None:
        held = f"   holds {stream.held!r}, {stream.held_because}" if stream.held_because else ""
        write(f"{' '.join(map(str, ids)):>8}  {text!r}{held}\n")

    def finish(self, text: str) -> None:
        write(f"{'finish':>8}  {text!r}\n")


class _JsonView:
    """A line of JSON a step, for machines; the lines can be streamed again."""

    def step(self, ids: list[int], text: str, stream: TextStream) -> None:
        write_json({"ids": ids, "text": text, "held": plain_held(stream.held), "held_because": stream.held_because})

    def finish(self, text: str) -> None:
        write_json({"finish": True, "ids": [], "text": text, "held": "", "held_because": ""})
