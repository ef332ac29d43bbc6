"""The judge: what the tokenizer's own library says a list of ids is, or that it failed to say anything."""

from __future__ import annotations

from collections.abc import Sequence

from ..tokenizers import Tokenizer

__all__ = ["judge"]


def judge(tokenizer: Tokenizer, ids: Sequence[int], *, skip_special_tokens: bool) -> str | None:
    """
    Return the text of ``ids`` by the tokenizer's own library; None if the library failed.

    """
    try:
        return tokenizer.library.decode(ids, skip_special_tokens=skip_special_tokens)
    except Exception:
        return None
    except BaseException as error:
        # A panic in Rust (Strip on a token that is too short, say) arrives as an exception that is no `Exception`.
        if type(error).__name__ != "PanicException":
            raise
        return None
