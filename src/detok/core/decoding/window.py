"""
The window algorithms: streams over a tokenizer of which nothing is known but its one-shot decode.

A window of ids is decoded again at every step. Its first ids, up to the offset ``read``, are *context*: their text is out. What
the whole window decodes to beyond the length of what the context decodes to is the new text. If it is empty, or ends in U+FFFD
as an incomplete character does, it is *held*; otherwise it is *committed*: given out, and the ids that gave it are the next
context.

The algorithm is that of text-generation-inference, which vLLM (``detokenize_incrementally``, offsets ``prefix`` and ``read``)
and SGLang (``DetokenizerManager``, offsets ``surr`` and ``read``, and a third one, ``sent``) took over. Here it is written anew
from what they do, with two differences, both where they lose text or time: `finish` gives out what is held, and a hold has a
limit.

It is a guess, not a proof. The length of the context's text says where the new text begins only while the context decodes to the
same text inside the window; U+FFFD says that a character is incomplete only where it stands for nothing else. ``detok check
--strategy`` counts how often that goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol, SupportsIndex

from ...errors import UnknownTokenId
from ...ids import as_id, as_sequence
from ..options import DecodeOptions
from ..utf8 import REPLACEMENT
from ..vocabulary import Vocabulary
from .automaton import Decoding, IdleTexts, Node
from .joiners import NOTHING, Held

__all__ = [
    "Decode",
    "PrintableWindow",
    "Unremembered",
    "Window",
    "WindowState",
    "WindowSteps",
    "find_printable",
    "join_segments",
]

Decode = Callable[[Sequence[int]], str]
"""A one-shot decode of ids that the vocabulary has, with the options already decided."""

LOOKBACK = 5
"""So many ids of a prompt are the first context (vLLM's INITIAL_INCREMENTAL_DETOKENIZATION_OFFSET, SGLang's of the same name)."""

PROMPT_TAIL = LOOKBACK + 2
"""So many are looked at, since some of them may be specials that are skipped (vLLM's convert_prompt_ids_to_tokens)."""

MAX_HELD = 64
"""
So many ids are held at most; then they are committed whatever they decode to.

The originals have no limit, so that a run of U+FFFD costs the square of its length. A character has at most four tokens, one a
byte.
"""

INCOMPLETE = "the window ends in U+FFFD"


class WindowState(NamedTuple):
    """Where a window stands."""

    ids: tuple[int, ...] = ()
    """The context, and behind it the ids whose text is held."""

    read: int = 0
    """How many of them are context."""

    context: str = ""
    """What the context decodes to."""

    sent: int = 0
    """So many characters of the held text are out (`PrintableWindow`)."""


class WindowSteps(Decoding, Protocol):
    """Steps that know how to begin behind a prompt."""

    def behind(self, prompt_ids: Sequence[SupportsIndex], /) -> Any:
        """Return the state behind a prompt, which may be empty."""
        ...


class Window:
    """
    vLLM's window of two offsets. A step decodes the window once, and once more its new context if it commits.

    Skipped specials and ids without a piece never get into the window.

    Args:
        vocabulary: Says which ids there are, and which of them are special.
        decode: The tokenizer's own one-shot decode.
        options: Of them, `skip_special_tokens` and `unknown_ids` are heeded here; the others are the decode's.
    """

    def __init__(self, vocabulary: Vocabulary, decode: Decode, options: DecodeOptions) -> None:
        self.options = options
        self._vocabulary = vocabulary
        self._decode = decode

    def feed(self, state: WindowState, token_id: int) -> tuple[str, WindowState]:
        """
        Take one id and return the text that comes out now, and the next state.

        Raises:
            UnknownTokenId: The id has no piece, and the options ask to be told.
        """
        if not self._enters(token_id):
            if self.options.unknown_ids == "replace" and self._vocabulary.piece(token_id) is None:
                return self.finish(state) + REPLACEMENT, self._commit(state)
            return "", state
        state = state._replace(ids=(*state.ids, token_id))
        new = self._new_text(state)
        if (not new or new.endswith(REPLACEMENT)) and len(state.ids) - state.read <= MAX_HELD:
            return self._hold(state, new)
        return new[state.sent :], self._commit(state)

    def finish(self, state: WindowState) -> str:
        """Return what is held, whatever it ends in. The originals drop it (vLLM), or have it sent by their caller (SGLang)."""
        return self._new_text(state)[state.sent :]

    def held(self, state: WindowState) -> Held:
        """Return what is held, and why."""
        text = self.finish(state)
        return (text, INCOMPLETE) if text else NOTHING

    def behind(self, prompt_ids: Sequence[SupportsIndex]) -> WindowState:
        """Return the state behind a prompt: its last few ids are context. Without a prompt there is none."""
        tail = range(max(0, len(prompt_ids) - PROMPT_TAIL), len(prompt_ids))
        ids = [as_id(prompt_ids[position], where="prompt_ids", position=position) for position in tail]
        return self._state([token_id for token_id in ids if self._enters(token_id)][-LOOKBACK:])

    def _enters(self, token_id: int) -> bool:
        """Whether an id gets into the window."""
        piece = self._vocabulary.piece(token_id)
        if piece is None and self.options.unknown_ids == "error":
            raise UnknownTokenId(token_id)
        return piece is not None and not (piece.special and self.options.skip_special_tokens)

    def _new_text(self, state: WindowState) -> str:
        if len(state.ids) == state.read:
            return ""
        return self._decode(state.ids)[len(state.context) :]

    def _hold(self, state: WindowState, new: str) -> tuple[str, WindowState]:
        return "", state

    def _commit(self, state: WindowState) -> WindowState:
        """Make context of the ids whose text is out; where there are none, nothing changes."""
        return self._state(state.ids[state.read :]) if len(state.ids) > state.read else state

    def _state(self, ids: Sequence[int]) -> WindowState:
        return WindowState(tuple(ids), len(ids), self._decode(ids)) if ids else WindowState()


class PrintableWindow(Window):
    """
    SGLang's window of three offsets: during a hold, what can hardly change any more is sent already.

    How much was sent is remembered as a number of characters, as in the original: if the held text comes out different after
    all, what was sent stays wrong, and if it comes out shorter, some of it is sent twice.
    """

    def _hold(self, state: WindowState, new: str) -> tuple[str, WindowState]:
        text = find_printable(new)
        return text[state.sent :], state._replace(sent=len(text))


def find_printable(text: str) -> str:
    """
    Return the beginning of a held text that may be shown, by the rules of text-generation-inference.

    All of it if it ends a line or in a Chinese character; all but the last character if that stands behind a Chinese one;
    otherwise all up to the last space, so that no word is shown before its end.

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


def join_segments(tokens: Iterable[str], *, added: Collection[str], to_string: Callable[[list[str]], str], spaces: bool) -> str:
    """
    Return the text of tokens, segmented at added tokens as vLLM does it for Python tokenizers, and transformers did up to 4.57.

    An added token stands for itself; what stands between two of them becomes text together.

    Args:
        tokens: Surface strings.
        added: Those of the added vocabulary.
        to_string: The tokenizer's own ``convert_tokens_to_string``.
        spaces: Whether the segments are joined with a space, which is vLLM's `spaces_between_special_tokens`.

    >>> join_segments(["a", "b", "<x>", "<y>", "c"], added={"<x>", "<y>"}, to_string="".join, spaces=True)
    'ab <x> <y> c'
    """
    segments: list[str] = []
    for is_added, group in groupby(tokens, added.__contains__):
        between = list(group)
        segments += between if is_added else [to_string(between)]
    return (" " if spaces else "").join(segments)


class Unremembered:
    """
    The machine for steps whose states hardly ever come again: it remembers no moves, and asks each time.

    Args:
        pipeline: What answers.
        fingerprint: Gives the fingerprint of the decoder that it is of; asked for when a snapshot is taken.
    """

    exact = False
    idle: Node | None = None

    def __init__(self, pipeline: WindowSteps, fingerprint: Callable[[], str]) -> None:
        self.pipeline = pipeline
        self.fingerprint = fingerprint
        self._blank: IdleTexts = []
        self.finished = self.node(None)

    def advance(self, node: Node, token_id: int) -> tuple[str, Node]:
        """Return the text that comes out after ``token_id``, and the next node. Errors as those of the steps."""
        text, state = self.pipeline.feed(node.state, token_id)
        return text, self.node(state)

    def after_prompt(self, prompt_ids: Iterable[SupportsIndex]) -> Node:
        """Return the node behind a prompt, of which the steps read as much as they need."""
        return self.node(self.pipeline.behind(as_sequence(prompt_ids, where="prompt_ids")))

    def node(self, state: Any) -> Node:
        """Return a node of a state."""
        return Node(self, state, self._blank, remembers=False)
