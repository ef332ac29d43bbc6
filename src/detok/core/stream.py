"""`TextStream`: token ids in, one or several at a time; the text that is certain out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, SupportsIndex

from ..errors import StreamFinished, UnknownTokenId
from ..ids import as_id, as_ids
from .decoding.automaton import IdleTexts, Node
from .decoding.joiners import Held
from .options import PlainData
from .snapshot import Envelope, pack


class TextStream:
    """
    One stream of token ids, as text. ``tokenizer.stream()`` makes it.

    The texts that `step`, `extend` and `finish` return, joined, are the tokenizer's own one-shot ``decode`` of all ids: for every
    list of ids and every split into steps, if the stream is `exact`. No text is ever taken back, and each character comes out at
    the first step after which no later id can change it; docs/laws.md lists the text that may be held, and for how long.

    Call `finish` when the ids end, for whatever reason: held text comes out only then. A stream shares the tokenizer's tables and
    has only a reference to its state, so it costs 48 bytes. One stream belongs to one thread at a time.

    >>> import detok
    >>> tokenizer = detok.load(detok.EMBEDDED)
    >>> stream = tokenizer.stream()
    >>> [stream.step(token_id) for token_id in tokenizer.encode("Hi 🦜")], stream.finish()
    (['H', 'i', ' ', '🦜'], '')
    """

    __slots__ = ("_node", "_texts")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._texts: IdleTexts = node.texts

    def step(self, token_id: SupportsIndex) -> str:
        """
        Take one id, and return the text that is certain now, often "".

        Args:
            token_id: Any integer of Python or numpy. The option `unknown_ids` decides about ids that the tokenizer does not have.

        Raises:
            StreamFinished: `finish` was called.
            TokenTypeError: ``token_id`` is a bool, a float or anything else that is not an integer. The stream is unchanged.
            UnknownTokenId: The tokenizer has no such id (with ``unknown_ids="error"``). The stream is unchanged.
        """
        try:
            # The usual case: nothing is held, and nothing will be. A negative index would count from the end of the list.
            if token_id >= 0:  # type: ignore[operator]  # a type that has no order is refused below
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
        else:
            token_id = as_id(token_id)
        node = self._node
        text, self._node = node.machine.advance(node, token_id)
        self._texts = self._node.texts
        return text

    def extend(self, token_ids: Iterable[SupportsIndex]) -> str:
        """
        Take several ids (of one step with speculative decoding, say), and return the text that is certain now.

        All or nothing: if one id is refused, no id is taken, and the error names the position of the bad one.

        Args:
            token_ids: A list, tuple, numpy array or other iterable of integers. It may be empty.

        Raises:
            StreamFinished, TokenTypeError, UnknownTokenId: As `step`.
        """
        if type(token_ids) is list and len(token_ids) == 1:
            # One id, the usual step of an engine: as in `step`.
            token_id = token_ids[0]
            try:
                text = self._texts[token_id] if token_id >= 0 else None
            except (TypeError, ValueError, IndexError, RuntimeError):
                text = None
            if text is not None:
                return text
            if type(token_id) is int:
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
            # As in `step`, but `as_ids` has checked all types.
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
        """End the stream, and return all text that is still held. A second call returns ""."""
        node = self._node
        if node is node.machine.finished:
            return ""
        text = node.machine.pipeline.finish(node.state)
        self._move_to(node.machine.finished)
        return text

    @property
    def exact(self) -> bool:
        """
        Whether the text is proven equal to the one-shot decode.

        False for a tokenizer that is known only by its own code: its streams use a window of ids, as vLLM does (see
        `detok.tokenizers.window`). That is a guess, which loses no text at the end but may differ before.
        """
        return self._node.machine.exact

    @property
    def finished(self) -> bool:
        """Whether `finish` was called."""
        return self._node is self._node.machine.finished

    @property
    def held(self) -> str | bytes:
        """The text that is held, for display; bytes if a character or a byte run is open; "" if nothing is held."""
        return self._held()[0]

    @property
    def held_because(self) -> str:
        """The reason why something is held, such as "incomplete character"; "" if nothing is held."""
        return self._held()[1]

    def _held(self) -> Held:
        return ("", "") if self.finished else self._node.machine.pipeline.held(self._node.state)

    def snapshot(self) -> PlainData:
        """
        Return the state of the stream as a small dict of plain data, which JSON and msgpack can carry.

        ``tokenizer.restore(snapshot)`` makes a stream that continues exactly from there, in another process too.
        """
        machine = self._node.machine
        state = None if self.finished else self._node.state
        return pack(state, Envelope.of("stream", machine.pipeline.options.as_dict(), machine.fingerprint()))

    def copy(self) -> TextStream:
        """Return an independent stream with the same state, for several choices of one prompt. It costs O(1)."""
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
