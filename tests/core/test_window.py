"""The windows do what they are described to do, right or wrong, and lose nothing that they hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detok
from detok.core.decoding.window import MAX_HELD, PrintableWindow, Unremembered, Window, WindowState, find_printable, join_segments
from detok.core.options import DecodeOptions
from detok.core.stream import TextStream
from detok.core.vocabulary import Piece
from tests.support.handmade import BYTE_LEVEL, byte_level_tokens, handmade, make
from tests.support.laws import cuts, split

EMBEDDED = detok.load(detok.EMBEDDED)
SPACED = handmade("ByteLevel")[1]
REPLACEMENT = "\ufffd"


class Made:
    """Byte strings as a vocabulary, the specials after them; and a one-shot decode that counts what it is asked."""

    def __init__(self, *tokens: bytes, specials: int = 0) -> None:
        self._pieces = [Piece(token.decode(errors="backslashreplace"), data=token) for token in tokens]
        self._pieces += [Piece(f"<{number}>", special=True, added=True, data=b"<>") for number in range(specials)]
        self.decodes = self.decoded = 0

    def piece(self, token_id: int) -> Piece | None:
        """The piece behind an id."""
        return self._pieces[token_id] if 0 <= token_id < len(self._pieces) else None

    def ids(self) -> Iterable[int]:
        """All ids."""
        return range(len(self._pieces))

    def added_ids(self) -> Iterable[int]:
        """The specials."""
        return [token_id for token_id in self.ids() if self._pieces[token_id].added]

    def decode(self, ids: Sequence[int]) -> str:
        """Join bytes, and decode them lossily."""
        self.decodes += 1
        self.decoded += len(ids)
        return b"".join(self._pieces[token_id].data or b"" for token_id in ids).decode(errors="replace")

    def stream(self, prompt: Sequence[int] = (), kind: type[Window] = Window, **options: object) -> TextStream:
        """A stream by windows."""
        window = kind(self, self.decode, DecodeOptions(**options))  # type: ignore[arg-type]  # whatever a test gives
        return TextStream(Unremembered(window, lambda: "made").behind(prompt))


def steps(stream: TextStream, ids: Iterable[int]) -> list[str]:
    """What each step gives, and `finish`."""
    return [*map(stream.step, ids), stream.finish()]


def state(stream: TextStream) -> WindowState:
    """Where a stream stands."""
    found = stream._node.state
    assert isinstance(found, WindowState)
    return found


class TwoOffsets:
    """vLLM's algorithm, word for word: all ids are kept, and two offsets into them; nothing is remembered."""

    def __init__(self, decode: Callable[[Sequence[int]], str], prompt: Sequence[int]) -> None:
        self._decode = decode
        self._ids = list(prompt[-7:])
        self._prefix, self._read = max(0, len(self._ids) - 5), len(self._ids)

    def step(self, token_id: int) -> str:
        """Take one id."""
        self._ids.append(token_id)
        prefix_text, new_text = self._decode(self._ids[self._prefix : self._read]), self._decode(self._ids[self._prefix :])
        if len(new_text) <= len(prefix_text) or new_text.endswith(REPLACEMENT):
            return ""
        self._prefix, self._read = self._read, len(self._ids)
        return new_text[len(prefix_text) :]

    def finish(self) -> str:
        """What is held, which vLLM drops."""
        prefix_text, new_text = self._decode(self._ids[self._prefix : self._read]), self._decode(self._ids[self._prefix :])
        return new_text[len(prefix_text) :]


class ThreeOffsets:
    """SGLang's algorithm, word for word: the text is kept, and how much of it was sent."""

    def __init__(self, decode: Callable[[Sequence[int]], str], prompt: Sequence[int]) -> None:
        self._decode = decode
        self._ids = list(prompt[-5:])
        self._surrounding, self._read, self._sent = 0, len(self._ids), 0
        self._text = ""

    def step(self, token_id: int | None) -> str:
        """Take one id, or None at the end."""
        self._ids += [] if token_id is None else [token_id]
        context, window = self._decode(self._ids[self._surrounding : self._read]), self._decode(self._ids[self._surrounding :])
        new_text = window[len(context) :]
        if token_id is not None:
            if len(new_text) > 0 and not new_text.endswith(REPLACEMENT):
                self._text += new_text
                self._surrounding, self._read = self._read, len(self._ids)
                new_text = ""
            else:
                new_text = find_printable(new_text)
        output = self._text + new_text
        sent, self._sent = self._sent, len(output)
        return output[sent:]

    def finish(self) -> str:
        """All that is left."""
        return self.step(None)


