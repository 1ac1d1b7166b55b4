"""Jinja2 as prompts and names use it: sandboxed, strict, and unable to change what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import jinja2
    import jinja2.nodes


_SHOWN: Final = 10
"""Names that a message lists."""


class TemplateError(ValueError):
    """Raised for a template that does not parse or render; the text says why."""


class CompiledTemplate:
    """A template ready to be filled any number of times, from any thread.

    Attributes:
        text: The template's text.
        needed: Names that must be given.
        optional: Names that the template asks about first (`is defined`, `default`), and can do without.
    """

    def __init__(self, text: str, *, refuse_none: bool = False) -> None:
        """Parse it.

        Args:
            text: The template.
            refuse_none: Whether a place that is filled with None is a problem, and not the word "None".

        Raises:
            TemplateError: With the line, if it does not parse.
        """
        import jinja2
        import jinja2.meta

        self.text = text
        environment = _environment(refuse_none)
        try:
            tree = environment.parse(text)
            self._template = environment.from_string(text)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"line {error.lineno} of the template: {error.message}") from error
        except (jinja2.TemplateError, RecursionError) as error:
            raise TemplateError(str(error)) from error
        names = jinja2.meta.find_undeclared_variables(tree) - set(environment.globals)
        self.optional = frozenset(names & set(_asked_for(tree)))
        self.needed = frozenset(names - self.optional)

    def render(self, values: Mapping[str, Any]) -> str:
        """The text with every place filled.

        Raises:
            TemplateError: For a name that is not there, something the sandbox forbids, or code of the template
                that fails.
        """
        try:
            return self._template.render(values)
        except _EmptyPlaceError as error:
            raise TemplateError(_told_of_empty(self.needed | self.optional, values)) from error
        except Exception as error:  # code of the template, or of a value in it
            raise TemplateError(str(error)) from error


def parsed(text: str) -> jinja2.nodes.Template:
    """A template's tree.

    Raises:
        jinja2.TemplateError: If it does not parse.
    """
    return _environment(False).parse(text)  # noqa: FBT003 - the cache's key


@cache
def _environment(refuse_none: bool) -> jinja2.Environment:  # noqa: FBT001 - the cache's key
    import jinja2
    import jinja2.sandbox
    import jinja2.utils

    class Missing(jinja2.StrictUndefined):
        """Tells of a name that a mapping has not which names it has, and not of which Python class it is."""

        __slots__ = ()

        def __init__(
            self,
            hint: str | None = None,
            obj: Any = jinja2.utils.missing,
            name: str | None = None,
            exc: type[jinja2.TemplateRuntimeError] = jinja2.UndefinedError,
        ) -> None:
            super().__init__(_told_of_missing(obj, name) if isinstance(obj, Mapping) else hint, obj, name, exc)

    return jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=Missing, keep_trailing_newline=True, finalize=_not_none if refuse_none else None
    )


def _told_of_missing(names: Iterable[str], wanted: str | None) -> str:
    """What is there in the place of what is not; made for every name that is asked for first, so it is kept cheap."""
    known = [repr(name) for name in islice(names, _SHOWN + 1)]
    there = f"there are {', '.join(known[:_SHOWN])}{' and more' if len(known) > _SHOWN else ''}"
    return f"{wanted!r} is not there; {there if known else 'nothing is'}"


def _not_none(value: Any) -> Any:
    if value is None:
        raise _EmptyPlaceError
    return value


class _EmptyPlaceError(Exception):
    """A place is filled with None."""


def _told_of_empty(names: Iterable[str], values: Mapping[str, Any]) -> str:
    """Which names of a template have no value, or the columns of a `row` that is asked for them."""
    empty = sorted(name for name in names if name in values and values[name] is None)
    row = values.get("row")
    if not empty and isinstance(row, Mapping):
        empty = [f'row["{column}"]' for column, cell in row.items() if cell is None]
    if not empty:
        return "a place is filled with an empty value (null); write {{ ... or '' }} there to allow it"
    return f"{', '.join(empty)} is empty (null); write {{{{ {empty[0]} or '' }}}} to allow it"


def _asked_for(tree: jinja2.nodes.Template) -> Iterator[str]:
    """Names that stand before `is defined`, `is undefined` or `default`."""
    import jinja2.nodes

    for kind, words in ((jinja2.nodes.Test, {"defined", "undefined"}), (jinja2.nodes.Filter, {"default", "d"})):
        for node in tree.find_all(kind):
            if node.name in words and isinstance(node.node, jinja2.nodes.Name):
                yield node.node.name
