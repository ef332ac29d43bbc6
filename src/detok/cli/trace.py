"""`detok trace`: the picture that explains the problem, token by token."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UsageError
from ..inspection import TraceRow, summary, trace
from ..tokenizers import Tokenizer
from . import options as o
from . import request_options as r
from .console import PipeConsole
from .output import plain_ending, plain_held, write_json
from .trace_picture import picture

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok trace                                          a short text, but hard
  detok trace llama3/ --text "naïve 🦜"                a text of yours
  detok trace llama3/ --ids "62904 102 102470"         ids of yours
  detok trace mistral/ --text "Où ?" --svg out.svg     as a picture
  detok trace --strategy window                        where windows are late
  detok trace --stop 한국                              what may become a stop
"""

SAMPLE = "Zoë 👩‍🚀 한국 ဗမာ"
PICTURE_WIDTH = 112


def command(
    tokenizer: o.TokenizerSource = None,
    ids: o.Ids = None,
    file: o.File = None,
    text: Annotated[
        str | None, typer.Option("--text", "-x", help="Encode this text and trace its ids.", show_default=False)
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write the picture to a file, too.", show_default=False)
    ] = None,
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
) -> None:
    """
    Show token by token what comes out, and why not earlier.

    Beside it stands what a naive decode would have sent, which takes each id alone. ✗ marks where that goes wrong: a broken
    character, a lost space. With --strategy it is another way to stream that stands there, and the marks are where it is late, or
    goes wrong. With --stop and its kin, what may become a stop is held, too, and the trace ends where the text does.
    """
    items = o.given_ids(ids, file, reads_pipe=False)
    if items is not None and text is not None:
        raise UsageError("give ids or --text, not both")
    made = o.open_tokenizer(tokenizer)
    taken = made.encode(SAMPLE if text is None else o.checked(text)) if items is None else o.flat(items)
    flags = o.decode_options(skip_special_tokens, clean_up, unknown_ids, byte_fallback, no_spaces_between_special_tokens)
    prompt = o.ids_of(prompt_ids, "--prompt-ids")
    asks = stop or stop_regex or stop_token_ids or include_stop_str_in_output or min_tokens
    stops = r.stops(stop, stop_regex, stop_token_ids, include_stop_str_in_output, min_tokens) if asks else None
    rows = trace(made, taken, prompt_ids=prompt, strategy=o.value(strategy), stops=stops, **flags)
    name = "the embedded tokenizer" if tokenizer is None else Path(tokenizer).resolve().name
    if svg is not None:
        console = PipeConsole(record=True, width=PICTURE_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
        console.print(picture(rows, name, strategy, width=PICTURE_WIDTH))
        # Without the web font that rich names: a picture asks no host for anything, and falls back to the reader's own.
        svg.write_text(re.sub(r"@font-face\s*\{.*?\}", "", console.export_svg(title="detok trace"), flags=re.DOTALL))
    if as_json:
        write_json(_plain(made, rows, strategy))
    else:
        # A pipe has no width: the picture gets what it needs.
        shown_on = PipeConsole(width=None if sys.stdout.isatty() else PICTURE_WIDTH)
        shown_on.print(picture(rows, name, strategy, width=shown_on.width))


def _plain(tokenizer: Tokenizer, rows: Sequence[TraceRow], strategy: str | None) -> dict[str, Any]:
    whole = summary(rows)
    compared = {} if strategy is None else {"strategy": strategy, "compared": whole.compared, "late": whole.late}
    ended = {} if whole.end is None else plain_ending(whole.end)
    return {
        "tokenizer": tokenizer.description,
        "right": whole.right,
        "naive": whole.naive,
        "faults": whole.faults,
        **compared,
        **ended,
        "rows": [
            {
                "position": row.position,
                "id": row.token_id,
                "piece": row.piece,
                "bytes": row.bytes.hex(),
                "special": row.special,
                "added": row.added,
                "unknown": row.unknown,
                "held": plain_held(row.held),
                "held_because": row.held_because,
                "text": row.text,
                "naive": row.naive,
                "fault": row.fault,
                **({} if strategy is None else {"compared": row.compared, "deviation": row.deviation}),
            }
            for row in rows
        ],
    }
