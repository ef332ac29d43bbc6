"""Clean-up of tokenization spaces: string replacements, in this order, each over the result of the one before."""

from __future__ import annotations

Pairs = tuple[tuple[str, str], ...]

_PUNCTUATION: Pairs = ((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"))
_CONTRACTIONS: Pairs = ((" n't", "n't"), (" 'm", "'m"))
_ENDINGS: Pairs = ((" 's", "'s"), (" 've", "'ve"), (" 're", "'re"))

WORDPIECE_CLEANUP: Pairs = (*_PUNCTUATION, *_CONTRACTIONS, (" do not", " don't"), *_ENDINGS)
"""What the WordPiece and CTC decoders of ``tokenizers`` do to each token."""

TRANSFORMERS_CLEANUP: Pairs = (*_PUNCTUATION, *_CONTRACTIONS, *_ENDINGS)
"""What ``clean_up_tokenization_spaces`` of ``transformers`` does to the whole text."""


def clean_up(text: str, pairs: Pairs) -> str:
    """Apply the replacements to a text that is complete."""
    for pattern, content in pairs:
        text = text.replace(pattern, content)
    return text
