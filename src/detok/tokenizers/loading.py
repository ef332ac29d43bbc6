"""`load`: whatever the user has, found out by its content, becomes a `Tokenizer`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from ..errors import DetokError, OptionError, SourceError
from .encoders import EncoderName, check_encoder
from .formats import FORMATS, HEAD, Format, format_of_bytes, format_of_object
from .near_paths import near_paths, what_is_missing
from .tokenizer import Mode, Tokenizer, check_mode

__all__ = ["load"]

ACCEPTED = (
    "give the path of a tokenizer's file or directory, a name on the Hugging Face hub (owner/name), tiktoken:NAME, or an object "
    "of a tokenizer library; `detok formats` lists them"
)

# What a directory may have, the first that is there counts.
FILES = (
    *("tokenizer.json", "tekken*.json", "*.gguf", "tokenizer.model", "spiece.model", "*.model", "*.model.v*", "*.tiktoken"),
    *("vocab.json", "encoder.json", "vocab.txt", "rwkv_vocab*.txt", "bpe_simple_vocab*"),
)

# What formats look for beside a file that was given.
BESIDE = (
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.json"),
    *("merges.txt", "vocab.bpe", "vocab.json", "encoder.json", "chat_template.jinja", "generation_config.json"),
)

# Word lists of which one is read with another.
WORDS = ("merges.txt", "vocab.bpe", "vocab.json", "vocab.txt", "encoder.json")
# Maximum bytes of files whose digest is taken while they are loaded: a quarter of a second, beside seconds of loading.
MAX_DIGESTED = 1 << 28

_loaded: WeakValueDictionary[object, Tokenizer] = WeakValueDictionary()


def load(
    source: str | os.PathLike[str] | Any,
    *,
    mode: Mode = "auto",
    revision: str | None = None,
    encoder: EncoderName = "auto",
    **settings: Any,
) -> Tokenizer:
    """
    Make a `Tokenizer` of what is there. The same files twice in a process give the same object, tables and all.

    Args:
        source: A file (tokenizer.json, SentencePiece, tiktoken ranks, Tekken, GGUF, RWKV, word lists: told apart by content), a
            directory with one, ``"tiktoken:NAME"``, a name on the Hugging Face hub, or an object of tokenizers, transformers,
            tiktoken, sentencepiece or mistral-common. A tokenizer.json given as a file is judged by the tokenizers library alone;
            in a directory the files beside it count too, as in transformers.
        mode: Which implementation of a Hugging Face tokenizer, as ``--tokenizer-mode`` of vLLM and SGLang: "fast" and "slow"
            insist.
        revision: Of a name on the hub.
        encoder: What encodes a tokenizer.json: "auto" is fastokens where it is installed and gives equal ids on a corpus of hard
            texts, else tokenizers; a name insists.
        settings: What a format takes beside the file, such as ``special_tokens={text: id}`` for tiktoken ranks.

    Raises:
        SourceError: It is none of these, or damaged; the message says what was found.
        UnknownDecoder: Its decoder has a type that detok does not know.
        OptionError: An argument does not go with the source.
        MissingExtra: A library is needed that is not installed.
    """
    check_mode(mode)
    check_encoder(encoder)
    insisted = {} if encoder == "auto" else {"encoder": encoder}
    if not isinstance(source, (str, os.PathLike)):
        return _from_object(source, mode, {**settings, **insisted})
    if revision is not None and not isinstance(revision, str):
        raise OptionError(option="revision", value=revision, accepted="it is a branch, a tag or a commit, as a string")
    text = os.fsdecode(source)
    if text.startswith("tiktoken:"):
        _refuse_mode(mode, text)
        return _call(_named("tiktoken").load().from_name, text.removeprefix("tiktoken:"), {**settings, **insisted})
    path = _path(text)
    if path is None:
        path = _from_hub(text, revision)
    elif revision is not None:
        raise OptionError(option="revision", value=revision, accepted=f"it goes with a name on the hub, and {text} is a path")
    make = _from_directory if path.is_dir() else _from_file
    if settings:
        return make(path, mode, {**settings, **insisted})
    stamp = _stamp(path)
    key = (path, path.resolve(), stamp, mode, encoder)
    known = _loaded.get(key)
    if known is not None:
        return known
    tokenizer = make(path, mode, insisted)
    digest = _content_digest(path)
    if _stamp(path) == stamp:  # else a file was replaced meanwhile, and the digest may be of another one
        tokenizer.content = digest
    return _loaded.setdefault(key, tokenizer)


def _content_digest(path: Path) -> str:
    """
    Return a digest of the files that a vocabulary is read from; "" if they are too large, as a GGUF with a model's weights is.

    What configuration beside them says of tokens shows in the pieces of the added vocabulary and in the rules.
    """
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if any(fnmatch(entry.name, one) for one in (*FILES, *WORDS)))
        files = [path / name for name in names]
    else:
        files = [path, *(path.parent / name for name in WORDS if name != path.name)]
        if path.name == "tokenizer.json":
            files = [path]
    digest = blake2b(digest_size=16)
    with suppress(OSError):
        files = [file for file in files if file.is_file()]
        if sum(file.stat().st_size for file in files) > MAX_DIGESTED:
            return ""
        for file in files:
            with file.open("rb") as opened:
                digest.update(file_digest(opened, "sha256").digest())
        return digest.hexdigest()
    return ""


def _path(text: str) -> Path | None:
    """The path, if something is there."""
    path = Path(text)
    try:
        return path if text and path.exists() else None
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return None


def _stamp(path: Path) -> tuple[object, ...]:
    """What changes when the files change: those of a directory, or a file and what may stand beside it."""
    files = sorted(path.iterdir()) if path.is_dir() else [path, *(path.parent / name for name in BESIDE)]
    stamp: list[object] = []
    for file in files:
        with suppress(OSError):  # a link to nowhere, a file that is just being replaced, or none of that name
            stat = file.stat()
            stamp.append((file.name, stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size))
    return tuple(stamp)


def _from_hub(text: str, revision: str | None) -> Path:
    from .hub import from_name, looks_like_hub_name

    if not looks_like_hub_name(text):
        shown = text if len(text) <= 200 else f"{text[:200]}…"
        path = Path(text)
        missing, near = (what_is_missing(path), near_paths(path)) if text else ("", [])
        found = f"there is no such file or directory: {missing}" if missing else "there is no such file or directory"
        raise SourceError(shown, found=found, accepted=f"did you mean {' or '.join(near)}? Else {ACCEPTED}" if near else ACCEPTED)
    try:
        return from_name(text, revision=revision)
    except SourceError as error:
        near = near_paths(Path(text))
        if not near:
            raise
        # A name on the hub is spelled as a relative path is.
        raise SourceError(text, found=error.found, accepted=f"{error.accepted}; or did you mean {' or '.join(near)}?") from error


def _from_object(source: object, mode: Mode, settings: Mapping[str, Any]) -> Tokenizer:
    row = format_of_object(source)
    kind = f"{type(source).__module__}.{type(source).__qualname__}"
    if row is None:
        raise SourceError(kind, found="is no kind of tokenizer that detok knows", accepted=ACCEPTED)
    if row.name != "transformers" and row.decodes_itself(source):
        found = "is a subclass with a decode of its own, which no rules tell"
        raise SourceError(kind, found=found, accepted="give an object of the library's own class")
    if row.name == "transformers":
        settings = {**settings, "mode": mode}
    else:
        _refuse_mode(mode, kind)
    return _call(row.load().from_object, source, settings)


def _from_directory(directory: Path, mode: Mode, settings: Mapping[str, Any]) -> Tokenizer:
    from . import huggingface, transformers

    names = sorted(entry.name for entry in directory.iterdir() if entry.is_file())
    found = next((name for pattern in FILES for name in names if fnmatch(name, pattern)), None)
    if mode == "slow" or (found is None and "tokenizer_config.json" in names):
        return _call(transformers.from_directory, directory, {**settings, "mode": mode})
    if found == "tokenizer.json":
        return _call(huggingface.from_directory, directory, settings)
    if found is None:
        has = ", ".join(names[:6])
        raise SourceError(
            directory,
            found=f"the directory has none of {', '.join(FILES)}" + (f", only {has}" if has else "; it is empty"),
            accepted="download the tokenizer's files into it; `detok formats` lists what can be loaded",
        )
    try:
        return _from_file(directory / found, mode, settings)
    except SourceError as refusal:
        if found not in WORDS or settings:
            raise
        try:
            # Lists of a class that detok has no rules for: what AutoTokenizer makes of them counts.
            return transformers.from_directory(directory, mode=mode)
        except DetokError:
            raise refusal from None


def _from_file(path: Path, mode: Mode, settings: Mapping[str, Any]) -> Tokenizer:
    try:
        if not path.is_file():
            raise SourceError(path, found="is no regular file", accepted=ACCEPTED)
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise SourceError(path, found=f"cannot be read ({error.strerror})", accepted=ACCEPTED) from error
    row = format_of_bytes(head)
    if row is None:
        found = "is empty" if not head else f"is of no format that detok knows; it begins with {head[:16]!r}"
        raise SourceError(path, found=found, accepted=ACCEPTED)
    if row.name != "tokenizer.json" or mode == "slow":
        _refuse_mode(mode, str(path))
    return _call(row.load().from_file, path, settings)


def _named(name: str) -> Format:
    return next(row for row in FORMATS if row.module == name)


def _refuse_mode(mode: Mode, source: str) -> None:
    if mode != "auto":
        accepted = f"{source} has one implementation; 'fast' and 'slow' go with a directory or object of transformers"
        raise OptionError(option="mode", value=mode, accepted=accepted)


def _call(make: Callable[..., Tokenizer], source: object, settings: Mapping[str, Any]) -> Tokenizer:
    """Call a loader with the settings that it knows."""
    known = [name for name, one in inspect.signature(make).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for name, value in settings.items():
        if name not in known:
            accepted = f"for {source} the settings are: {', '.join(known) or 'none'}"
            raise OptionError(option=name, value=value, accepted=accepted)
    return make(source, **settings)
