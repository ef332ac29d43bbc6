"""
Counting, put into a template between parsing and compiling.

Jinja's own sandbox keeps a template from reaching what it should not, but not from running for ever. So loops count their turns,
and whatever makes a value that Jinja would make by itself (``~``, lists, slices, comparisons) becomes a call of the environment.
"""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

__all__ = ["Counting", "constants"]


class Counting(NodeTransformer):
    """Puts the counting into a parsed template."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        """Count each turn, and the text that stands in the loop itself."""
        self.generic_visit(node)
        if node.test is not None:  # an item that is left out takes time too
            node.test = nodes.And(_call("met", line=node.lineno), node.test).set_lineno(node.lineno)
        written = sum(map(_written, node.body))
        node.body.insert(0, nodes.ExprStmt(_call("turn", nodes.Const(written), line=node.lineno)).set_lineno(node.lineno))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """``a ~ b``"""
        self.generic_visit(node)
        return _call("concatenated", *node.nodes, line=node.lineno)

    def visit_List(self, node: nodes.List) -> nodes.Node:
        """``[a, b]``"""
        self.generic_visit(node)
        constant = all(isinstance(one, nodes.Const) for one in node.items)
        return node if constant else _call("weighed", node, line=node.lineno)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        """``(a, b)``, where it is no target."""
        return self.visit_List(node) if node.ctx == "load" else node  # type: ignore[arg-type]  # both have items

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        """``{a: b}``"""
        self.generic_visit(node)
        return _call("weighed", node, line=node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """``a == b``, if neither is a constant: with one, it is over at the first difference; and what ``in`` looks through."""
        self.generic_visit(node)
        sides = [node.expr, *(one.expr for one in node.ops)]
        compares = not any(isinstance(side, nodes.Const) for side in sides)
        if compares:
            node.expr = _call("weighed", node.expr, line=node.lineno)
        for one in node.ops:
            if compares or (one.op in ("in", "notin") and not isinstance(one.expr, nodes.Const)):
                one.expr = _call("weighed", one.expr, line=node.lineno)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        """``a[1:]``"""
        self.generic_visit(node)
        is_slice = isinstance(node.arg, nodes.Slice) and node.ctx == "load"
        return _call("sliced", node, line=node.lineno) if is_slice else node


def _call(name: str, *arguments: nodes.Expr, line: int) -> nodes.Call:
    call = nodes.Call(nodes.EnvironmentAttribute(name), list(arguments), [], None, None)
    call.set_lineno(line)
    return call


def _written(node: nodes.Node) -> int:
    """The characters that stand in a node as text or as constants, without those in loops and macros, which count themselves."""
    if isinstance(node, (nodes.For, nodes.Macro)):
        return 0
    if isinstance(node, nodes.TemplateData):
        return len(node.data)
    return sum(map(_written, node.iter_child_nodes()))


def constants(tree: nodes.Template) -> Iterator[str]:
    """Every text that stands in a template, between its tags or as a constant."""
    for data in tree.find_all(nodes.TemplateData):
        yield data.data
    for constant in tree.find_all(nodes.Const):
        if isinstance(constant.value, str):
            yield constant.value
