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
    "sums of many lists": "{% set l = range(99) | list %}{{ ([l] * 1000) | sum(start=[]) | length }}",
    "sums of lists": "{% set x = [[1] * 999] * 9999 %}{{ x | sum(start=[]) | length }}",
    "items that a loop leaves out": often("{% for k in range(99999) if k < 0 %}{% endfor %}"),
    "items that a recursive loop leaves out": "{% set x = range(99999) | list %}"
    + often("{% for k in x if k < 0 recursive %}{% endfor %}"),
    "differences of keys": "{% set d = dict(range(9998) | batch(2)) %}" + often("{% set y = d.keys() - d.keys() %}"),
    "keys that have nothing in common": "{% set d = dict(range(9998) | batch(2)) %}"
    + often("{% set y = d.keys().isdisjoint(d.values()) %}"),
    "letters that are tested": "{% set x = 'a' * 99999 %}" + often("{% set y = x | select('equalto', 'b') | first %}"),
    "letters as a list": "{{ ('x' * 1000000) | list | length }}",
    "varargs in varargs": "{% macro m() %}{% set ns.x = varargs %}{% endmacro %}"
    + growing("{{ m(ns.x, ns.x) }}", "(1,)", "{{ {ns.x: 1} }}"),
    "objects in objects by dict": growing("{% set ns.x = dict(a=ns.x, b=ns.x) %}", "{}"),
    "what may have changed": "{% for a in [1] %}{% set x = range(99999) | list %}{% for i in range(9999) %}"
    "{% if loop.changed(x) %}{% endif %}{% endfor %}{% endfor %}",
    "filled up": often("{% set y = [1] | batch(9999, 0) | first %}"),
    "parts by white space": "{% set x = 'a ' * 999999 %}{{ x.split() | length }}",
    "lines": "{% set x = '\n' * 999999 %}{{ x.splitlines() | length }}",
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
    "escape": "{{ ('<' * 99999999) | e }}",
    "joined texts": LONG + "{{ ([x] * 99) | join | length }}",
    "joined texts by a method": LONG + "{{ ''.join([x] * 99) | length }}",
    "escapes of JSON": "{{ ('\u00fc' * 1999999) | tojson(ensure_ascii=true) | length }}",
    "escapes of JSON, in a list": "{{ ['\u00fc' * 1999999] | tojson(ensure_ascii=true) | length }}",
    "escapes of Python": "{{ ['\u00fc' * 1999999] | string | length }}",
    "indented JSON": "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = [ns.x] %}{% endfor %}"
    "{{ ([ns.x] * 999) | tojson(indent=16) | length }}" * 9,
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
    "{{ (5).to_bytes(10 ** 10, 'big') }}",
    "{{ '%10000000000d' % 1 }}",
    "{{ '%(a)1500000000s' % {'a': 1} }}",
    "{{ '{0[}]:>1500000000}'.format({'}': 1}) }}",
    "{{ '%.1000000000f' % 1.0 }}",
    "{{ '%10000000000d' | format(1) }}",
    "{{ '{:10000000000}'.format(1) }}",
    "{{ ('{:10000000000}' | attr('format'))(1) }}",
    "{{ 'a\nb' | indent(10 ** 10) }}",
    "{{ messages | tojson(indent=10 ** 10) }}",
    "{{ messages | tojson(separators=('a' * 99999, ':')) }}",
    "{{ [1] | batch(10 ** 10, 0) | list }}",
    "{{ [1] | slice(10 ** 10, 0) | list }}",
    "{{ 1.5 | round(10 ** 9, 'ceil') }}",
]


