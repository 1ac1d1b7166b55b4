"""Turning a survey into a plan."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from types import CellType
from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks.cloning import late
from ag2_parallel.frameworks.cloning.anatomy import CONTAINERS
from ag2_parallel.frameworks.cloning.node import LATE_KINDS, Anatomy, Kind, Node
from ag2_parallel.frameworks.cloning.plan import FunctionParts, Plan, Ref, fill_dict, fill_entry, fill_set
from ag2_parallel.frameworks.cloning.references import OverlaidGlobals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_RESTORED = frozenset({"state", "items", "pairs"})
"""Stages of a reduced object that come after it is made."""


class Compiler:
    """One compilation.

    Attributes:
        plan: The plan made.
        circles: Nodes that need each other to be made, so that none can come first; the plan is of no use then.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Compile a plan that copies `nodes`, all of them marked as copied."""
        self.plan = Plan()
        self.circles: list[Node] = []
        self._count = 0
        self._first_late = 0
        self._slots: dict[int, int] = {}
        self._bodies: dict[int, int] = {}
        self._overlays: dict[int, int] = {}
        self._of_kind: dict[Kind, list[Node]] = {kind: [] for kind in Kind}
        for node in nodes:
            self._of_kind[_anatomy(node).kind].append(node)
        self._assign_plain()
        self._assign_made()
        self._assign_instances()
        self._assign_functions()
        self._assign_late()
        for kind in Kind:
            for node in self._of_kind[kind]:
                _PATCHES.get(kind, Compiler._patch_attributes)(self, node)

    def slot(self, node: Node) -> int:
        """The slot of a copied node."""
        return self._slots[id(node)]

    def _take_slot(self, taken_by: dict[int, int], key: object) -> None:
        taken_by[id(key)] = self._count
        self._count += 1

    def _assign_plain(self) -> None:
        for node in self._of_kind[Kind.DICT]:
            if type(node.obj) is dict:
                self.plan.dicts.append(_anatomy(node).snapshot)
                self._take_slot(self._slots, node)
        for node in self._of_kind[Kind.OBJECT]:
            attributes = _anatomy(node).snapshot.attributes
            if attributes is not None:
                self.plan.dicts.append(attributes)
                self._take_slot(self._bodies, node)
        for node in self._of_kind[Kind.LIST]:
            if type(node.obj) is list:
                self.plan.lists.append(_anatomy(node).snapshot)
                self._take_slot(self._slots, node)

    def _assign_made(self) -> None:
        containers = self._of_kind[Kind.DICT] + self._of_kind[Kind.LIST] + self._of_kind[Kind.SET]
        made: list[tuple[Node, Callable[[], Any]]] = [
            (node, _anatomy(node).snapshot.copy) for node in containers if id(node) not in self._slots
        ]
        made += [(node, _anatomy(node).snapshot) for node in self._of_kind[Kind.FRESH]]
        made += [(node, CellType) for node in self._of_kind[Kind.CELL]]
        for node, maker in made:
            self.plan.made.append((maker, ()))
            self._take_slot(self._slots, node)
        for node in self._of_kind[Kind.FUNCTION]:
            scope = node.obj.__globals__
            if _names_team(node) and id(scope) not in self._overlays:
                self.plan.made.append((OverlaidGlobals, (scope,)))
                self._take_slot(self._overlays, scope)

    def _assign_instances(self) -> None:
        for node in self._of_kind[Kind.OBJECT]:
            body = _anatomy(node).snapshot
            self.plan.instances.append((body.type, self._bodies.get(id(node)), tuple(body.slots.items())))
            self._take_slot(self._slots, node)
            if body.identified_by is not None:
                self.plan.identified.append((self.slot(node), body.identified_by))

    def _assign_functions(self) -> None:
        for node in self._of_kind[Kind.FUNCTION]:
            targets = {place.key: target for place, target in node.edges if place.sort == "cell"}
            cells = tuple(
                self.slot(targets[i]) if i in targets and targets[i].copied else cell
                for i, cell in enumerate(node.obj.__closure__ or ())
            )
            overlay = self._overlays[id(node.obj.__globals__)] if _names_team(node) else None
            self.plan.functions.append(FunctionParts(node.obj, overlay, cells))
            self._take_slot(self._slots, node)

    def _assign_late(self) -> None:
        nodes = {id(node): node for kind in LATE_KINDS for node in self._of_kind[kind]}
        needs = {key: [id(target) for target in _needs(node) if id(target) in nodes] for key, node in nodes.items()}
        try:
            order = [nodes[key] for key in TopologicalSorter(needs).static_order()]
        except CycleError as error:
            self.circles = [nodes[key] for key in error.args[1]]
            order = list(nodes.values())
        self._first_late = self._count
        for node in order:
            self._take_slot(self._slots, node)
        seen = [(id(node.obj), self.slot(node)) for node in self._of_kind[Kind.OBJECT]]
        for node in order:
            parts = [(place, self._reference(target)) for place, target in node.edges]
            self.plan.late.append((late.maker(_anatomy(node), parts, seen), []))
            if _anatomy(node).kind is Kind.REDUCED:
                self.plan.fills.append(late.restorer(self.slot(node), _anatomy(node), parts))

    def _reference(self, target: Node) -> Any:
        return Ref(self.slot(target)) if target.copied else target.obj

    def _put(self, whole: int, key: Any, target: Node) -> None:
        slot = self.slot(target)
        if slot < self._first_late:
            self.plan.items.append((whole, key, slot))
        else:
            self.plan.late[slot - self._first_late][1].append((whole, key))

    def _patch_dict(self, node: Node) -> None:
        slot = self.slot(node)
        if any(place.sort == "key" and target.copied for place, target in node.edges):
            self.plan.fills.append(fill_dict(slot, self._entries(node)))
            return
        for place, target in node.edges:
            if not target.copied:
                continue
            if place.sort == "item":
                self._put(slot, place.key, target)
            elif place.sort == "entry":
                self.plan.fills.append(fill_entry(slot, self.slot(target), place.key))
        self._patch_attributes(node)

    def _entries(self, node: Node) -> list[tuple[Any, Any]]:
        keys = {id(place.key): self._reference(target) for place, target in node.edges if place.sort == "key"}
        values = {id(place.key): self._reference(target) for place, target in node.edges if place.sort == "item"}
        return [(keys.get(id(k), k), values.get(id(k), v)) for k, v in _anatomy(node).snapshot.items()]

    def _patch_list(self, node: Node) -> None:
        for place, target in node.edges:
            if target.copied:
                self._put(self.slot(node), place.key, target)

    def _patch_set(self, node: Node) -> None:
        if any(target.copied for _, target in node.edges):
            members = {id(place.key): self._reference(target) for place, target in node.edges}
            self.plan.fills.append(fill_set(self.slot(node), [members.get(id(m), m) for m in _anatomy(node).snapshot]))

    def _patch_object(self, node: Node) -> None:
        for place, target in node.edges:
            if target.copied and place.sort == "attr":
                self._put(self._bodies[id(node)], place.key, target)
            elif target.copied:
                self.plan.attributes.append((self.slot(node), place.key, self.slot(target)))

    def _patch_function(self, node: Node) -> None:
        overlay = self._overlays.get(id(node.obj.__globals__))
        for place, target in node.edges:
            if target.copied and place.sort == "global" and overlay is not None:
                self._put(overlay, place.key, target)
        self._patch_attributes(node)

    def _patch_cell(self, node: Node) -> None:
        for _, target in node.edges:
            self.plan.attributes.append((self.slot(node), "cell_contents", self.slot(target)))

    def _patch_attributes(self, node: Node) -> None:
        for place, target in node.edges:
            if target.copied and place.sort == "attr":
                self.plan.attributes.append((self.slot(node), place.key, self.slot(target)))


def _needs(node: Node) -> list[Node]:
    """What must be there before `node` is made: its parts, and what lies in containers that making it reads."""
    found: list[Node] = []
    reads = {"args", "keywords"}
    pending = [target for place, target in node.edges if place.sort not in _RESTORED]
    read = {id(target) for place, target in node.edges if place.sort in reads}
    while pending:
        target = pending.pop()
        found.append(target)
        if id(target) in read and type(target.obj) in CONTAINERS | {tuple}:
            inside = [part for _, part in target.edges if id(part) not in read]
            read.update(map(id, inside))
            pending += inside
    return found


def _names_team(node: Node) -> bool:
    return any(place.sort == "global" and target.copied for place, target in node.edges)


def _anatomy(node: Node) -> Anatomy:
    assert node.anatomy is not None, "only what was taken apart is copied"
    return node.anatomy


_PATCHES: dict[Kind, Callable[[Compiler, Node], None]] = {
    Kind.DICT: Compiler._patch_dict,  # noqa: SLF001 - its own table
    Kind.LIST: Compiler._patch_list,  # noqa: SLF001
    Kind.SET: Compiler._patch_set,  # noqa: SLF001
    Kind.OBJECT: Compiler._patch_object,  # noqa: SLF001
    Kind.FUNCTION: Compiler._patch_function,  # noqa: SLF001
    Kind.CELL: Compiler._patch_cell,  # noqa: SLF001
}