def test_window_follows_vllm_step_by_step() -> None:
    """A trace by hand: an emoji over two tokens is held until it is complete, and the offsets move only at a commit."""
    made = Made(b"Hel", b"lo", b" \xf0\x9f", b"\x98\x80", b"!")
    stream = made.stream()
    seen = [(stream.step(token_id), len(state(stream).ids), state(stream).read) for token_id in range(5)]
    # (text out, ids in the window, read offset): the window is the ids of the last commit and those that are held.
    assert seen == [("Hel", 1, 1), ("lo", 1, 1), ("", 2, 1), (" 😀", 2, 2), ("!", 1, 1)]
    assert stream.finish() == ""


def test_window_behind_a_prompt_takes_five_of_its_last_seven_ids() -> None:
    """Specials in the tail are skipped; what stands before the tail is never looked at."""
    made = Made(*(bytes([0x61 + number]) for number in range(9)), specials=2)
    prompt = [0, 1, 2, 3, 9, 4, 5, 10, 6]
    assert state(made.stream(prompt)).ids == (2, 3, 4, 5, 6)
    assert state(made.stream(prompt[:-1], skip_special_tokens=False)).ids == (3, 9, 4, 5, 10)
    assert state(made.stream([7, *[9] * 7])).ids == ()
    assert steps(made.stream(prompt), [7, 8]) == ["h", "i", ""]
    with pytest.raises(detok.TokenTypeError) as error:
        made.stream([0.5, *range(6), "x"])  # type: ignore[list-item]  # wrong on purpose; the first is not read
    assert error.value.position == 7


def test_window_loses_a_character_that_straddles_the_border() -> None:
    """A known failure: the context ends in U+FFFD, which is as long as the character that it becomes."""
    made = Made(b"a\xc3", b"\xa9", b"b")
    assert steps(made.stream([0]), [1, 2]) == ["", "b", ""]
    assert steps(made.stream(), [0, 1, 2]) == ["", "aé", "b", ""]


def test_window_finish_gives_what_is_held() -> None:
    """Where vLLM drops it."""
    made = Made(b"a", b"\xf0\x9f\x98")
    stream = made.stream()
    assert [stream.step(0), stream.step(1)] == ["a", ""]
    assert (stream.held, stream.held_because, stream.finished, stream.exact) == (
        REPLACEMENT,
        "the window ends in U+FFFD",
        False,
        False,
    )
    assert stream.finish() == REPLACEMENT
    assert (stream.finish(), stream.held, stream.finished, stream.exact) == ("", "", True, False)
    with pytest.raises(detok.StreamFinished):
        stream.step(0)


def test_window_stalls_at_literal_replacement_characters() -> None:
    """A known failure: a token that is U+FFFD is held as if it were incomplete. With rules it comes out at once."""
    made = Made("\ufffd".encode(), b"a")
    assert steps(made.stream(), [0, 0, 1, 0]) == ["", "", "\ufffd\ufffda", "", "\ufffd"]


def test_window_holds_bytes_that_can_become_nothing() -> None:
    """A known failure: invalid is not incomplete, but a window cannot tell. With rules each U+FFFD comes at once."""
    made = Made(b"\xff", b"a")
    assert steps(made.stream(), [0, 0, 0, 1]) == ["", "", "", "\ufffd\ufffd\ufffda", ""]


def test_window_is_wrong_where_text_gets_shorter() -> None:
    """A known failure: clean-up takes away a space that is out, and what comes instead counts as out too."""
    space, dot = (next(i for i in SPACED.ids if SPACED.token_bytes(i) == data) for data in (b" ", b"."))
    ids = [dot, space, dot, dot]
    assert SPACED.decode(ids, clean_up_tokenization_spaces=True) == "..."
    stream = SPACED.stream(strategy="window", clean_up_tokenization_spaces=True)
    assert steps(stream, ids) == [".", " ", "", ".", ""]


def test_window_heeds_the_options_of_the_decode() -> None:
    """Clean-up within a window is right; `decode` with a strategy is the text of its stream."""
    tokenizer = detok.load(make(BYTE_LEVEL, byte_level_tokens(b"a", b" .")))
    stream = tokenizer.stream(strategy="window", clean_up_tokenization_spaces=True)
    assert steps(stream, [0, 1, 0]) == ["a", ".", "a", ""]
    assert tokenizer.decode([0, 1, 0], clean_up_tokenization_spaces=True, strategy="window") == "a.a"
    assert tokenizer.decode([0, 1, 0], strategy="window") == "a .a"


