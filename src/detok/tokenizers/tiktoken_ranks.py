"""
The files of tiktoken: ranks a line each, or the JSON of the npm package; what stands beside them; which pattern goes with which.

A file of ranks says neither what the special tokens are nor how text is split. The same ranks are used with different special
tokens (o200k_base and o200k_harmony, Llama 3.0 and 3.1), but with one pattern, so that the pattern is known by the ranks.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..errors import SourceError
from .huggingface_config import read_config
from .reading import MAX_ID, Added

__all__ = ["ACCEPTED", "Ranks", "added_beside", "pattern_of", "read_ranks"]

ACCEPTED = (
    'tiktoken ranks were expected, as lines "base64 rank" or as the JSON of the npm package (pat_str, special_tokens, bpe_ranks)'
)


@dataclass(frozen=True, slots=True)
class Ranks:
    """What a file of ranks says."""

    tokens: Mapping[int, bytes]
    special_tokens: Mapping[str, int] | None = None
    """None if the file does not say."""

    pat_str: str | None = None


def read_ranks(content: bytes, source: object) -> Ranks:
    """
    Read a file of ranks.

    Raises:
        SourceError: It is none, or damaged; the message says in which line.
    """
    # tiktoken's base64 passes over a byte order mark, and JavaScript over that of a JSON that it requires.
    content = content.removeprefix(BOM_UTF8)
    if content.lstrip()[:1] == b"{":
        return _read_json(content, source)
    return Ranks(_collect(_lines(content, source), source))


def _lines(content: bytes, source: object) -> Iterator[tuple[str, bytes, bytes]]:
    """Where each entry stands, its token in base64 and its rank."""
    for number, line in enumerate(content.splitlines(), 1):
        if not line:
            continue
        parts = line.split()
        if len(parts) != 2:
            found = f"line {number} is no token and rank: {_shown(line)}"
            raise SourceError(source, found=found, accepted=ACCEPTED)
        yield f"line {number}", parts[0], parts[1]


def _collect(entries: Iterator[tuple[str, bytes, bytes]], source: object) -> dict[int, bytes]:
    tokens: dict[int, bytes] = {}
    ranks: dict[bytes, int] = {}
    for where, spelled, rank in entries:
        try:
            # The multilingual ranks of Whisper spell the empty token as one "=", which strict base64 is not.
            token = b"" if spelled == b"=" else a2b_base64(spelled, strict_mode=True)
        except ValueError as error:
            raise SourceError(source, found=f"{where} is no base64 ({error}): {_shown(spelled)}", accepted=ACCEPTED) from error
        token_id = int(rank) if rank.isdigit() and len(rank) <= len(str(MAX_ID)) else MAX_ID + 1
        if token_id > MAX_ID:
            raise SourceError(source, found=f"{where} has no rank from 0 to {MAX_ID}: {_shown(rank)}", accepted=ACCEPTED)
        if tokens.setdefault(token_id, token) is not token:
            found = f"{where} has the rank {token_id}, which {tokens[token_id]!r} has too"
            raise SourceError(source, found=found, accepted="every id may stand for one token only")
        if ranks.setdefault(token, token_id) != token_id:
            found = f"{where} has the token {token!r}, which the rank {ranks[token]} has too"
            raise SourceError(source, found=found, accepted="every token may have one rank only")
    if not tokens:
        raise SourceError(source, found="there is not one rank in it", accepted=ACCEPTED)
    return tokens


def _read_json(content: bytes, source: object) -> Ranks:
    """The npm package's form: in bpe_ranks each line is a mark, the rank of its first token, and its tokens in base64."""
    try:
        value = json.loads(content)
        lines, special_tokens, pat_str = value["bpe_ranks"].split("\n"), value["special_tokens"], value["pat_str"]
        if not isinstance(special_tokens, dict) or not isinstance(pat_str, str):
            raise TypeError("special_tokens is no object, or pat_str no string")
    except (ValueError, RecursionError) as error:
        raise SourceError(source, found=f"is no JSON, or only the beginning of it ({error})", accepted=ACCEPTED) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise SourceError(source, found=f"is JSON with a missing or wrong field ({error})", accepted=ACCEPTED) from error
    return Ranks(_collect(_json_entries(lines, source), source), special_tokens, pat_str)


def _json_entries(lines: list[str], source: object) -> Iterator[tuple[str, bytes, bytes]]:
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        data = line.encode(errors="replace")
        mark, _, rest = data.partition(b" ")
        first, *spelled = rest.split(b" ")
        if mark != b"!" or not first.isdigit() or len(first) > len(str(MAX_ID)):
            found = f"line {number} of bpe_ranks does not begin with a mark and a rank: {_shown(data)}"
            raise SourceError(source, found=found, accepted=ACCEPTED)
        for place, token in enumerate(spelled, 1):
            yield f"token {place} in line {number} of bpe_ranks", token, b"%d" % (int(first) + place - 1)


def added_beside(path: Path) -> list[Added]:
    """
    Return the added tokens that the files beside ``path`` tell: tokenizer_config.json, else tokenizer.json.

    Raises:
        SourceError: One of them is damaged.
    """
    accepted = "mend it, take it away, or give special_tokens"
    beside, found = "tokenizer_config.json", read_config(path.parent).values.get("added_tokens_decoder")
    try:
        if found is None and (path.parent / "tokenizer.json").is_file():
            beside = "tokenizer.json"
            tokens = json.loads((path.parent / beside).read_bytes())["added_tokens"]
            return [_added(token["id"], token) for token in tokens]
        return [_added(token_id, token) for token_id, token in (found or {}).items()]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        found_there = f"its added tokens cannot be read ({type(error).__name__}: {error})"
        raise SourceError(path.parent / beside, found=found_there, accepted=accepted) from error


def _added(token_id: Any, token: Mapping[str, Any]) -> Added:
    return int(token_id), str(token["content"]), bool(token.get("special", False))


def pattern_of(tokens: Mapping[int, bytes]) -> str | None:
    """Return the pattern that splits text for these ranks, if they are known; of all that it depends on they are enough."""
    digest = blake2b(digest_size=16)
    for token_id in sorted(tokens):
        digest.update(b"%d %d " % (token_id, len(tokens[token_id])))
        digest.update(tokens[token_id])
    return _PATTERNS.get(digest.hexdigest())


def _shown(data: bytes) -> str:
    return repr(data if len(data) <= 60 else data[:60] + b"...")


_R50K = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN = _CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
_QWEN_3_5 = _QWEN.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
_UPPER, _LOWER, _ENDINGS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDINGS}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# By the digest of the ranks. Published with them: by tiktoken for its own encodings, by Llama's and Qwen's tokenizers.
_PATTERNS = {
    "d371d9ea2ca1f804a8971cfa85d87fe8": _R50K,  # gpt2, r50k_base
    "e1fccaccf43ae1ed480965c87bd0b3be": _R50K,  # p50k_base, p50k_edit
    "56b7babc5a5f8f93c70612967373378e": _CL100K,  # cl100k_base
    "b867158b79b1d62915b0d1a2318644a8": _O200K,  # o200k_base, o200k_harmony
    "e1301f4f3247e71bfeabc17a8b2cdd87": _CL100K,  # Llama 3
    "9e1d66e18f0a1113d6cb370937e8c52b": _O200K,  # Llama 4
    "19b4c8745f7912efca2487d8d5bbe039": _QWEN,  # Qwen to 3
    "51d9d859f9ae06354a08730968697905": _QWEN_3_5,
}
