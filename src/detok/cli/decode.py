"""`detok decode`: the text of all ids at once."""

from __future__ import annotations

import sys

from ..errors import UsageError
from . import options as o
from .output import write, write_json

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """\b
Examples:
  detok decode --ids "39 318 737"                      with detok's tokenizer
  detok decode llama3/ --file ids.txt                  ids from a file
  detok encode llama3/ "Hi!" | detok decode llama3/    there and back
"""


def command(
    tokenizer: o.TokenizerSource = None,
    ids: o.Ids = None,
    file: o.File = None,
    as_json: o.AsJson = False,
    skip_special_tokens: o.SkipSpecials = True,
    clean_up: o.CleanUp = None,
    unknown_ids: o.UnknownIds = o.UnknownIdsChoice.SKIP,
    byte_fallback: o.ByteFallback = o.ByteFallbackChoice.EXACT,
    no_spaces_between_special_tokens: o.NoSpacesBetweenSpecials = False,
) -> None:
    """
    Write the text of token ids, all at once.

    Ids come from --ids, from --file, or from a pipe.
    """
    items = o.given_ids(ids, file, reads_pipe=True)
    if items is None:
        raise UsageError('there are no ids; give --ids "1 2 3", --file PATH, or a pipe')
    made = o.open_tokenizer(tokenizer)
    taken = o.flat(items)
    flags = o.decode_options(skip_special_tokens, clean_up, unknown_ids, byte_fallback, no_spaces_between_special_tokens)
    text = made.decode(taken, **flags)
    if as_json:
        write_json({"ids": taken, "text": text})
    else:
        write(f"{text}\n" if sys.stdout.isatty() and not text.endswith("\n") else text)