UNUSED = {
    "{{ 'a' | wordwrap(5) }}": "No filter named 'wordwrap'.",
    "{{ 'a' | striptags }}": "No filter named 'striptags'.",
    "{{ 'a'.encode('unicode_escape') }}": "it calls encode, which no prompt is made with",
    "{{ '{a}'.format_map({'a': 1}) }}": "it calls format_map, which no prompt is made with",
    "{{ '%*d' % (5, 1) }}": "it takes the format of a format from elsewhere, which no prompt is made with",
    "{{ '{:{}}'.format(1, 5) }}": "it takes the format of a format from elsewhere, which no prompt is made with",
    "{{ '{:{}}'.format(1, '1500000000') }}": "it takes the format of a format from elsewhere, which no prompt is made with",
    "{{ '{:{x[0]}}'.format(1, x=[10 ** 9]) }}": "it takes the format of a format from elsewhere, which no prompt is made with",
    "{{ '%(a(b))1500000000s' % {'a(b)': 1} }}": "it takes the format of a format from elsewhere, which no prompt is made with",
    "{{ messages | map(attribute='real.' * 99999) | list }}": "it asks for an attribute of more than 16 parts",
    "{{ messages | sort(attribute='real.' * 99999) }}": "it asks for an attribute of more than 16 parts",
    "{{ messages | sort(false, false, 'real.' * 99999) }}": "it asks for an attribute of more than 16 parts",
    "{{ messages | groupby('real,' * 99999) }}": "it asks for an attribute of more than 16 parts",
    "{{ messages | selectattr('real.' * 99999) | list }}": "it asks for an attribute of more than 16 parts",
    "{{ 'a'.strip('abc' * 99) }}": "it strips a text of 297 characters, and 32 is the most",
    "{{ 'a' | trim('abc' * 99) }}": "it strips a text of 297 characters, and 32 is the most",
    "{{ messages | tojson(indent=17) }}": "it indents or separates JSON by 17 characters, and 16 is the most",
    "{{ strftime_now('%c' * 999) }}": "it asks for a time in a format of more than 200 characters",
}
"""What real templates do not do, and what would take long to weigh."""


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


@pytest.mark.parametrize("template", UNUSED)
def test_what_no_prompt_is_made_with_is_refused(template: str) -> None:
    """By its name."""
    assert problem_of(template) == UNUSED[template]


def test_what_templates_do_with_texts_is_possible() -> None:
    """Formats of all kinds, JSON, parts of texts, attributes."""
    for template, text in {
        "{{ '%5.1f|%-4s|%%|%(x)' % (1.25, 'a') if 0 else '%5.1f|%-4s|%%' % (1.25, 'a') }}": "  1.2|a   |%",
        "{{ '%(a)s %(b)03d' % {'a': 'x', 'b': 7} }}": "x 007",
        "{{ '{:>4}|{a[b]}|{{}}'.format(1, a={'b': 2}) }}": "   1|2|{}",
        "{{ [{'a': 1}] | tojson(indent=4) }}": '[\n    {\n        "a": 1\n    }\n]',
        "{{ ' a b  c'.split() }}{{ 'a</t>b'.split('</t>')[-1] }}{{ 'a,b,c'.split(',', 1) }}": "['a', 'b', 'c']b['a', 'b,c']",
        "{{ messages | map(attribute='content.0') | list }}": "['h']",
        "{{ [[1], [2, 3]] | sum(start=[]) }}": "[1, 2, 3]",
        "{{ '\nx\n'.strip('\n') }}{{ 'xax' | trim('x') }}": "xa",
        "{% macro m() %}{{ varargs | join('-') }}{{ kwargs }}{% endmacro %}{{ m(1, 2, a=3) }}": "1-2{'a': 3}",
        "{{ [1, 2, 3] | batch(2, 0) | list }}{{ dict(a=1).keys() | list }}{{ 5 - 2 }}": "[[1, 2], [3, 0]]['a']3",
        "{% for i in [1, 2, 3] if i > 1 %}{{ loop.index }}{{ loop.changed(i) }}{% endfor %}": "1True2True",
    }.items():
        assert EMBEDDED.render_chat(CHAT, chat_template=template) == text


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
