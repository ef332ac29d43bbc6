"""A template that loops, or makes ever more, is stopped: by counts, whatever it does it with."""

from __future__ import annotations

import pytest

import detok
from detok.prompts import limits
from tests.prompts.support import EMBEDDED

CHAT = [{"role": "user", "content": "hi"}]
NINES = "range(99999)"
LONG = "{% set x = 'a' * 9999999 %}"


def growing(step: str, first: str = "'ab'", end: str = "") -> str:
    """A hundred times the same step, each with what the last one made."""
    turns = "{% for i in range(100) %}" + step + "{% endfor %}"
    return "{% set ns = namespace(x=" + first + ") %}" + turns + end


def often(step: str) -> str:
    """A step 10,000 million times."""
    return f"{{% for i in {NINES} %}}{{% for j in {NINES} %}}{step}{{% endfor %}}{{% endfor %}}"


TOO_LONG = {
    "loops": often(""),
    "calls": often("{{ c.next() }}").join(("{% set c = cycler(1) %}", "")),
    "macros": "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "recursive loops": "{% for i in [1, 2] recursive %}{% if loop.depth < 60 %}{{ loop([1, 2]) }}{% endif %}{% endfor %}",
    "filters": f"{{{{ {NINES} | map('string') | map('trim') | select('equalto', 'x') | list }}}}" * 30,
    "lists": growing("{% set ns.x = ns.x + ns.x %}", "[1]"),
    "lists in lists": growing("{% set ns.x = [ns.x, ns.x] %}", "[1]", "{{ ns.x }}"),
    "tuples in tuples": growing("{% set ns.x = (ns.x, ns.x) %}", "(1,)", "{{ [ns.x] | unique | list }}"),
    "objects in objects": growing("{% set ns.x = {'a': ns.x, 'b': ns.x} %}", "{}", "{{ ns.x | tojson }}"),
    "dicts of calls": growing("{% set ns.x = dict(a=ns.x, b=ns.x) %}", "{}", "{{ ns.x | string }}"),
    "views": growing("{% set ns.x = dict(a=ns.x, b=ns.x) %}", "{}", "{{ ns.x.items() }}"),
    "comparisons": growing("{% set ns.x = dict(a=ns.x, b=ns.x) %}", "{}", "{{ ns.x == ns }}"),
    "looking in lists": f"{{% set x = {NINES} | list %}}" + often("{% if -1 in x %}{% endif %}"),
    "looking in lists by a test": f"{{% set x = {NINES} | list %}}{{% set y = -1 %}}" + often("{% if y is in x %}{% endif %}"),
    "methods of lists": f"{{% set x = {NINES} | list %}}" + often("{% set y = x.index(99998) %}"),
    "arguments": "{% macro m() %}{{ varargs }}{% endmacro %}" + often(f"{{{{ m(*{NINES}) }}}}"),
    "pieces": "{% set x = 'a ' * 4999999 %}" + often("{% set y = x.split(' ') %}"),
    "sums of lists": "{% set x = [[1] * 999] * 9999 %}{{ x | sum(start=[]) | length }}",
    "groups": often(f"{{% set x = {NINES} | list | groupby('real') %}}"),
}
TOO_MUCH = {
    "times": "{{ 'a' * 10 ** 10 }}",
    "times, the other way": "{{ 10 ** 10 * 'a' }}",
    "lists": "{{ [0] * 10 ** 10 }}",
    "doubled by ~": growing("{% set ns.x = ns.x ~ ns.x %}"),
    "doubled by +": growing("{% set ns.x = ns.x + ns.x %}"),
    "doubled by a block": growing("{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"),
    "doubled by a macro": "{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}" + growing("{% set ns.x = m(ns.x) %}"),
    "doubled by a call": "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}"
    + growing("{% set ns.x %}{% call m() %}{{ ns.x }}{% endcall %}{% endset %}"),
    "doubled by a filter": growing("{% set ns.x %}{% filter replace('a', 'aa') %}{{ ns.x }}{% endfilter %}{% endset %}"),
    "kept": "{% set ns = namespace(l=[]) %}" + often("{% set ns.l = ns.l + ['a' * 9999999] %}"),
    "put out": often("{{ 'a' * 9999 }}"),
    "written": "{% set x %}" + often("x" * 10_000) + "{% endset %}",
    "replace": LONG + "{{ x.replace('a', x) }}",
    "replace, between": LONG + "{{ x.replace('', x) }}",
    "replace, the filter": LONG + "{{ x | replace('a', x) }}",
    "join": LONG + "{{ x.join('abc' * 9999) }}",
    "join, the filter": LONG + "{{ range(99999) | join(x) }}",
    "translate": LONG + "{{ x.translate({97: x}) }}",
    "indent": "{% set x = '\n' * 999999 %}{{ x | indent(9999) }}",
    "indent by a text": "{% set x = '\n' * 999999 %}{{ x | indent(x) }}",
    "wordwrap": LONG + "{{ ('a b ' * 99999) | wordwrap(1, wrapstring=x) }}",
    "escape": "{{ ('<' * 99999999) | e }}",
    "format": LONG + "{{ ('{0}' * 99).format(x) }}",
    "percent": LONG + "{{ ('%(a)s' * 99) % {'a': x} }}",
    "slices": LONG + often("{% set y = x[1:] %}"),
    "scans": LONG + often("{% set y = x.find('b') %}"),
    "scans by in": LONG + often("{% if 'b' in x %}{% endif %}"),
    "scans by a test": LONG + often("{% if x is lower %}{% endif %}"),
    "comparisons": LONG + "{% set y = x[:-1] %}" + often("{% if x == y ~ 'a' %}{% endif %}"),
}
TOO_WIDE = [
    "{{ 'a' | center(10 ** 10) }}",
    "{{ 'a'.ljust(10 ** 10) }}",
    "{{ 'a'.zfill(10 ** 10) }}",
    "{{ '\t'.expandtabs(10 ** 10) }}",
    "{{ 'a'.encode().ljust(10 ** 10) }}",
    "{{ (5).to_bytes(10 ** 10, 'big') }}",
    "{{ '%10000000000d' % 1 }}",
    "{{ '%*d' % (10 ** 9, 1) }}",
    "{{ '%.1000000000f' % 1.0 }}",
    "{{ '%10000000000d' | format(1) }}",
    "{{ '{:10000000000}'.format(1) }}",
    "{{ '{:{}}'.format(1, 10 ** 10) }}",
    "{{ '{a:9999999}'.format_map({'a': 1}) }}",
    "{{ ('{:10000000000}' | attr('format'))(1) }}",
    "{{ 'a\nb' | indent(10 ** 10) }}",
    "{{ messages | tojson(indent=10 ** 10) }}",
    "{{ messages | tojson(separators=('a' * 99999, ':')) }}",
    "{{ [1] | batch(10 ** 10, 0) | list }}",
    "{{ [1] | slice(10 ** 10, 0) | list }}",
    "{{ 1.5 | round(10 ** 9, 'ceil') }}",
]


