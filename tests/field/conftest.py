"""The lines of AG2 that the field reports are tried on."""

import importlib
import importlib.util

import pytest

LINES = {"classic": "autogen", "ag2": "ag2"}
INSTALLED = [line for line, package in LINES.items() if importlib.util.find_spec(package) is not None]


@pytest.fixture(params=INSTALLED)
def line(request):
    """A module of small agents, for each line that is installed."""
    return importlib.import_module(f"{request.param}_line")


@pytest.fixture
def classic():
    """The agents of AG2 Classic, for what it alone has."""
    return importlib.import_module("classic_line")
