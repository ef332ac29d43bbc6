"""
The variables of a chat template that a client or a configuration may set.

Tested in tests/server/test_chat_history.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import OptionError

__all__ = ["check_variables"]

# What `chat_template_kwargs` must not set: fields of their own, and what is for the server to say.
RESERVED = frozenset(
    {
        *("messages", "tools", "documents", "add_generation_prompt", "continue_final_message"),
        *("chat_template", "tokenize", "return_dict", "double_bos", "safe", "complete", "now", "self"),
    }
)


def check_variables(name: str, variables: Mapping[str, Any]) -> None:
    """
    Refuse variables that are none.

    Raises:
        OptionError: One has the name of something else.
    """
    if taken := sorted(RESERVED & variables.keys()):
        accepted = "it is a field of the body, or for the server to say"
        raise OptionError(option=f"{name}.{taken[0]}", value=variables[taken[0]], accepted=accepted)
