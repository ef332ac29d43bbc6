"""Hypothesis profiles: the ordinary run is short and the same each time; `DETOK_FUZZ=N` gives every property N examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

ORDINARY_EXAMPLES = 40

settings.register_profile(
    "detok",
    max_examples=int(os.environ.get("DETOK_FUZZ", ORDINARY_EXAMPLES)),
    deadline=None,
    derandomize="DETOK_FUZZ" not in os.environ,
    # A real vocabulary is loaded inside the first example, which is then rightly slow.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("detok")