def test_window_with_a_long_hold_commits() -> None:
    """So many ids are held and no more; what the originals do not have."""
    made = Made(b"\xff", b"a")
    ids = [0] * (MAX_HELD + 1)
    given_ = steps(made.stream(), ids)
    assert given_ == [""] * MAX_HELD + [REPLACEMENT * (MAX_HELD + 1), ""]
    assert "".join(steps(made.stream(), [0] * 500 + [1])) == REPLACEMENT * 500 + "a"


def test_window_leaves_out_specials_and_unknown_ids() -> None:
    """They do not get into the window; unknown ids give nothing, an error or U+FFFD, as the options say."""
    made = Made(b"a", b"\xc3", b"\xa9", specials=1)
    assert steps(made.stream(), [0, 1, 3, 99, -1, 2]) == ["a", "", "", "", "", "é", ""]
    assert steps(made.stream(skip_special_tokens=False), [0, 3]) == ["a", "<>", ""]
    assert steps(made.stream(unknown_ids="replace"), [0, 99, 1, 99, 0]) == ["a", REPLACEMENT, "", REPLACEMENT * 2, "a", ""]
    strict = made.stream(unknown_ids="error")
    with pytest.raises(detok.UnknownTokenId) as error:
        strict.extend([0, 1, 99])
    assert error.value.position == 2
    assert steps(strict, [1, 2]) == ["", "é", ""]
    with pytest.raises(detok.UnknownTokenId):
        made.stream([99], unknown_ids="error")


def test_printable_window_follows_sglang_step_by_step() -> None:
    """Whole words and Chinese characters are sent during a hold, and not again when it ends."""
    made = Made(b"one two\xf0", b"\x9f\x98\x80", "漢字".encode() + b"\xe3", b"\x81\x82", b"x\xc3")
    assert steps(made.stream(kind=PrintableWindow), range(5)) == ["one ", "two😀", "漢字", "あ", "", f"x{REPLACEMENT}"]
    assert steps(made.stream(), range(5)) == ["", "one two😀", "", "漢字あ", "", f"x{REPLACEMENT}"]


def test_printable_window_repeats_what_turns_out_different() -> None:
    """A known failure: what was sent is a number of characters, and it shrinks when the rules change their mind."""
    made = Made("漢".encode() + b"\xe3", b"\x81\x82\xe3")
    assert steps(made.stream(kind=PrintableWindow), [0, 1]) == ["漢", "", f"漢あ{REPLACEMENT}"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("a\n", "a\n"),
        ("word", ""),
        ("two words", "two "),
        ("漢", "漢"),
        ("a漢", "a漢"),
        ("漢a", "漢"),
        ("漢a ", "漢a "),
        ("漢ab", ""),
        ("漢 ab", "漢 "),
        ("\U00020000", "\U00020000"),
        ("あ", ""),
        ("한", ""),
    ],
)
def test_printable_is_lines_words_and_chinese_characters(text: str, shown: str) -> None:
    """Kana and Hangul are no Chinese characters here, as in the original."""
    assert find_printable(text) == shown


@pytest.mark.parametrize(("spaces", "text"), [(True, "ab <x> <y> c <x>"), (False, "ab<x><y>c<x>")])
def test_segments_are_joined_at_added_tokens(spaces: bool, text: str) -> None:
    """Each added token stands for itself; what is between becomes text together."""
    seen: list[list[str]] = []

    def to_string(tokens: list[str]) -> str:
        seen.append(tokens)
        return "".join(tokens)

    tokens = ["a", "b", "<x>", "<y>", "c", "<x>"]
    assert join_segments(tokens, added={"<x>", "<y>"}, to_string=to_string, spaces=spaces) == text
    assert seen == [["a", "b"], ["c"]]
    assert join_segments([], added=set(), to_string=to_string, spaces=spaces) == ""


NAMES = (
    "ByteLevel",
    "Mistral",
    "ByteFallback of U+FFFD",
    "Metaspace",
    "WordPiece",
    "CTC",
    "BPEDecoder",
    "no decoder",
    "Fuse, Replace",
)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_windows_equal_the_algorithms_as_described(name: str, data: st.DataObject) -> None:
    """Step by step, behind a prompt too, for every list: right where they are right, and wrong where they are wrong."""
    library, tokenizer = handmade(name)
    ids = data.draw(st.lists(st.sampled_from(tokenizer.ids), max_size=20))
    prompt, ids = ids[: (place := data.draw(st.integers(0, len(ids))))], ids[place:]

    def decode(some: Sequence[int]) -> str:
        return str(library.decode(list(some))) if some else ""

    for strategy, reference in (("window", TwoOffsets(decode, prompt)), ("window+printable", ThreeOffsets(decode, prompt))):
        stream = tokenizer.stream(prompt, strategy=strategy)  # type: ignore[arg-type]  # mypy widens the literals
        expected = [*map(reference.step, ids), reference.finish()]
        assert steps(stream, ids) == expected


