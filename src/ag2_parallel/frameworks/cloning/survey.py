"""Walking a team: finding all it is made of, and deciding what is copied."""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks.cloning.anatomy import CONTAINERS
from ag2_parallel.frameworks.cloning.node import Kind, Level, Node, Part, Place
from ag2_parallel.frameworks.cloning.references import class_members, named_globals, named_in_modules
from ag2_parallel.frameworks.cloning.refusals import class_refusal, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ag2_parallel.frameworks.cloning.node import TeamRules

_MOST_SHARED = 100_000
"""Shared objects looked into in search of agents. They are searched nearest first; what lies beyond stays shared."""


class Survey:
    """A team's graph. Making one reads the team and changes nothing.

    Attributes:
        nodes: Every object found, in the order found; the first is the root.
        refusals: Why the team cannot be copied; empty if it can.
    """

    def __init__(self, root: Any, rules: TeamRules) -> None:
        """Walk the team from `root`."""
        self._rules = rules
        self.nodes: list[Node] = []
        self.refusals: list[str] = []
        self._index: dict[int, Node] = {}
        self._owned: deque[Node] = deque()
        self._shared: deque[Node] = deque()
        self._weak: list[tuple[Node, Part]] = []
        self._reach(Part(Place("root"), root, Level.OWNED, ""), None)
        self._walk()
        self._mark_copied()
        self._follow_weak_parts()
        self._mark_copied()
        self._refuse()

    def find(self, obj: Any) -> Node | None:
        """The node of `obj`, if it was found."""
        return self._index.get(id(obj))

    def copied(self) -> Iterable[Node]:
        """The nodes that get a copy."""
        return (node for node in self.nodes if node.copied)

    def _reach(self, part: Part, parent: Node | None) -> Node:
        level = Level.OWNED if isinstance(part.value, self._rules.members) else part.level
        node = self._index.get(id(part.value))
        if node is None:
            node = Node(part.value, level, parent, part.label, part.rule)
            self._index[id(part.value)] = node
            self.nodes.append(node)
        elif level > node.level or (part.rule is not None and node.rule is None):
            # Found again as something closer to the team: taken apart anew, and called by the closer name.
            node.level = max(level, node.level)
            node.rule = part.rule or node.rule
            if parent is not None and not _descends(parent, node):
                node.parent, node.label = parent, part.label
        else:
            return node
        (self._shared if node.level is Level.SHARED else self._owned).append(node)
        return node

    def _walk(self) -> None:
        shared = 0
        while self._owned or self._shared:
            if self._owned:
                self._take_apart(self._owned.popleft())
                continue
            node = self._shared.popleft()
            if node.level is Level.SHARED and shared < _MOST_SHARED:
                shared += 1
                self._take_apart(node)

    def _take_apart(self, node: Node) -> None:
        anatomy = node.anatomy = (node.rule or self._rules.dissect)(node.obj, node.level)
        node.copied = anatomy.copied
        node.edges = []
        for part in anatomy.parts:
            if part.weak:
                self._weak.append((node, part))
            else:
                node.edges.append((part.place, self._reach(part, node)))

    def _mark_copied(self) -> None:
        """Whatever leads to something copied is copied too."""
        sources: dict[int, list[Node]] = defaultdict(list)
        for node in self.nodes:
            for _, target in node.edges:
                sources[id(target)].append(node)
        pending = [node for node in self.nodes if node.copied]
        while pending:
            node = pending.pop()
            found = [source for source in sources[id(node)] if not source.copied]
            found += _state_of_rebuilt(node)
            for other in found:
                other.copied = True
            pending += found

    def _follow_weak_parts(self) -> None:
        for node, part in self._weak:
            target = self.find(part.value)
            if target is not None and target.copied:
                node.edges.append((part.place, target))

    def _refuse(self) -> None:
        stand_ins = {id(node.obj): node.obj for node in self.copied() if isinstance(node.obj, self._rules.members)}
        classes: set[type] = set()
        for node in self.nodes:
            if node.anatomy is None:
                continue
            if node.copied and (reason := _reason(node, stand_ins)) is not None:
                self.refusals.append(refusal(node, reason, self._rules))
            if node.anatomy.kind in {Kind.OBJECT, Kind.OPAQUE} and type(node.obj) not in classes:
                classes.add(type(node.obj))
                self._refuse_class(node)

    def _refuse_class(self, node: Node) -> None:
        """What a class defines is shared by all its instances, so an agent in there could not be replaced."""
        rules = self._rules
        for name, member in class_members(type(node.obj)):
            if _holds(member, rules.owners):
                self.refusals.append(class_refusal(node, f"whose class attribute {name!r} holds an agent", rules))
            elif isinstance(member, FunctionType) and self.find(member) is None:
                named = (*named_globals(member), *named_in_modules(member))
                self.refusals += [
                    class_refusal(node, f"whose method {name} names the agent {global_name!r}, a global", rules)
                    for global_name, value in named
                    if _holds(value, rules.owners)
                ]


def _reason(node: Node, stand_ins: dict[int, Any]) -> str | None:
    """Why a node cannot be copied, or None if it can."""
    assert node.anatomy is not None, "only what was taken apart is copied"
    if node.anatomy.kind is Kind.DEEPCOPIED:
        try:
            copy.deepcopy(node.obj, dict(stand_ins))
        except Exception as error:
            return f"cannot be copied ({error})"
    if node.anatomy.kind is Kind.FUNCTION:
        names = [place.key for place, target in node.edges if place.sort == "module" and target.copied]
        return f"names {names[0]}, where copies would meet the original" if names else None
    return node.anatomy.refusal


def _holds(value: Any, owners: tuple[type, ...]) -> bool:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else (value,)
    return any(isinstance(item, owners) for item in held)


def _state_of_rebuilt(node: Node) -> list[Node]:
    """The containers of an instance that is copied because it leads to the team: its state goes with it."""
    if node.anatomy is None or node.anatomy.copied or node.anatomy.kind is not Kind.OBJECT:
        return []
    found: list[Node] = []
    pending = [target for _, target in node.edges]
    while pending:
        other = pending.pop()
        if type(other.obj) in CONTAINERS and not other.copied and other not in found:
            found.append(other)
            pending += [target for _, target in other.edges]
    return found


def _descends(node: Node, ancestor: Node) -> bool:
    here: Node | None = node
    while here is not None:
        if here is ancestor:
            return True
        here = here.parent
    return False
