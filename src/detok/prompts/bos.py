"""Two BOS tokens at the beginning of a prompt: nobody sees them, and the model answers worse."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from typing import Literal, get_args

from ..core.options import check_choice
from ..errors import DoubleBos

__all__ = ["DoubleBosMode", "DoubleBosWarning", "check_double_bos", "one_bos"]

DoubleBosMode = Literal["fix", "warn", "error", "allow"]
"""
What becomes of two BOS. "fix" takes one away, with one warning for each tokenizer; "warn" leaves them, with a warning each time;
"error" raises a `DoubleBos`; "allow" leaves them.
"""


class DoubleBosWarning(UserWarning):
    """A prompt began with two BOS tokens."""


def check_double_bos(mode: str) -> None:
    """
    Refuse a mode that there is not.

    Raises:
        OptionError: Naming those that there are.
    """
    check_choice("double_bos", mode, get_args(DoubleBosMode))


def one_bos(
    ids: list[int], bos_ids: Collection[int], mode: DoubleBosMode, *, text_of: Callable[[int], str], is_first: Callable[[], bool]
) -> list[int]:
    """
    Return ids that begin with one BOS at most, if the mode says so.

    Args:
        ids: A whole prompt.
        bos_ids: What may stand at a beginning, once.
        mode: See `DoubleBosMode`.
        text_of: The text of an id, for the message.
        is_first: Whether this tokenizer meets two for the first time.

    Raises:
        DoubleBos: There are two, and the mode is "error".
    """
    if mode == "allow" or len(ids) < 2 or ids[0] != ids[1] or ids[0] not in bos_ids:
        return ids
    bos = ids[0]
    if mode == "error":
        raise DoubleBos(bos, text=text_of(bos))
    count = next((place for place, token_id in enumerate(ids) if token_id != bos), len(ids))
    if mode == "warn" or is_first():
        # Five frames up is who called the tokenizer: one_bos, Prompts._with_one_bos, Prompts.encode, Tokenizer.encode_prompt.
        what = f"one of them is kept, here and from now on without a word; {_ALLOW}" if mode == "fix" else "they stay"
        found = f"the prompt begins with {text_of(bos)!r} (id {bos}) {count} times, from text, template or encoder"
        warnings.warn(f"{found}; {what}", DoubleBosWarning, stacklevel=5)
    return ids[count - 1 :] if mode == "fix" else ids


_ALLOW = 'double_bos="allow" keeps all'
