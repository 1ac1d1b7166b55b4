"""Finding the object that "module:attribute" names."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from functools import reduce
from typing import Any

from ag2_parallel.errors import ConfigurationError


def locate(path: str) -> Any:
    """Import the module and get the attribute, which may have dots of its own.

    Raises:
        ConfigurationError: If the text has another form, or the module or attribute does not exist.
    """
    module_name, separator, attribute = path.partition(":")
    if not separator or not module_name or not attribute:
        raise ConfigurationError(f'"{path}" names no object: write "module:attribute", as in "my_agents:build_team"')
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(f'"{path}": module "{module_name}" cannot be imported: {error}') from error
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        near = get_close_matches(attribute, vars(module), n=1)
        hint = f'; did you mean "{module_name}:{near[0]}"?' if near else ""
        raise ConfigurationError(f'"{path}": module "{module_name}" has no "{attribute}"{hint}') from error
