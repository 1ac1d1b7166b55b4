"""YAML in which text stays text: `no`, `0123` and `12:30` are what they look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from ag2_parallel.cli.task_files.document import Document, Inside, Place, Plain
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_STANDARD: Final = "tag:yaml.org,2002:"
_DATA: Final = frozenset({"str", "int", "float", "bool", "null", "seq", "map", "timestamp", "merge", "value"})
_NULL: Final = f"{_STANDARD}null"


def yaml_document(path: Path, text: str) -> Document:
    """Read a YAML file.

    Raises:
        ConfigurationError: With line and column, for what is no YAML, a doubled key, or a tag of a program.
    """
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            data = None if root is None else _Reader(path, loader).value(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        told = "; ".join(part for part in (error.problem, error.context, _advice(error.problem, mark, text)) if part)
        raise ConfigurationError(f"{where}: no valid YAML: {told}") from None  # the error shows lines of the file
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(f"{path}: no valid YAML: {error}") from None
    return Document(path, data, lambda inside: _place(root, inside))


def _advice(problem: str | None, mark: Any, text: str) -> str | None:
    """What to do about the commonest slips, which the parser tells in words of its own."""
    problem = problem or ""
    if "mapping values are not allowed" in problem:
        return 'put text that has ": " in it in quotes, or below a "|"'
    if "cannot start any token" in problem:
        line = text.splitlines()[mark.line] if mark else ""
        return (
            "indent with blanks, not with tabs" if line[: mark.column + 1].endswith("\t") else "put this text in quotes"
        )
    if "did not find expected key" in problem or "expected '-' indicator" in problem:
        return "check how far this line is indented, and the quotes above it"
    return None


class _Reader:
    """Makes data of YAML's nodes."""

    def __init__(self, path: Path, loader: Any) -> None:
        self._path = path
        self._loader = loader
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()

    def value(self, node: Any) -> Any:
        if id(node) in self._open:
            raise self._error(node, "an alias stands inside what it stands for")
        if id(node) not in self._made:  # an alias is the same node: read once, however often it is used
            self._open.add(id(node))
            self._made[id(node)] = self._make(node)
            self._open.discard(id(node))
        return self._made[id(node)]

    def _make(self, node: Any) -> Any:
        if node.tag.removeprefix(_STANDARD) not in _DATA:
            raise self._error(node, f"the tag {node.tag} is not known; task files have data alone")
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _NULL:
                return None
            return node.value if node.style else Plain(node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item) for item in node.value]
        self._check_keys(node)
        self._loader.flatten_mapping(node)  # takes in what `<<` names
        return {key.value: self.value(item) for key, item in node.value}

    def _check_keys(self, node: Any) -> None:
        seen: dict[str, Any] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(
                    key, "a key must be text; text that begins with a brace, such as {{ text }}, stands in quotes"
                )
            if key.value in seen:
                first = seen[key.value].start_mark.line + 1
                raise self._error(key, f"the key {key.value!r} is there twice, first in line {first}")
            seen[key.value] = key

    def _error(self, node: Any, problem: str) -> ConfigurationError:
        mark = node.start_mark
        return ConfigurationError(f"{self._path}:{mark.line + 1}:{mark.column + 1}: {problem}")


def _place(root: Any, inside: Inside) -> Place:
    """Where a part begins: a mapping's item at its key."""
    node, mark = root, None if root is None else root.start_mark
    for step in inside:
        if isinstance(node, yaml.MappingNode):
            pairs = [(key, item) for key, item in node.value if key.value == step]
            if not pairs:
                break
            key, node = pairs[-1]
            mark = key.start_mark
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            mark = node.start_mark
    return Place() if mark is None else Place(mark.line + 1, mark.column + 1)
