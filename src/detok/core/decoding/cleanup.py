"""
Clean-up of tokenization spaces: string replacements, each applied to the result of the one before.

The order counts: in ``it ' s`` the rule for a quote between two spaces comes first, and the rule for `` 's`` finds nothing then.


>>> clean_up("it ' s , no ?", TRANSFORMERS_CLEANUP)
"it's, no?"
"""

from __future__ import annotations

Pairs = tuple[tuple[str, str], ...]

_PUNCTUATION: Pairs = ((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"))
_CONTRACTIONS: Pairs = ((" n't", "n't"), (" 'm", "'m"))
_ENDINGS: Pairs = ((" 's", "'s"), (" 've", "'ve"), (" 're", "'re"))

WORDPIECE_CLEANUP: Pairs = (*_PUNCTUATION, *_CONTRACTIONS, (" do not", " don't"), *_ENDINGS)
"""The replacements of the WordPiece and CTC decoders of ``tokenizers`` (``decoders::wordpiece::cleanup``), within each token."""

TRANSFORMERS_CLEANUP: Pairs = (*_PUNCTUATION, *_CONTRACTIONS, *_ENDINGS)
"""The replacements of ``clean_up_tokenization`` in ``transformers``, over the whole text. It has no rule for "do not"."""


def clean_up(text: str, pairs: Pairs) -> str:
    """Apply the replacements to a whole text."""
    for pattern, content in pairs:
        text = text.replace(pattern, content)
    return text
