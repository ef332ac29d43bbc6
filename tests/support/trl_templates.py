"""The chat templates that the package trl ships: of some forty families, each as its models were trained on."""

from __future__ import annotations

import functools
from importlib.metadata import distribution
from pathlib import Path

__all__ = ["trl_templates"]


@functools.cache
def trl_templates() -> dict[str, str]:
    """Their texts by their names. They are read as files: the package itself needs torch."""
    files = [file for file in distribution("trl").files or () if file.suffix == ".jinja"]
    return {file.stem: Path(str(file.locate())).read_text(encoding="utf-8") for file in sorted(files)}
