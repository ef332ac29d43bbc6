"""
The ways in which other stacks stream, beside the tokenizer's own, so that one can see what they do. For comparison only.

| strategy | what it is |
| --- | --- |
| "exact" | the tokenizer's own compiled rules |
| "window" | vLLM's window of two offsets |
| "window+printable" | SGLang's window, with a third offset |
| "decodestream" | the `DecodeStream` of ``tokenizers``, driven as vLLM's fast detokenizer drives it |

>>> import detok
>>> stream = open_stream(detok.load(detok.EMBEDDED), "window", lookback=5)
>>> stream.extend(detok.load(detok.EMBEDDED).encode("Zoë", add_special_tokens=False)), stream.exact
('Zoë', False)
"""

from .library_stream import LibraryStream
from .opening import COMPARED, STRATEGIES, ByStrategy, Strategy, by_strategy, open_stream, own_strategy
from .printable import PrintableWindow, find_printable

__all__ = [
    "COMPARED",
    "STRATEGIES",
    "ByStrategy",
    "LibraryStream",
    "PrintableWindow",
    "Strategy",
    "by_strategy",
    "find_printable",
    "open_stream",
    "own_strategy",
]
