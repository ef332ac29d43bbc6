"""
Names on the Hugging Face hub, such as ``Qwen/Qwen3-8B``: the directory with the tokenizer's files, from the cache or the hub.

Only files that say something of a tokenizer are fetched, never weights and never code. What is in the cache is taken without
asking the hub, so that a server starts without a network, and as it did before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import SourceError
from .reading import library

__all__ = ["from_name", "looks_like_hub_name"]

VOCABULARIES = (
    *("tokenizer.json", "tokenizer.model*", "tekken.json", "*.tiktoken", "vocab.json", "vocab.txt", "spiece.model"),
    *("sentencepiece.bpe.model", "rwkv_vocab*.txt", "bpe_simple_vocab*"),
)
"""Files of which one at least makes a tokenizer."""

BESIDE = (
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt", "config.json"),
    *("generation_config.json", "chat_template.*", "additional_chat_templates/*.jinja"),
)
"""What may stand beside them."""

FILES = [*VOCABULARIES, *BESIDE]

# As huggingface_hub has it (utils/_validators.py), with an owner, without which a name cannot be told from a file's.
_NAME = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9_][\w.-]{0,95}/[A-Za-z0-9_][\w.-]{0,95}(?<![.-])", re.ASCII)
_FILE_ENDINGS = (".json", ".model", ".gguf", ".txt", ".gz", ".tiktoken", ".git")


def looks_like_hub_name(text: str) -> bool:
    """
    Whether a text can be ``owner/name`` on the hub, and is no path of something that is there.

    >>> [looks_like_hub_name(text) for text in ("Qwen/Qwen3-8B", "gpt2", "./model", "models/tokenizer.json", "a/b/c")]
    [True, False, False, False, False]
    """
    return _NAME.fullmatch(text) is not None and not text.endswith(_FILE_ENDINGS) and not Path(text).exists()


def from_name(name: str, *, revision: str | None = None) -> Path:
    """
    Return the local directory with a tokenizer's files.

    Args:
        name: ``owner/name``.
        revision: A branch, a tag or a commit; by default the main branch.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        SourceError: It is neither in the cache nor to be had, and how to get it; or there is no tokenizer in it.
    """
    hub = library("huggingface_hub", extra="hf", purpose=f"the hub name {name!r}")
    directory = _cached(hub, name, revision)
    if directory is None or not _has_vocabulary(directory):
        directory = _fetched(hub, name, revision)
    if not _has_vocabulary(directory):
        names = ", ".join(sorted(entry.name for entry in directory.iterdir())[:6]) or "nothing"
        accepted = f"one of {', '.join(VOCABULARIES)} was expected"
        raise SourceError(name, found=f"has no tokenizer, only {names}", accepted=accepted)
    return directory


def _cached(hub: Any, name: str, revision: str | None) -> Path | None:
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=FILES, local_files_only=True))
    except (OSError, ValueError):  # it is not there, or only a part of it; whatever else is wrong, the hub will say
        return None


def _fetched(hub: Any, name: str, revision: str | None) -> Path:
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=FILES))
    except Exception as error:  # whatever the library's HTTP client raises; it is not the same one in all versions
        found, accepted = _reason(error, name, revision)
        raise SourceError(name, found=found, accepted=accepted) from error


def _reason(error: Exception, name: str, revision: str | None) -> tuple[str, str]:
    """What went wrong, and how to get it all the same."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    constants = library("huggingface_hub.constants", extra="hf", purpose=name)
    absent = f"is not in the cache {constants.HF_HUB_CACHE}, and"
    elsewhere = "load it once where there is a network and bring that folder along, or give a directory with its tokenizer files"
    if "HFValidationError" in kinds:
        return "is no name on the hub", "owner/name was expected"
    if "GatedRepoError" in kinds:
        return "is gated", f"accept its terms on https://huggingface.co/{name}, then: hf auth login"
    if "RepositoryNotFoundError" in kinds:
        return "the hub has no such name, or it is private", "mind the spelling; for a private one: hf auth login"
    if "RevisionNotFoundError" in kinds:
        return f"has no revision {revision!r}", f"see https://huggingface.co/{name}/commits/main"
    if constants.HF_HUB_OFFLINE:
        return f"{absent} HF_HUB_OFFLINE forbids asking the hub", elsewhere
    return f"{absent} the hub is out of reach ({' '.join(_causes(error))})", elsewhere


def _causes(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{type(error).__name__}:" if error.__cause__ else f"{type(error).__name__}: {str(error).strip()[:200]}"
        error = error.__cause__


def _has_vocabulary(directory: Path) -> bool:
    return any(True for pattern in VOCABULARIES for _ in directory.glob(pattern))
