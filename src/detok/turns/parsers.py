"""What follows a turn, by the layout of its format."""

from __future__ import annotations

from typing import Any

from .calls.json_calls import EnvelopeAt
from .calls.json_text import JsonAt
from .calls.literals import LiteralAt
from .calls.tagged import TaggedAt
from .channels import TurnFollower
from .formats import HARMONY, TurnFormat
from .harmony import HarmonyParser, HarmonyState
from .tags import ParserState, TagParser

__all__ = ["PARSER_KINDS", "turn_parser"]

PARSER_KINDS = (ParserState, HarmonyState, EnvelopeAt, JsonAt, LiteralAt, TaggedAt)
"""The classes of which states are made."""


def turn_parser(turn: TurnFormat, state: Any = None) -> TurnFollower:
    """Return what follows a turn of this format, from its beginning or from where another one stood."""
    return HarmonyParser(turn, state) if turn.layout == HARMONY else TagParser(turn, state)
