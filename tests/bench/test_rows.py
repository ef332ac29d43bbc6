"""The ways of serving many requests that the benchmarks compare give the text that they should."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tokenizers import Tokenizer

import detok
from bench.rows import Batches, DecodeStreamRows, Feeds, RowPeer, SGLangRows, VLLMRows, feeding
from detok.data import sample

LIBRARY = Tokenizer.from_file(str(detok.EMBEDDED / "tokenizer.json"))
TOKENIZER = detok.load(LIBRARY)
OPTIONS = detok.RequestOptions(stop="\n\nQuestion:")


def _batch_decode(lists: list[list[int]]) -> list[str]:
    return [LIBRARY.decode(ids) for ids in lists]


PEERS: dict[str, Callable[[], RowPeer]] = {
    "DecodeStream": lambda: DecodeStreamRows(LIBRARY),
    "vLLM's way": lambda: VLLMRows(LIBRARY, OPTIONS.stop),  # type: ignore[arg-type]  # a tuple by now
    "SGLang's way": lambda: SGLangRows(_batch_decode),
    "feed": lambda: Feeds(TOKENIZER, OPTIONS),
    "BatchDecoder": lambda: Batches(TOKENIZER, lambda row: OPTIONS),
    "BatchDecoder, logprobs": lambda: Batches(TOKENIZER, lambda row: OPTIONS, logprobs=True),
}


@pytest.mark.parametrize("name", PEERS)
def test_each_way_gives_the_one_shot_text(name: str) -> None:
    """For ids that end with a whole character, several requests side by side, and in what is timed too."""
    text = sample("mixed")
    ids = LIBRARY.encode(text, add_special_tokens=False).ids
    columns = [[one, other] for one, other in zip(ids, ids[::-1], strict=True)]
    peer = PEERS[name]()
    first, second = peer.texts(columns)
    assert first == text
    if name != "SGLang's way":
        assert LIBRARY.decode(ids[::-1]).startswith(second)
    feeding(peer, peer.steps(columns), 2)()


def test_vllm_way_stops() -> None:
    """The text is cut before the stop, wherever the tokens are cut."""
    columns = [[token_id] for token_id in LIBRARY.encode("the END", add_special_tokens=False).ids]
    assert VLLMRows(LIBRARY, ["END"]).texts(columns) == ["the "]
