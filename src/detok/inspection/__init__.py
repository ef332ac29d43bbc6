"""Looking at a tokenizer from outside: `trace` shows each step of a stream, `check` compares streams with the tokenizer's own library."""

from .check import Certificate, Difference, check
from .hostile import hostile_ids
from .trace import Summary, TraceRow, summary, trace

__all__ = ["Certificate", "Difference", "Summary", "TraceRow", "check", "hostile_ids", "summary", "trace"]
