"""Chats, templates of every kind, and tokenizers with one of them."""

from __future__ import annotations

from typing import Any

import detok
from tests.support.vocabularies import real_tokenizer

__all__ = ["CHATS", "EMBEDDED", "TEMPLATES", "TOOLS", "real_tokenizer"]

EMBEDDED = detok.load(detok.EMBEDDED)

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a <city>, say 東京 & 'Zürich'",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]

CALL = {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "東京"}'}}

CHATS: dict[str, list[dict[str, Any]]] = {
    "one": [{"role": "user", "content": "Hello 🦜, how  are you?"}],
    "system": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "  Zoë\n\n"}],
    "empty": [{"role": "system", "content": ""}, {"role": "user", "content": ""}],
    "turns": [
        {"role": "user", "content": "1"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes"},
        {"role": "user", "content": "again\n"},
        {"role": "assistant", "content": "No "},
        {"role": "user", "content": "ဗမာ and code:\n    if x:\n\treturn"},
    ],
    "tools": [
        {"role": "user", "content": "The weather?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": '{"degrees": 21}'},
        {"role": "assistant", "content": "21 degrees."},
        {"role": "user", "content": "Thanks"},
    ],
    "calls alone": [
        {"role": "user", "content": "The weather?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "21"},
    ],
}

TEMPLATES = {
    "plain": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    "blocks": """
        {%- if tools %}
            {{- '<|im_start|>tools ' + (tools | tojson) + '<|im_end|>' }}
        {%- endif %}
        {% for message in messages %}
            {% if message['role'] == 'system' %}{% continue %}{% endif %}
            {{- '<|im_start|>' ~ message['role'] ~ '\n' ~ (message['content'] or '') | trim }}
            {% if loop.index > 3 %}{% break %}{% endif %}
        {% endfor %}
        {% if add_generation_prompt %}<|im_start|>assistant
{% endif %}""",
    "macros": """{% macro shown(text, mark='*') %}{{ mark }}{{ text | upper | replace('A', 'b') }}{{ mark }}{% endmacro %}
{% set ns = namespace(count=0, seen=[]) %}
{% for m in messages %}{% set ns.count = ns.count + 1 %}{% set ns.seen = ns.seen + [m.role] %}
{{ shown(m.content or 'none', '#' * loop.index) }}{% endfor %}
{{ ns.count ~ ' ' ~ ns.seen | join('/') }} {{ messages[::-1] | map(attribute='role') | list }}
{{ {'a': [1, none, true], 'b': 'ü'} | tojson(indent=2) }} {{ '%05.1f|%s' % (1.25, ns.seen) }} {{ '{:>6}'.format('x') }}""",
    "documents": """{% for d in documents or [] %}[{{ loop.index0 }}/{{ loop.length }}] {{ d.title }}: {{ d['text'] | indent(2) }}
{% else %}no documents
{% endfor %}{{ bos_token }}{{ eos_token }}{{ extra | default('nothing') }}{{ messages | length }}{{ loop is defined }}""",
    "recursive": """{% for m in messages recursive %}({{ m.role }}{{ loop(m.tool_calls) if m.tool_calls }}){% endfor %}
{% filter upper %}{% for m in messages | selectattr('role', 'equalto', 'user') %}{{ m.content }}{% endfor %}{% endfilter %}
{% set block %}{{ messages[0].content }}{% endset %}{{ block | length }} {{ 'x' in block }}
{{ [1, 2] == [1, 2] }} {{ (1, 2)[::-1] }}""",
    "generation": """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}
{% else %}{{ m.content }}<|im_end|>{% endif %}

{% endfor %}""",
}
"""Each uses other parts of Jinja, and all special tokens that the embedded tokenizer has."""
