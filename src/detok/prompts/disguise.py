"""
Text that must not become a special token, on its way through a template.

Where a user's text spells a special token, the first character of that spelling is put in a mask: a character that nothing else
has. A template treats it as it treats any letter, lengths and places stay, and what it puts out is still known to be the user's.
Spellings that only arise when texts are joined are masked too: a beginning that stands at the end of a text, and an end that
would fit to what the template writes in front of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from .marks import unused_characters

__all__ = ["Controls", "Disguise", "pattern_of", "written_by"]


def written_by(template_texts: Collection[str], added: Collection[str]) -> frozenset[str]:
    """
    Return the added tokens that a template writes by itself: it uses them as special ones, whatever the vocabulary says.

    White space is none of them, though some vocabularies have line breaks as added tokens.
    """
    written = "\0".join(template_texts)
    return frozenset(text for text in added if text in written and not text.isspace())


def pattern_of(texts: Iterable[str]) -> str:
    """
    Return a regular expression for the longest of several texts. It does not try one after another: there may be thousands.

    >>> pattern_of(["<s>", "</s>", "<s>!"])
    '<(?:/s>|s>(?:!)?)'
    """
    tree: dict[str, Any] = {}
    for text in texts:
        node = tree
        for character in text:
            node = node.setdefault(character, {})
        node[""] = {}
    return _alternatives(tree) if tree else "(?!)"


def _alternatives(node: dict[str, Any]) -> str:
    ends = "" in node
    branches = []
    for character in sorted(node):
        if character:
            run, below = character, node[character]
            while len(below) == 1 and "" not in below:
                (following, below) = next(iter(below.items()))
                run += following
            branches.append(re.escape(run) + (_alternatives(below) if set(below) != {""} else ""))
    if ends:
        return f"(?:{'|'.join(branches)})?"
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


_FIELD = re.compile(r"%(?:\([^)]*\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|\{[^{}]*\}")
"""Of a text with which values are formatted."""


def _folded(text: str) -> str:
    """Without capital letters, and as long as before."""
    folded = text.upper().lower()
    if len(folded) == len(text):
        return folded
    return "".join(lower if len(lower := one.upper().lower()) == 1 else one for one in text)


def _escaped(mask: str) -> tuple[str, ...]:
    return repr(mask)[1:-1], json.dumps(mask)[1:-1], quote(mask), f"&#{ord(mask)};", f"&#x{ord(mask):x};"


class Spellings:
    """
    Where in a text a control text is spelled, or might come to be when texts are joined.

    Args:
        control: The control texts.
        template_texts: What the template writes by itself.
        ignores_case: Whether what differs in capital letters spells one too.
    """

    def __init__(self, control: frozenset[str], template_texts: Collection[str], *, ignores_case: bool = False) -> None:
        self._fold = _folded if ignores_case else str
        control, template_texts = frozenset(map(self._fold, control)), [self._fold(text) for text in template_texts]
        self._longest = max(map(len, control), default=0)
        self._prefixes = {text[:size] for text in control for size in range(1, len(text))}
        starts = {text[0] for text in control}
        self._start = re.compile(f"[{''.join(map(re.escape, sorted(starts)))}]" if starts else "(?!)")
        self._whole = re.compile(f"(?={pattern_of(control)})")
        # What is left of control texts whose beginning the template writes.
        begun = self._begun(template_texts)
        rests = {one[len(begin) :] for begin in begun for one in control if one.startswith(begin) and one != begin}
        self._rest = re.compile(pattern_of(rests))
        self._of_rests = {rest[:size] for rest in rests for size in range(1, len(rest))}
        firsts = starts | {rest[0] for rest in rests}
        self.firsts = firsts | {one.upper() for one in firsts if ignores_case and len(one.upper()) == 1}

    def __call__(self, text: str) -> set[int]:
        """Return the places of characters without which nothing is spelled."""
        text = self._fold(text)
        places = self._places_of_starts(text) if self._start.search(text) else set()
        bare = text.strip()
        if bare in self._of_rests or self._rest.match(bare):
            places.add(len(text) - len(text.lstrip()))
        return places

    def _places_of_starts(self, text: str) -> set[int]:
        places = {match.start() for match in self._whole.finditer(text)}
        for shown in {text, text.rstrip()}:  # as it is, and as a template may trim it
            places.update(len(shown) - len(tail) for tail in self._open_tails(shown))
        return places

    def _begun(self, template_texts: Collection[str]) -> set[str]:
        """The beginnings of control texts that the template may write, in one text or in several, one behind another."""
        texts = {text for text in template_texts if 0 < len(text) < self._longest}
        begun: set[str] = set()
        new = {tail for text in template_texts for tail in self._open_tails(text)}
        while new:
            begun |= new
            new = {begin + text for begin in new for text in texts} & self._prefixes - begun
        return begun

    def _open_tails(self, text: str) -> list[str]:
        """The beginnings of control texts with which a text ends."""
        first = max(0, len(text) - self._longest)
        tails = (text[match.start() :] for match in self._start.finditer(text, first))
        return [tail for tail in tails if tail in self._prefixes]


class Controls:
    """
    What is not to be spelled in the chats of one tokenizer and one template. Made once for both.

    Args:
        added: The tokenizer's added tokens with their ids.
        special_ids: Those of them that are special.
        template_texts: What the template writes by itself.
        ignores_case: Whether it may write small letters for capital ones, or the other way round.
    """

    def __init__(
        self,
        added: Mapping[str, int],
        special_ids: Collection[int],
        template_texts: Collection[str],
        *,
        ignores_case: bool = False,
    ) -> None:
        special = frozenset(text for text, token_id in added.items() if token_id in special_ids)
        self.texts = special | written_by(template_texts, added)
        # What stands before a field of a format is written in front of a text, too.
        written = {*template_texts, *(piece for text in template_texts for piece in _FIELD.split(text))}
        self.of_users = Spellings(self.texts, written, ignores_case=ignores_case)
        # Added tokens that are not special, such as ``<think>``, an assistant wrote as tokens.
        self.of_assistants = Spellings(special, written, ignores_case=ignores_case)
        self.is_read: dict[str, bool] = {}
        """Whether the tokenizer reads each of them in the middle of a word, as far as that was tried."""

        self.firsts = sorted(self.of_users.firsts | self.of_assistants.firsts)
        self.characters = "".join({*"".join(template_texts), *"".join(self.texts)})


class Disguise:
    """
    Masks for one chat.

    Args:
        controls: What is not to be spelled.
        values: Everything that will be rendered; no mask is a character of these.
    """

    def __init__(self, controls: Controls, values: Collection[Any]) -> None:
        self.controls = controls
        masks = unused_characters([controls.characters, *values], len(controls.firsts))
        self._masks = dict(zip(controls.firsts, masks, strict=True))
        self._unmasked = str.maketrans(dict(zip(masks, controls.firsts, strict=True)))
        self._used: set[str] = set()
        self.masked = re.compile(f"[{''.join(masks)}]" if masks else "(?!)")

    def hide_message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of a message that is safe. Its role is one that was looked at, and that the template has to know."""
        spellings = self.controls.of_assistants if message["role"] == "assistant" else self.controls.of_users
        return {**self.hide(message, spellings), "role": message["role"]}

    def hide(self, value: Any, spellings: Spellings | None = None) -> Any:
        """Return a copy of plain data in which no text and no key spells a control text, alone or joined to another."""
        spellings = spellings or self.controls.of_users
        if isinstance(value, str):
            return self._hidden(value, spellings)
        if isinstance(value, Mapping):
            return {self._hidden(key, spellings): self.hide(one, spellings) for key, one in value.items()}
        if isinstance(value, list):
            return [self.hide(one, spellings) for one in value]
        return value

    def show(self, text: str) -> str:
        """Return a text without masks."""
        return text.translate(self._unmasked)

    def is_escaped(self, text: str) -> bool:
        """Whether a mask stands in a text as something else than itself: in HTML's, an address's, JSON's or Python's words."""
        folded = text.casefold() if self._used else ""
        return any(form.casefold() in folded for mask in self._used for form in _escaped(mask))

    def _hidden(self, text: str, spellings: Spellings) -> str:
        places = spellings(text)
        if not places:
            return text
        characters = list(text)
        for place in places:
            mask = self._masks.get(characters[place])
            if (
                mask is not None
            ):  # there is none for the rare letters that are capitals of nothing in Latin, such as the Kelvin sign
                self._used.add(mask)
                characters[place] = mask
        return "".join(characters)
