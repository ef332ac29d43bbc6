"""The tokenizer and the sample texts that come with the package, so that everything can be tried without a download.

The byte-level BPE tokenizer is small on purpose: characters of the rarer scripts fall apart into several tokens, which
is exactly the case a detokenizer has to get right. `scripts/train_embedded.py` makes it from the samples.

License: the texts were written for this project and the tokenizer was trained on nothing else; both are the project's
own, under Apache-2.0 like the code.
"""

from pathlib import Path

__all__ = ["sample", "sample_names", "tokenizer_directory"]

_DIRECTORY = Path(__file__).resolve().parent
_SAMPLES = _DIRECTORY / "samples"


def tokenizer_directory() -> Path:
    """Return the directory that holds `tokenizer.json` and `tokenizer_config.json`."""
    return _DIRECTORY


def sample_names() -> list[str]:
    """Return the names that `sample` takes, sorted: languages such as "thai", and "code", "emoji" and "mixed"."""
    return sorted(path.stem for path in _SAMPLES.glob("*.txt"))


def sample(name: str) -> str:
    """Return the sample text called `name`; raise `KeyError` when there is none."""
    if name not in sample_names():
        raise KeyError(f"no sample is called {name!r}; there are {', '.join(sample_names())}")
    return (_SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


EMBEDDED = tokenizer_directory()
"""The embedded tokenizer, as `detok.load` takes it."""
