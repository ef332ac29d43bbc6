"""
SGLang's window: the two offsets of `core.decoding.window`, and a third one, ``sent``.

While ids are held, what can hardly change any more is sent already: whole words, whole lines, Chinese characters
(``find_printable_text``). How much was sent is remembered as a number of characters, as in the original: if the held text comes
out different after all, what was sent stays wrong, and if it comes out shorter, some of it is sent twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

from ...core.decoding.joiners import NOTHING, Held
from ...tokenizers.window import INCOMPLETE, Window, WindowState

__all__ = ["PrintableState", "PrintableWindow", "find_printable"]

PrintableState = tuple[WindowState, int]
"""Where the window is, and the number of characters of the held text that are out."""


class PrintableWindow:
    """
    A window that gives out a part of what it holds.

    Args:
        window: The window of two offsets.
    """

    def __init__(self, window: Window) -> None:
        self.options = window.options
        self._window = window

    def feed(self, state: PrintableState, token_id: int) -> tuple[str, PrintableState]:
        """
        Take one id and return the text that comes out now, and the next state.

        Raises:
            UnknownTokenId: The id has no piece, and the options ask to be told.
        """
        window, sent = state
        text, after = self._window.feed(window, token_id)
        if after is window:
            # The id did not get into the window. With unknown_ids="replace" there is a text, but then nothing was held.
            return text, state
        if len(after.ids) == after.read:
            return text[sent:], (after, 0)
        shown = find_printable(self._window.finish(after))
        return shown[sent:], (after, len(shown))

    def finish(self, state: PrintableState) -> str:
        """Return what is held and was not sent."""
        window, sent = state
        return self._window.finish(window)[sent:]

    def held(self, state: PrintableState) -> Held:
        """Return what is held and was not sent, and why."""
        text = self.finish(state)
        return (text, INCOMPLETE) if text else NOTHING

    def after_prompt(self, prompt_ids: Sequence[SupportsIndex]) -> PrintableState:
        """Return the state after a prompt, of which nothing is held. Errors as `Window.behind`."""
        return self._window.after_prompt(prompt_ids), 0


def find_printable(text: str) -> str:
    """
    Return the beginning of a held text that may be shown, by the rules of text-generation-inference.

    All of it if it ends a line or in a Chinese character; all but the last character if that comes after a Chinese one; otherwise
    all up to the last space, so that no word is shown before its end.

    >>> [find_printable(text) for text in ("two wor", "line\\n", "漢字", "漢字x", "漢字xy")]
    ['two ', 'line\\n', '漢字', '漢字', '']
    """
    if text.endswith("\n") or _is_chinese(text[-1:]):
        return text
    if _is_chinese(text[-2:-1]):
        return text[:-1]
    return text[: text.rfind(" ") + 1]


def _is_chinese(character: str) -> bool:
    return bool(character) and any(first <= ord(character) <= last for first, last in _CHINESE)


# The blocks of CJK ideographs, as BERT's tokenizer lists them. Kana, Hangul and later extensions are not among them.
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
