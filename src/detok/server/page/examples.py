"""What the page offers to look at: texts that are short, and hard."""

from __future__ import annotations

from typing import Any

from ...data import sample, sample_names

__all__ = ["examples"]

# What fits on a screen as blocks.
MAX_SAMPLE = 120

CHOSEN: tuple[dict[str, Any], ...] = (
    {"name": "characters of several tokens", "text": "Zoë 👩‍🚀 한국 ဗမာ"},
    {"name": "a stop that is held and matched", "text": "The answer is 42.\n\nUse it.\n\nUser: and why?", "stop": ["\n\nUser:"]},
    {"name": "a stop in another script", "text": "강이 흐른다. 끝 아님. 끝.", "stop": ["끝."]},
    {"name": "special tokens", "text": "<|im_start|>user\nnaïve 🦜?<|im_end|>"},
)


def examples() -> list[dict[str, Any]]:
    """Return some that show one thing each, and the beginning of each sample that comes with the package."""
    samples = [{"name": name, "text": _beginning(sample(name))} for name in sample_names()]
    return [{"stop": [], **example} for example in (*CHOSEN, *samples)]


def _beginning(text: str) -> str:
    """The text behind the heading, cut between two words where there are any."""
    body = text.partition("\n\n")[2].strip()
    beginning = body[:MAX_SAMPLE]
    words = beginning.rpartition(" ")[0]
    return body if len(body) <= MAX_SAMPLE else words if len(words) > MAX_SAMPLE // 2 else beginning
