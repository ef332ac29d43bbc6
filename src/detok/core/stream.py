"""`TextStream`: ids in, one at a time; the text that is certain out, at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, SupportsIndex

from ..errors import StreamFinished, UnknownTokenId
from ..ids import as_id, as_ids
from .decoding.automaton import IdleTexts, Node
from .decoding.joiners import Held
from .snapshot import Envelope, pack


class TextStream:
    """
    The text of one stream of ids.

    If the stream is `exact`, the concatenation of all that `step`, `extend` and `finish` return is the tokenizer's own one-shot
    ``decode`` of all ids, for every list of ids and every split into steps. Streams are made by ``tokenizer.stream()``; they
    share the tokenizer's tables and hold nothing of their own but where they stand. One stream belongs to one thread at a time.

    >>> import detok
    >>> tokenizer = detok.load(detok.EMBEDDED)
    >>> stream = tokenizer.stream()
    >>> [stream.step(token_id) for token_id in tokenizer.encode("Hi 🦜")], stream.finish()
    (['H', 'i', '', '', '', ' 🦜'], '')
    """

    __slots__ = ("_node", "_texts")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._texts: IdleTexts = node.texts

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
                text = self._texts[token_id]
                if text is not None:
                    return text
        except (TypeError, ValueError, IndexError, RuntimeError):
            pass
        if type(token_id) is int:
            move = self._node.moves.get(token_id)
            if move is not None:
                text, node = move
                self._node = node
                self._texts = node.texts
                return text
        return self._advance(as_id(token_id))

    def _advance(self, token_id: int) -> str:
        """Take an id that is not remembered here."""
        node = self._node
        if node is node.machine.finished:
            raise StreamFinished
        text, after = node.machine.advance(node, token_id)
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
        if type(token_ids) is list and len(token_ids) == 1 and type(token_ids[0]) is int and token_ids[0] > 1:
            # One id, as nearly every step of nearly every engine brings.
            token_id: int = token_ids[0]
            try:
                text = self._texts[token_id]
            except IndexError:
                text = None
            if text is not None:
                return text
            move = self._node.moves.get(token_id)
            if move is not None:
                text, self._node = move
                self._texts = self._node.texts
                return text
        ids = as_ids(token_ids)
        node = before = self._node
        machine = node.machine
        if node is machine.finished:
            raise StreamFinished
        texts: list[str] = []
        listed, moves = node.texts, node.moves
        for token_id in ids:
            # As `step`, but nothing here needs a type check any more.
            try:
                text = listed[token_id] if token_id >= 0 else None
            except IndexError:
                text = None
            if text is None:
                move = moves.get(token_id)
                if move is None:
                    try:
                        move = machine.advance(node, token_id)
                    except UnknownTokenId:
                        raise UnknownTokenId(token_id, position=len(texts)) from None
                text, node = move
                listed, moves = node.texts, node.moves
            texts.append(text)
        if node is not before:
            self._move_to(node)
        return "".join(texts)

    def finish(self) -> str:
        """Return all that is still held, and end the stream. A second call returns ""."""
        node = self._node
        if node is node.machine.finished:
            return ""
        text = node.machine.pipeline.finish(node.state)
        self._move_to(node.machine.finished)
        return text

    @property
    def exact(self) -> bool:
        """
        Whether the text is proven equal to the one-shot decode, at every step as early as it can be.

        False for tokenizers that are known by their decode alone: then nothing is promised but that `finish` loses nothing.
        """
        return self._node.machine.exact

    @property
    def finished(self) -> bool:
        """Whether `finish` was called."""
        return self._node is self._node.machine.finished

    @property
    def held(self) -> str | bytes:
        """What is held, for display: bytes if a character or a byte run is open, else text; "" if nothing is."""
        return self._held()[0]

    @property
    def held_because(self) -> str:
        """Why something is held, in a few words; "" if nothing is."""
        return self._held()[1]

    def _held(self) -> Held:
        return ("", "") if self.finished else self._node.machine.pipeline.held(self._node.state)

    def snapshot(self) -> dict[str, Any]:
        """
        Return where the stream stands, as small plain data that survives JSON and msgpack.

        ``tokenizer.restore(snapshot)`` goes on exactly from there, in another process too.
        """
        machine = self._node.machine
        state = None if self.finished else self._node.state
        return pack(state, Envelope.of("stream", machine.pipeline.options.as_dict(), machine.fingerprint()))

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
        self._texts = node.texts
