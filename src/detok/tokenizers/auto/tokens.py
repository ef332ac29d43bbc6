"""
Which tokens a class of transformers names, and which of them it adds to its ``tokenizers.Tokenizer``.

As the ``__init__`` of ``PreTrainedTokenizerBase`` and ``TokenizersBackend`` of transformers 5.24 do it. A token that is named
and does not exist gets the next id; one that exists in the vocabulary alone becomes an added token, special and skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .settings import BY_NAME, EXTRA, OLD_EXTRA, STANDARD

__all__ = ["Named", "add_tokens", "name_tokens"]


@dataclass(slots=True)
class Named:
    """The special tokens of a class, by name and without one."""

    by_name: dict[str, Any] = field(default_factory=dict)
    """Strings or ``AddedToken``, in the order in which they are added; only those that are."""

    extra: list[Any] = field(default_factory=list)

    def text(self, name: str) -> str | None:
        """The text of a named token, if there is one."""
        token = self.by_name.get(name)
        return None if token is None else str(token)

    def all(self) -> list[Any]:
        """All tokens, those with a name first."""
        return [*self.by_name.values(), *self.extra]

    def texts(self) -> list[str]:
        """Their texts, each once, in the order of transformers' ``all_special_tokens``."""
        standard = [name for name in STANDARD if name in self.by_name]
        others = [name for name in self.by_name if name not in standard]
        return list(dict.fromkeys([*(str(self.by_name[name]) for name in (*standard, *others)), *map(str, self.extra)]))


def name_tokens(values: Mapping[str, Any]) -> Named:
    """
    Return the tokens that the keywords of a class name.

    A value that is no token (``add_bos_token: true``) names none. Without ``extra_special_tokens`` those under their older name,
    ``additional_special_tokens``, count.
    """
    extra = values[EXTRA] if EXTRA in values else values.get(OLD_EXTRA)
    found: dict[str, Any] = {**dict.fromkeys(STANDARD), **{name: values[name] for name in STANDARD if name in values}}
    if isinstance(extra, Mapping):
        found |= extra
    # What is no token takes no place in the order either.
    found |= {
        name: token for name, token in values.items() if name.endswith("_token") and name not in STANDARD and _is_token(token)
    }
    found |= values.get(BY_NAME) or {}
    listed = extra if isinstance(extra, list) else []
    return Named(
        {name: token for name, token in found.items() if _is_token(token)}, [token for token in listed if _is_token(token)]
    )


def add_tokens(tokenizer: Any, declared: Mapping[int, Any], named: Named) -> None:
    """
    Add what the files list, by their ids, and what is named and not there yet.

    Args:
        tokenizer: A ``tokenizers.Tokenizer``, which is changed.
        declared: The added tokens of the files. Each is added again, though it is there: its flags then count.
        named: A listed token that has a name becomes special, whatever its flags say.
    """
    from tokenizers import AddedToken

    tokens = [token for _, token in sorted(declared.items())]
    present = {token.content for token in tokenizer.get_added_tokens_decoder().values()} | {str(token) for token in tokens}
    tokens += _absent(named.by_name.values(), present, tokens)
    tokens += _absent(named.extra, present, tokens)
    names = {str(token) for token in named.by_name.values()}
    made = []
    for token in tokens:
        if isinstance(token, str):
            token = AddedToken(token, special=True)
        elif not token.special and str(token) in names:
            token.special = True
        made.append(token)
    if made:
        tokenizer.add_tokens(made)


def _absent(tokens: Any, present: set[str], before: list[Any]) -> list[Any]:
    found: list[Any] = []
    for token in tokens:
        if str(token) not in present and token not in before and token not in found:
            found.append(token)
    return found


def _is_token(value: Any) -> bool:
    return isinstance(value, str) or (value is not None and type(value).__name__ == "AddedToken")
