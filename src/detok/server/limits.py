"""How much a client may ask for. Each limit has an answer of its own that names the field, and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from .errors import Refused

__all__ = ["Limits"]

Positive = Annotated[int, msgspec.Meta(ge=1)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits, with their defaults; the names are those of the configuration."""

    max_body_bytes: Positive = 16 << 20
    """Of a request's body: a prompt of the longest contexts there are, as JSON, fits several times."""

    max_prompt_characters: Positive = 1 << 22
    max_prompt_tokens: Positive | None = None
    """Of one prompt. None: as many as the model takes, if its `max_model_len` is known."""

    max_choices: Positive = 128
    """Prompts of a request times `n`."""

    max_stops: Positive = 64
    """Stop strings, patterns and token ids, together."""

    max_stop_regex: Annotated[int, msgspec.Meta(ge=0)] = 4
    """Patterns of one request. Each may take its time at each token, in which nobody else is served."""

    max_stop_characters: Positive = 4096
    """Of one stop. The decoder holds back no more than that."""

    max_logprobs: Annotated[int, msgspec.Meta(ge=0)] = 20
    max_requests: Positive = 4096
    """Requests that generate at the same time."""

    def check_choices(self, prompts: int, n: int) -> None:
        """Refuse more choices than are allowed."""
        if n < 1:
            raise Refused(400, f"n is {n}; it is at least 1", param="n")
        if prompts * n > self.max_choices:
            what = f"n is {n}" if prompts == 1 else f"{prompts} prompts with n={n} are {prompts * n:,} choices"
            raise Refused(400, f"{what}; {self.max_choices:,} choices are allowed", param="n")

    def check_stops(self, **stops: Sequence[str | int]) -> None:
        """Refuse more or longer stops than are allowed; given by their fields."""
        count = sum(map(len, stops.values()))
        if count > self.max_stops:
            field = max(stops, key=lambda name: len(stops[name]))
            raise Refused(400, f"{field}: there are {count:,} stops, and {self.max_stops:,} are allowed", param=field)
        patterns = len(stops.get("stop_regex", ()))
        if patterns > self.max_stop_regex:
            message = f"stop_regex: there are {patterns:,} patterns, and {self.max_stop_regex:,} are allowed"
            raise Refused(400, message, param="stop_regex")
        for field, values in stops.items():
            longest = max((len(value) for value in values if isinstance(value, str)), default=0)
            if longest > self.max_stop_characters:
                message = f"{field}: one has {longest:,} characters, and {self.max_stop_characters:,} are allowed"
                raise Refused(400, message, param=field)

    def check_logprobs(self, field: str, count: int) -> None:
        """Refuse a number of alternatives."""
        if not 0 <= count <= self.max_logprobs:
            raise Refused(400, f"{field} is {count}; it is between 0 and {self.max_logprobs}", param=field)
