"""One module for each file format or library, and `load`, which finds the right one."""

from __future__ import annotations

from .loading import load
from .tokenizer import Tokenizer

__all__ = ["Tokenizer", "load"]
