"""
The environment of chat templates: Jinja2's immutable sandbox, set as Hugging Face sets it, in which everything is counted.

Calls, filters, tests and operators come by here, and what Jinja would do by itself does so too: see `counting`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, MappingView, Sized
from datetime import datetime
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from .counting import Counting
from .limits import (
    Budget,
    TooMuch,
    check_filter,
    growth_of_filter,
    growth_of_method,
    growth_of_operator,
    pieces_of_method,
)

__all__ = ["BUDGET", "GENERATION", "NOW", "ChatEnvironment"]

# Variables of a rendering that no template can name, since they are no identifiers.
BUDGET = "the budget"
NOW = "the time"
GENERATION = "marks of generation"
"""What is written before and behind a ``generation`` block: two texts, or None where nobody asked for the places."""

LOOK_AT_LITTLE = frozenset(
    (
        *("attr", "count", "d", "default", "first", "items", "last", "length", "list", "map", "reject", "rejectattr", "reverse"),
        *("select", "selectattr", "batch", "slice", "random"),
    )
)
"""Filters that do not look into the items of a list."""

LOOK_AT_NONE = frozenset(("attr", "count", "d", "default", "first", "last", "length", "random"))
"""Those of them that take as long for many items as for one."""

LOOK_AT_ALL = frozenset(("join", "string", "tojson", "format", "replace", "e", "escape", "forceescape", "urlencode"))
"""Filters that write everything out which is in a value."""

COMPARISONS = ("==", "!=", ">", ">=", "<", "<=", "eq", "equalto", "ne", "gt", "greaterthan", "ge", "lt", "lessthan", "le", "in")
LOOK_THROUGH = frozenset((*COMPARISONS, "lower", "upper"))
"""Tests that do more than to look at a type."""

UNUSED = ("urlize", "xmlattr", "wordwrap", "pprint", "striptags")
"""Filters that no prompt is made with, and that take long."""

MAX_TIME_FORMAT = 200
"""Characters."""

COPY_SHIFT = 6
"""To copy so many items as this power of two takes a step."""

CALL = 3
"""Steps of a call: of a macro, as long as three turns of a loop."""


class Generation(Extension):
    """``{% generation %}`` … ``{% endgeneration %}``: what the assistant wrote."""

    tags = {"generation"}  # noqa: RUF012  # Jinja's own class says so

    def parse(self, parser: Parser) -> nodes.Node:
        """Make of the block a call that marks its text."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked", [nodes.ContextReference()]), [], [], body).set_lineno(line)

    def _marked(self, context: Context, caller: Callable[[], str]) -> str:
        marks = context.parent[GENERATION]
        return caller() if marks is None else f"{marks[0]}{caller()}{marks[1]}"


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """As ``apply_chat_template`` has it, and counted by the `Budget` of the rendering."""

    intercepted_binops = frozenset(("+", "-", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols], cache_size=0)
        self.filters["tojson"] = _to_json
        for name in UNUSED:
            del self.filters[name]
        self.filters = {name: _counted(name, function) for name, function in self.filters.items()}
        tests: dict[str, Any] = dict(self.tests)
        self.tests = tests | {name: _counted(name, tests[name]) for name in LOOK_THROUGH}
        del self.globals["lipsum"]
        self.globals |= {
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
            "dict": _new_dict,
            "namespace": _Namespace,
        }
        self.finalize = _finalized

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = Counting().visit(super()._parse(source, name, filename))
        return tree

    def parsed(self, source: str) -> nodes.Template:
        """The template as it was written, for those who want to know what stands in it."""
        return super()._parse(source, None, None)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Do what an operator says, if it does not grow too much."""
        budget = _budget(context)
        if operator in ("%", "*", "**"):
            budget.grows(growth_of_operator(operator, left, right))
            if operator == "%":
                budget.spells(left, right)
        elif operator == "-":  # of the keys of two objects
            budget.weigh(left, right)
        return budget.made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # as Jinja has it
        """Call what a template calls."""
        owner = getattr(__obj, "__self__", None)
        if owner is __self:
            return __context.call(__obj, *args, **kwargs)
        budget = _budget(__context)
        budget.step(CALL + len(args) + len(kwargs))
        if owner is None:
            owner = getattr(getattr(__obj, "__wrapped__", None), "__self__", None)
        arguments = [*args, *kwargs.values()]
        if isinstance(__obj, Macro) and (__obj.catch_varargs or __obj.catch_kwargs):
            budget.weigh(*arguments)  # they become a tuple and an object
        if owner is not None:
            name = getattr(__obj, "__name__", "")
            budget.grows(growth_of_method(owner, name, arguments))
            budget.will_step(pieces_of_method(owner, name, arguments))
            if isinstance(owner, (str, bytes)):
                budget.spells(owner, *arguments)
            elif isinstance(owner, (list, tuple, MappingView, LoopContext)):
                budget.weigh(owner if not isinstance(owner, LoopContext) else (), *arguments)
        return budget.made(super().call(__context, __obj, *args, **kwargs))

    @pass_context
    def turn(self, context: Context, written: int) -> None:
        """Count one turn of a loop."""
        budget = _budget(context)
        budget.step()
        budget.write(written)

    @pass_context
    def met(self, context: Context) -> bool:
        """Count an item that a loop may leave out."""
        _budget(context).step()
        return True

    @pass_context
    def concatenated(self, context: Context, *parts: Any) -> str:
        """Join values as one text."""
        budget = _budget(context)
        texts = [part if type(part) is str else str(_spelled(budget, part)) for part in parts]
        budget.step()
        budget.write(sum(map(len, texts)))
        return "".join(texts)

    @pass_context
    def weighed(self, context: Context, value: Any) -> Any:
        """Count what a value consists of, and return it."""
        return _weighed(_budget(context), value)

    @pass_context
    def sliced(self, context: Context, value: Any) -> Any:
        """Count a slice, and return it."""
        return _budget(context).made(value)


def _budget(context: Context) -> Budget:
    budget: Budget = context.parent[BUDGET]
    return budget


def _weighed(budget: Budget, value: Any) -> Any:
    if not isinstance(value, int):
        budget.weigh(value)
    return value


@pass_context
def _finalized(context: Context, value: Any) -> Any:
    """Count what is put out; texts are counted by whoever collects them, too, which keeps `set` blocks and macros short."""
    budget = _budget(context)
    if isinstance(value, str):
        budget.write(len(value))
    else:
        _spelled(budget, value)
    return value


def _spelled(budget: Budget, value: Any) -> Any:
    if not isinstance(value, int):
        budget.spells(value)
    return value


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter or a test. That it wants the context keeps Jinja from running it on constants when it compiles."""
    wanted = getattr(getattr(function, "jinja_pass_arg", None), "name", None)

    @pass_context
    def run(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = _budget(context)
        budget.step()
        arguments = [*args, *kwargs.values()]
        check_filter(name, args, kwargs)
        weight = 0
        if name in LOOK_AT_ALL:
            weight = budget.spells(value, *arguments)
        elif name not in LOOK_AT_LITTLE:
            weight = budget.weigh(value, *arguments)
        elif isinstance(value, Sized) and name not in LOOK_AT_NONE:
            budget.step(len(value))
        if name == "sum" and any(isinstance(one, (list, tuple)) for one in arguments) and isinstance(value, Sized):
            budget.will_step(len(value) * weight >> COPY_SHIFT)  # each sum is a copy of the last one
        budget.grows(growth_of_filter(name, value, arguments, weight))
        match wanted:
            case "context":
                args = (context, value, *args)
            case "eval_context":
                args = (context.eval_ctx, value, *args)
            case "environment":
                args = (context.environment, value, *args)
            case _:
                args = (value, *args)
        return budget.made(function(*args, **kwargs))

    return run


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own writes HTML's escapes, which no model was trained on.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


@pass_context
def _strftime_now(context: Context, form: str) -> str:
    if len(form) > MAX_TIME_FORMAT:
        raise TooMuch(f"it asks for a time in a format of more than {MAX_TIME_FORMAT} characters")
    now: datetime | None = context.parent[NOW]
    return (now or datetime.now()).strftime(form)


@pass_context
def _new_dict(context: Context, /, *args: Any, **kwargs: Any) -> Any:
    return _weighed(_budget(context), dict(*args, **kwargs))


class _Namespace(Namespace):
    """A namespace without names that mean something to Python."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # so that a template may name a value "self"
        self, *given = args
        values = dict(*given, **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __repr__(self) -> str:
        return "<Namespace>"  # Jinja's own writes what is in it, however much

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: str) -> None:
    if name.startswith("_"):
        raise SecurityError(f"a namespace has no names with an underscore in front, such as {name!r}")
