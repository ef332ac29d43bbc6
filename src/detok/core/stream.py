"""`TextStream`: ids in, one at a time; the text that is certain out, at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, SupportsIndex

from ..errors import StreamFinished, UnknownTokenId
from ..ids import as_id, as_ids
from .decoding.automaton import Node, Table
from .decoding.joiners import Held
from .snapshot import Envelope, pack

__all__ = ["TextStream"]


class TextStream:
    """
    The text of one stream of ids.

    If the stream is `exact`, the concatenation of all that `step`, `extend` and `finish` return is the tokenizer's own one-shot
    ``decode`` of all ids, for every list of ids and every split into steps. Streams are made by ``tokenizer.stream()``; they
    share the tokenizer's tables and hold nothing of their own but where they stand. One stream belongs to one thread at a time.
    """

    __slots__ = ("_node", "_whole")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._whole: Table = node.whole

    def step(self, token_id: SupportsIndex) -> str:
        """
        Take one id and return the text that is certain now, often "".

        Args:
            token_id: Any integer, numpy's too. One that the tokenizer does not have is treated as `unknown_ids` says.

        Raises:
            StreamFinished: After `finish`.
            TokenTypeError: It is a bool, a float or anything else that is no integer; the stream is as before.
            UnknownTokenId: With ``unknown_ids="error"``; the stream is as before.
        """
        try:
            # The usual way: nothing is held, and nothing will be. A negative id would count from the end of the list.
            if token_id >= 0:  # type: ignore[operator]  # what cannot be compared is refused below
                text = self._whole[token_id]
                if text is not None:
                    return text
        except (TypeError, ValueError, IndexError, RuntimeError):
            pass
        return self._advance(token_id)

    def _advance(self, token_id: SupportsIndex) -> str:
        node = self._node
        if type(token_id) is not int:
            token_id = as_id(token_id)
        try:
            text, after = node.moves[token_id]
        except KeyError:
            pass
        else:
            if after is not node:
                self._node = after
                self._whole = after.whole
            return text
        if node is node.automaton.finished:
            raise StreamFinished
        text, after = node.automaton.advance(node, token_id)
        self._move_to(after)
        return text

    def extend(self, token_ids: Iterable[SupportsIndex]) -> str:
        """
        Take several ids that came in one step (speculative decoding) and return the text that is certain now.

        All or nothing: if one id is refused, none was taken, and the error names its position.

        Args:
            token_ids: A list, tuple, numpy array or any iterable of integers.

        Raises:
            StreamFinished, TokenTypeError, UnknownTokenId: As `step`.
        """
        ids = as_ids(token_ids)
        node = self._node
        if node is node.automaton.finished:
            raise StreamFinished
        texts = []
        whole = self._whole
        try:
            for token_id in ids:
                # As `step`, but nothing here needs a type check any more.
                try:
                    text = whole[token_id] if token_id >= 0 else None
                except IndexError:
                    text = None
                if text is None:
                    text = self._advance(token_id)
                    whole = self._whole
                texts.append(text)
        except UnknownTokenId as error:
            self._move_to(node)
            raise UnknownTokenId(error.token_id, position=ids.index(error.token_id)) from None
        return "".join(texts)

    def finish(self) -> str:
        """Return all that is still held, and end the stream. A second call returns ""."""
        node = self._node
        if node is node.automaton.finished:
            return ""
        text = node.automaton.pipeline.finish(node.state)
        self._move_to(node.automaton.finished)
        return text

    @property
    def exact(self) -> bool:
        """
        Whether the text is proven equal to the one-shot decode, at every step as early as it can be.

        False for windows of ids and for the strategies that are there for comparison: then nothing is promised but that `finish`
        loses nothing that is held.
        """
        return self._node.automaton.exact

    @property
    def finished(self) -> bool:
        """Whether `finish` was called."""
        return self._node is self._node.automaton.finished

    @property
    def held(self) -> str | bytes:
        """What is held, for display: bytes if a character or a byte run is open, else text; "" if nothing is."""
        return self._held()[0]

    @property
    def held_because(self) -> str:
        """Why something is held, in a few words; "" if nothing is."""
        return self._held()[1]

    def _held(self) -> Held:
        return ("", "") if self.finished else self._node.automaton.pipeline.held(self._node.state)

    def snapshot(self) -> dict[str, Any]:
        """
        Return where the stream stands, as small plain data that survives JSON and msgpack.

        ``tokenizer.restore(snapshot)`` goes on exactly from there, in another process too.
        """
        automaton = self._node.automaton
        state = None if self.finished else self._node.state
        return pack(state, Envelope.of("stream", automaton.pipeline.options.as_dict(), automaton.fingerprint()))

    def copy(self) -> TextStream:
        """Return a stream that stands where this one does, and goes its own way from here (`n` choices of one prompt)."""
        return TextStream(self._node)

    def __copy__(self) -> TextStream:
        return self.copy()

    def __deepcopy__(self, memo: object) -> TextStream:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream is not pickled: send stream.snapshot(), and go on with tokenizer.restore() over there")

    def _move_to(self, node: Node) -> None:
        self._node = node
        self._whole = node.whole
