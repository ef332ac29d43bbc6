"""A tokenizer seen from outside: `trace` shows a stream step by step, `check` compares it with its own library."""

from .certificate import Certificate, Difference
from .check import check
from .hostile import hostile_ids
from .trace import Deviation, Summary, TraceRow, summary, trace

__all__ = ["Certificate", "Deviation", "Difference", "Summary", "TraceRow", "check", "hostile_ids", "summary", "trace"]