@given(text=st.text(), cuts=cuts)
def test_window_over_valid_text_is_right(text: str, cuts: list[int]) -> None:
    """With `finish` it is the whole text, however it is split into steps."""
    text = text.encode("utf-8", "replace").decode()
    stream = EMBEDDED.stream(strategy="window")
    ids = EMBEDDED.encode(text, add_special_tokens=False)
    assert "".join(map(stream.extend, split(ids, cuts))) + stream.finish() == text


@given(text=st.text(st.characters(max_codepoint=0x2FFF, exclude_categories=["Cs"])))
def test_printable_window_over_valid_text_is_right(text: str) -> None:
    """As long as there are no Chinese characters in it."""
    stream = EMBEDDED.stream(strategy="window+printable")
    assert "".join(steps(stream, EMBEDDED.encode(text, add_special_tokens=False))) == text


@pytest.mark.parametrize("kind", [Window, PrintableWindow])
def test_window_states_are_values(kind: type[Window]) -> None:
    """A copy goes its own way, and a snapshot through JSON goes on exactly."""
    strategy = "window" if kind is Window else "window+printable"
    ids = EMBEDDED.encode("two wörds 🦜 漢字", add_special_tokens=False)
    expected = steps(EMBEDDED.stream(strategy=strategy), ids)  # type: ignore[arg-type]  # mypy widens the literals
    stream = EMBEDDED.stream(strategy=strategy)  # type: ignore[arg-type]
    for token_id, text in zip(ids, expected, strict=False):
        twin = stream.copy()
        assert twin.step(token_id) == text
        stream = EMBEDDED.restore(json.loads(json.dumps(stream.snapshot())))
        assert stream.step(token_id) == text
    assert not stream.exact
    stream.finish()
    assert EMBEDDED.restore(json.loads(json.dumps(stream.snapshot()))).finished


def test_window_step_decodes_at_most_two_windows() -> None:
    """A step that holds decodes one, a step that commits two; skipped and unknown ids none; `finish` one if something is held."""
    made = Made(b"a", b"\xc3", b"\xa9", specials=1)
    stream = made.stream()
    counts = []
    for token_id in (0, 0, 1, 2, 3, 99, 1):
        before = made.decodes
        stream.step(token_id)
        counts.append(made.decodes - before)
    assert counts == [2, 2, 1, 2, 0, 0, 1]
    before = made.decodes
    stream.finish()
    assert made.decodes - before == 1
    assert made.stream().finish() == ""
    assert made.decodes - before == 1


def test_window_step_costs_the_same_however_far_it_is() -> None:
    """Step 100,000 decodes as many ids as step 100; a hold costs more with each id, up to its limit."""
    made = Made(b"a", b"\xff", specials=1)
    stream = made.stream()
    costs = []
    for token_id in [0] * 100_000:
        before = made.decoded
        stream.step(token_id)
        costs.append(made.decoded - before)
    assert costs[0] == 2
    assert {*costs[1:]} == {3}
    before = made.decodes
    stream.extend([2] * 100_000)
    assert made.decodes == before
    worst = 0
    for _ in range(1000):
        before = made.decoded
        stream.step(1)
        worst = max(worst, made.decoded - before)
    assert worst <= 3 * (MAX_HELD + 1)
    assert len(state(stream).ids) <= 2 * (MAX_HELD + 1)


def test_window_reads_only_the_tail_of_a_prompt() -> None:
    """A prompt of a million ids costs what one of seven does."""
    made = Made(b"a")
    made.stream([0] * 1_000_000)
    assert (made.decodes, made.decoded) == (1, 5)


def test_strategies_of_a_decoder_are_refused_where_they_cannot_be() -> None:
    """A name that there is not, and the library's DecodeStream where there is no such library."""
    decoder = detok.Decoder(EMBEDDED.vocabulary, EMBEDDED.rules)
    assert decoder.stream(strategy="exact").exact
    assert not decoder.stream(strategy="window").exact
    with pytest.raises(detok.OptionError, match="is none"):
        decoder.stream(strategy="decodestream")
    with pytest.raises(detok.OptionError, match=r"'window\+printable'"):
        decoder.stream(strategy="quick")  # type: ignore[arg-type]  # wrong on purpose
