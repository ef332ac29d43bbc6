"""Train the embedded tokenizer on the sample texts and write it to `src/detok/data/`.

In: `src/detok/data/samples/*.txt`. Out: `tokenizer.json`, `tokenizer_config.json`, and a statistic on standard output.
With `--check` nothing is written, and the exit code is 1 if a file would have changed.
"""

import argparse
import json
import sys
from itertools import accumulate
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

DATA = Path(__file__).resolve().parent.parent / "src" / "detok" / "data"

VOCABULARY_SIZE = 4096  # with the added tokens, which get the last ids
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
PLAIN_TOKENS = ("<think>", "</think>")

# No newline follows a block tag, so it renders the same with and without Jinja's `trim_blocks`.
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<|endoftext|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "add_bos_token": False,
    "clean_up_tokenization_spaces": False,
    "chat_template": CHAT_TEMPLATE,
}


def read_samples() -> dict[str, str]:
    """Return the sample texts by name, in the order of the names."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((DATA / "samples").glob("*.txt"))}


def train(texts: list[str]) -> Tokenizer:
    """Return a byte-level BPE tokenizer trained on `texts`; equal texts give an equal tokenizer."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(SPECIAL_TOKENS) - len(PLAIN_TOKENS),
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in PLAIN_TOKENS])
    return tokenizer


def ends_inside(tokenizer: Tokenizer, text: str) -> tuple[int, int]:
    """Return how many tokens `text` has, and how many of them end inside a character."""
    data = text.encode()
    # Byte-level BPE writes each byte as one character, so a token's length is its number of bytes.
    lengths = [len(token) for token in tokenizer.encode(text).tokens]
    return len(lengths), sum(end < len(data) and data[end] & 0xC0 == 0x80 for end in accumulate(lengths))


def print_statistic(tokenizer: Tokenizer, samples: dict[str, str]) -> None:
    """Print, for each sample: its bytes, characters, tokens, and the tokens that end inside a character."""
    print(f"{'sample':<12}{'bytes':>8}{'chars':>8}{'tokens':>8}{'ending inside a character':>28}")
    for name, text in samples.items():
        tokens, inside = ends_inside(tokenizer, text)
        print(f"{name:<12}{len(text.encode()):>8}{len(text):>8}{tokens:>8}{inside:>20} ({inside / tokens:5.1%})")


def main() -> int:
    parser = argparse.ArgumentParser(description="Train the embedded tokenizer on the sample texts.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    check: bool = parser.parse_args().check

    samples = read_samples()
    tokenizer = train(list(samples.values()))
    print_statistic(tokenizer, samples)

    files = {
        DATA / "tokenizer.json": tokenizer.to_str(),
        DATA / "tokenizer_config.json": json.dumps(CONFIG, indent=2),
    }
    changed = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != f"{text}\n"]
    for path in changed:
        if check:
            print(f"{path} is not what this script makes; run it without --check", file=sys.stderr)
        else:
            path.write_text(f"{files[path]}\n", encoding="utf-8", newline="\n")
            print(f"wrote {path}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