def problem_of(template: str) -> str:
    """What the error says."""
    with pytest.raises(detok.ChatTemplateError) as caught:
        EMBEDDED.render_chat(CHAT, chat_template=template)
    assert caught.value.line is not None
    return caught.value.problem


@pytest.mark.parametrize("template", TOO_LONG.values(), ids=list(TOO_LONG))
def test_template_that_goes_on_is_stopped(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are counted, whoever takes them."""
    monkeypatch.setattr(limits, "MAX_STEPS", 200_000)
    assert problem_of(template) == "it takes more than 200,000 steps (turns of loops, calls, items)"


@pytest.mark.parametrize("template", TOO_MUCH.values(), ids=list(TOO_MUCH))
def test_template_that_makes_ever_more_is_stopped(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters are counted, before they are there where they could be many at once."""
    monkeypatch.setattr(limits, "MAX_CHARACTERS", 20_000_000)
    assert problem_of(template) == "it makes more than 20,000,000 characters"


@pytest.mark.parametrize("template", TOO_WIDE)
def test_width_without_measure_is_refused(template: str) -> None:
    """Before anything is filled up."""
    assert problem_of(template).startswith("it asks for a width or a number of ")


@pytest.mark.parametrize(
    "template", [growing("{% set ns.x = ns.x * ns.x %}", "7"), "{{ 7 ** 7000 }}", "{{ ('9' * 3000) | int }}"]
)
def test_integer_without_measure_is_refused(template: str) -> None:
    """By multiplication, by powers, out of a text."""
    assert problem_of(template) == "it makes an integer of more than 4,096 bits"


@pytest.mark.parametrize(
    "template",
    ["{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"],
)
def test_template_that_calls_itself_is_stopped(template: str) -> None:
    """Python's own limit has words here."""
    assert problem_of(template) == "it calls itself without an end"


def test_limits_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many turns are possible, and one more is not; the same with characters."""
    monkeypatch.setattr(limits, "MAX_STEPS", 1000)
    loop = "{{% for i in messages[0].content %}}{{% endfor %}}"
    assert EMBEDDED.render_chat([{"role": "user", "content": "x" * 1000}], chat_template=loop.format()) == ""
    with pytest.raises(detok.ChatTemplateError, match="1,000 steps"):
        EMBEDDED.render_chat([{"role": "user", "content": "x" * 1001}], chat_template=loop.format())
    monkeypatch.setattr(limits, "MAX_CHARACTERS", 1000)
    shown = "{{ messages[0].content }}"
    assert EMBEDDED.render_chat([{"role": "user", "content": "x" * 1000}], chat_template=shown) == "x" * 1000
    with pytest.raises(detok.ChatTemplateError, match="1,000 characters"):
        EMBEDDED.render_chat([{"role": "user", "content": "x" * 1001}], chat_template=shown)


def test_each_rendering_has_limits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one used up, the next has again."""
    monkeypatch.setattr(limits, "MAX_STEPS", 1000)
    template = "{% for i in range(900) %}{% endfor %}x"
    assert {EMBEDDED.render_chat(CHAT, chat_template=template) for _ in range(5)} == {"x"}


def test_template_reaches_nothing_of_python() -> None:
    """Attributes with underscores, changes of lists, files, other templates."""
    for template in (
        "{{ messages.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ dict.__subclasses__() }}",
        "{{ namespace(__class__=1) }}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
        "{% include 'other' %}",
        "{{ lipsum() }}",
        "{{ messages | map(attribute='content.__class__.x') | list | first ~ 1 if false else cycler.__init__.__globals__ }}",
    ):
        assert problem_of(template)
