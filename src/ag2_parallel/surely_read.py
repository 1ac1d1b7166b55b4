"""What a template reads of a variable whatever the values are: mistakes in it are known before anything starts."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ag2_parallel.templating import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import jinja2.nodes


@lru_cache(maxsize=64)  # many tasks share a template
def surely_read(text: str, variable: str) -> frozenset[str]:
    """Names that a template cannot do without: `variable.name` or `variable["name"]`.

    Places behind a condition, in the body of a loop or a macro, and those that ask first (`is defined`, `default`) may
    do without the name, so they do not count. A template that does not parse reads nothing.
    """
    import jinja2
    import jinja2.nodes

    try:
        tree = parsed(text)
    except (jinja2.TemplateError, RecursionError):
        return frozenset()
    if any(node.name == variable and node.ctx != "load" for node in tree.find_all(jinja2.nodes.Name)):
        return frozenset()  # the template gives the word a meaning of its own
    return frozenset(_read(tree, variable))


def _read(node: jinja2.nodes.Node, variable: str) -> Iterator[str]:
    for child in _evaluated(node):
        if (name := _item(child, variable)) is None:
            yield from _read(child, variable)
        elif _demands(node):
            yield name


def _evaluated(node: jinja2.nodes.Node) -> Iterable[jinja2.nodes.Node]:
    """The parts of a node that are evaluated whenever it is."""
    from jinja2 import nodes

    match node:
        case nodes.If() | nodes.CondExpr():
            return [node.test]
        case nodes.For():
            return [node.iter]
        case nodes.And() | nodes.Or():
            return [node.left]
        case nodes.Call():
            return [node.node]
        case nodes.Macro() | nodes.CallBlock() | nodes.FilterBlock() | nodes.Filter() | nodes.Test():
            return []
        case _:
            return node.iter_child_nodes()


def _demands(node: jinja2.nodes.Node) -> bool:
    """Whether a node fails on a value that is not there, and does not just pass it on."""
    from jinja2 import nodes

    kinds = (nodes.Output, nodes.Getattr, nodes.Getitem, nodes.Call, nodes.If, nodes.For, nodes.CondExpr)
    return isinstance(node, (*kinds, nodes.BinExpr, nodes.UnaryExpr, nodes.Concat))


def _item(node: jinja2.nodes.Node, variable: str) -> str | None:
    from jinja2 import nodes

    if not (isinstance(node, nodes.Getattr | nodes.Getitem) and isinstance(node.node, nodes.Name)):
        return None
    if node.node.name != variable:
        return None
    if isinstance(node, nodes.Getattr):
        return node.attr
    return node.arg.value if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str) else None
