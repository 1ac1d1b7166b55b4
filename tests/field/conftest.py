"""The lines of AG2 that the field reports are tried on."""

import importlib

import pytest
from agents import INSTALLED, LINES


@pytest.fixture(params=LINES)
def line(request):
    """A module of small agents, for each line that is installed."""
    return _module(request.param)


@pytest.fixture
def classic():
    """The agents of AG2 Classic, for what it alone has."""
    return _module("classic")


@pytest.fixture
def ag2():
    """The agents of AG2 1.x, likewise."""
    return _module("ag2")


def _module(line):
    return importlib.import_module(f"{line}_line")


def pytest_collection_modifyitems(items):
    """A line that is not installed is nobody's failure: its tests are not there."""
    missing = set(LINES) - set(INSTALLED)
    items[:] = [item for item in items if not (missing & _lines_of(item))]


def _lines_of(item):
    named = {"classic", "ag2"} & set(getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return named | ({parameters["line"]} if "line" in parameters else set())
