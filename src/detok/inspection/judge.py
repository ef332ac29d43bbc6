"""The judge: what the tokenizer's own library says a list of ids is, or that it failed to say anything."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.cleanup import TRANSFORMERS_CLEANUP, clean_up
from ..tokenizers import Tokenizer

__all__ = ["judge"]


def judge(tokenizer: Tokenizer, ids: Sequence[int], *, skip_special_tokens: bool) -> str | None:
    """
    Return the text of ``ids`` by the tokenizer's own library; None if the library failed.

    Ids that do not fit into 32 bits have no piece, and the library refuses to be asked for them: it is asked without them. Where
    the tokenizer's configuration turns clean-up on, it is applied as transformers does, to the whole text.
    """
    known = [token_id for token_id in ids if 0 <= token_id < 1 << 32]
    try:
        text = tokenizer.library.decode(known, skip_special_tokens=skip_special_tokens)
    except Exception:
        return None
    except BaseException as error:
        # A panic in Rust (Strip on a token that is too short, say) arrives as an exception that is no `Exception`.
        if type(error).__name__ != "PanicException":
            raise
        return None
    return clean_up(text, TRANSFORMERS_CLEANUP) if tokenizer.cleans_up else text
