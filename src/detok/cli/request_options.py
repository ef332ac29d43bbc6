"""What a text ends at, and what is told beside it: the options of a request, for the commands that have them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import options as o

__all__ = [
    "Channels",
    "IncludeStop",
    "Logprobs",
    "MaxTokens",
    "MinTokens",
    "Segments",
    "Stop",
    "StopRegex",
    "StopTokenIds",
    "stops",
]

_PANEL = "Request"

Stop = Annotated[
    list[str] | None,
    typer.Option(
        "--stop",
        metavar="TEXT",
        help="End the text before this one; may be repeated.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
StopRegex = Annotated[
    list[str] | None,
    typer.Option(
        "--stop-regex",
        metavar="PATTERN",
        help="End it before what this pattern matches; may be repeated.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
StopTokenIds = Annotated[
    list[str] | None,
    typer.Option(
        "--stop-token-ids",
        metavar="IDS",
        help="End it before these ids; no other id ends a text here, an end of sequence neither.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
IncludeStop = Annotated[
    bool,
    typer.Option("--include-stop-str-in-output", help="End the text behind what stopped it, not before.", rich_help_panel=_PANEL),
]
MinTokens = Annotated[
    int, typer.Option(metavar="N", help="What would stop at or before this many tokens does not.", rich_help_panel=_PANEL)
]
MaxTokens = Annotated[
    int | None,
    typer.Option(metavar="N", help="End the text after this many tokens.", show_default=False, rich_help_panel=_PANEL),
]
Logprobs = Annotated[
    bool,
    typer.Option(
        "--logprobs",
        help="Show each token's part of the text, its bytes and offsets, and the logprob that its JSON line has.",
        rich_help_panel=_PANEL,
    ),
]
Segments = Annotated[
    bool, typer.Option("--segments", help="Show special tokens as events between the text.", rich_help_panel=_PANEL)
]
Channels = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Show the text by channel, in one of the formats that `detok channels` lists.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]


def stops(
    stop: list[str] | None, stop_regex: list[str] | None, stop_token_ids: list[str] | None, include: bool, min_tokens: int
) -> dict[str, Any]:
    """Return what a text ends at as keywords of ``tokenizer.request``. Errors as `options.ids_of` and `options.checked`."""
    return {
        "stop": [o.checked(text) for text in stop or ()],
        "stop_regex": [o.checked(pattern) for pattern in stop_regex or ()],
        "stop_token_ids": o.ids_of(stop_token_ids, "--stop-token-ids"),
        # Whose ids these are, an end of sequence among them, is for the one who gives them to say.
        "eos_token_ids": (),
        "include_stop_str_in_output": include,
        "min_tokens": min_tokens,
    }
