"""Environment variables in task files: `${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.task_files.document import Document, Inside, Plain
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.redaction import SECRET_NAMES, Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLE: Final = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

LITERAL: Final = frozenset({"prompt", "prompt_template"})
"""Keys whose text is left as it is: prompts may well speak of `${HOME}`."""


class Variables:
    """Fills variables in.

    Attributes:
        redactor: Knows the values of all variables that hold keys, by their own name or by the one they stand under.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Take the values from `environment`."""
        self.redactor = Redactor()
        self._environment = environment

    def fill(self, document: Document) -> Document:
        """The document with all variables replaced.

        Raises:
            ConfigurationError: For every variable that is not set and has no default.
        """
        problems: list[str] = []
        data = self._filled(document, document.data, (), problems)
        self.redactor.learn(data)  # keys that the file itself has
        if problems:
            raise ConfigurationError(problems)
        return Document(document.path, data, document.find)

    def _filled(self, document: Document, value: Any, inside: Inside, problems: list[str]) -> Any:
        if isinstance(value, dict):
            return {
                key: item if key in LITERAL else self._filled(document, item, (*inside, key), problems)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._filled(document, item, (*inside, at), problems) for at, item in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value

        def replaced(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if name is None:
                return "${"  # written $${
            found = self._environment.get(name) or default
            if found is None and name in self._environment:
                found = ""
            if found is None:
                hint = f"set it, or write ${{{name}:-default}}"
                problems.append(f"{document.where(inside)}: the environment variable {name} is not set; {hint}")
                return ""
            telling = [name, *(step for step in inside if isinstance(step, str))]
            if any(SECRET_NAMES.search(word) for word in telling):
                self.redactor.learn({"api_key": found})
            return found

        return (
            type(value)(_VARIABLE.sub(replaced, value)) if isinstance(value, Plain) else _VARIABLE.sub(replaced, value)
        )
