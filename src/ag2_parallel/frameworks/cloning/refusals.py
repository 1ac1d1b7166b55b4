"""Wording what cannot be copied: whose it is, where it sits, why, and what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ag2_parallel.frameworks.cloning.node import Node, TeamRules

_LONGEST_PATH = 160
"""Characters of a path shown; a longer one loses its middle."""


def refusal(node: Node, reason: str, rules: TeamRules) -> str:
    """One sentence about an object that cannot be copied, ending with what to do."""
    owner, path = _whereabouts(node, rules.owners)
    what = rules.owner(owner)
    if path:
        what = f"{what}: {path} ({_type(node.obj)})"
    return f"{what} {reason}; pass a factory"


def class_refusal(node: Node, what_of_it: str, rules: TeamRules) -> str:
    """One sentence about an object whose class leads to an agent, which copies would share."""
    owner, path = _whereabouts(node, rules.owners)
    what = f"{rules.owner(owner)}: {path}" if path else rules.owner(owner)
    return f"{what} is a {type(node.obj).__name__}, {what_of_it}, which copies would share; pass a factory"


def _whereabouts(node: Node, owners: tuple[type, ...]) -> tuple[Any, str]:
    labels: list[str] = []
    here = node
    while here.parent is not None and (here is node or not isinstance(here.obj, owners)):
        labels.append(here.label)
        here = here.parent
    path = "".join(reversed(labels)).removeprefix(", ").lstrip(".")
    if len(path) > _LONGEST_PATH:
        half = _LONGEST_PATH // 2
        path = f"{path[:half]} ... {path[-half:]}"
    return here.obj, path


def _type(obj: Any) -> str:
    cls = type(obj)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"
