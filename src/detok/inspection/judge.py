"""The judge: what the tokenizer's own library says a list of ids is, or that it failed to say anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..tokenizers import Tokenizer
from ..tokenizers.reading import is_panic
from ..tokenizers.tokenizer import Library

__all__ = ["decoded", "is_panic", "judge", "outcome_of"]

Result = TypeVar("Result")


def judge(tokenizer: Tokenizer, ids: Sequence[int], *, skip_special_tokens: bool) -> str | None:
    """Return the text of ``ids`` by the tokenizer's own library; None if the library failed."""
    return decoded(tokenizer.library, ids, skip_special_tokens=skip_special_tokens)


def decoded(library: Library, ids: Sequence[int], *, skip_special_tokens: bool) -> str | None:
    """Return the text of ``ids`` by a library; None if it failed."""
    try:
        return library.decode(ids, skip_special_tokens=skip_special_tokens)
    except Exception:
        return None
    except BaseException as error:
        if not is_panic(error):
            raise
        return None


def outcome_of(call: Callable[[], Result]) -> Result | str:
    """Return what a call gives; if it raises, the error in words stands for that."""
    try:
        return call()
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    except BaseException as error:
        if not is_panic(error):
            raise
        return "raised PanicException"
