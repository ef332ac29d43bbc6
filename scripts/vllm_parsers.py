"""
Read turns by vLLM's own parsers. This is run by vLLM's Python, in a process without an engine; see `compare_formats`.

Standard input has a line of JSON for each turn: family, tools of the request, text. Standard output has what vLLM makes of it,
unstreamed and streamed token by token.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from transformers import AutoTokenizer
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm_parsers_names import PARSERS

Turn = dict[str, Any]


def main(vocabulary: str) -> None:
    """Read all turns."""
    tokenizers: dict[str, Any] = {}
    for line in sys.stdin:
        turn = json.loads(line)
        family = turn["family"]
        if family not in tokenizers:
            tokenizers[family] = AutoTokenizer.from_pretrained(vocabulary)
            tokenizers[family].add_tokens(turn["specials"], special_tokens=True)
            # Each parser asks for the whole vocabulary, which takes a quarter of a second.
            vocabulary_of = tokenizers[family].get_vocab()
            tokenizers[family].get_vocab = lambda known=vocabulary_of: known
        print(json.dumps(_read(turn, tokenizers[family])), flush=True)


def _read(turn: Turn, tokenizer: Any) -> Turn:
    tool_parser, reasoning_parser = PARSERS[turn["family"]]
    messages = [{"role": "user", "content": "?"}]
    request = ChatCompletionRequest(model="m", messages=messages, tools=turn["tools"], tool_choice="auto")
    make = ParserManager.get_parser(tool_parser, reasoning_parser, enable_auto_tools=True)
    ids = tokenizer.encode(turn["text"], add_special_tokens=False)
    answer = {}
    for way, read in (("whole", _whole), ("streamed", _streamed)):
        try:
            answer[way] = read(make(tokenizer, request.tools), request, turn["text"], ids, tokenizer)
        except Exception as error:
            answer[way] = {"error": f"{type(error).__name__}: {error}"[:200]}
    return answer


def _whole(parser: Any, request: Any, text: str, ids: list[int], tokenizer: Any) -> Turn:
    reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=ids)
    return {"reasoning": reasoning or "", "content": content or "", "calls": [[one.name, one.arguments] for one in calls or ()]}


def _streamed(parser: Any, request: Any, text: str, ids: list[int], tokenizer: Any) -> Turn:
    answer: Turn = {"reasoning": "", "content": "", "calls": []}
    begin = 0
    for place, token_id in enumerate(ids):
        is_last = place == len(ids) - 1
        new = tokenizer.decode(ids[begin : place + 1], skip_special_tokens=False)
        if new.endswith("\ufffd") and not is_last:
            continue
        begin = place + 1
        delta = parser.parse_delta(new, [token_id], request, [], finished=is_last)
        if delta is None:
            continue
        answer["reasoning"] += delta.reasoning or ""
        answer["content"] += delta.content or ""
        for call in delta.tool_calls or ():
            while len(answer["calls"]) <= call.index:
                answer["calls"].append(["", ""])
            row = answer["calls"][call.index]
            row[0] += call.function.name or ""
            row[1] += call.function.arguments or ""
    return answer


if __name__ == "__main__":
    main(sys.argv[1])
