"""Which modules are the user's own, and which globals their functions name."""

import json

import clone_harness
import httpx
import pytest

from ag2_parallel.frameworks.cloning.references import (
    OverlaidGlobals,
    _uses_ag2,
    class_members,
    is_user_module,
    named_globals,
    named_in_modules,
)

LIMIT = 3


def within():
    return [LIMIT + step for step in (1, 2)], json


class Shape:
    @property
    def sides(self):
        return LIMIT

    @staticmethod
    def plain():
        return LIMIT

    @classmethod
    def made(cls):
        return cls

    def area(self):
        return self.sides


@pytest.mark.parametrize(
    ("name", "own"),
    [
        (None, True),
        (__name__, True),
        ("__main__", True),
        ("a_notebook_cell", True),
        ("json.decoder", False),
        ("httpx", False),
        ("autogen.agentchat.groupchat", False),
        ("ag2_parallel.tasks", False),
    ],
)
def test_the_users_own_modules(name, own):
    assert is_user_module(name) is own


def test_an_installed_package_is_the_users_if_it_uses_ag2():
    assert _uses_ag2(clone_harness.__name__)
    assert not _uses_ag2(httpx.__name__)


def test_names_in_nested_code_are_found():
    assert dict(named_globals(within)) == {"LIMIT": 3, "json": json}
    assert dict(named_globals(json.dumps)) == {}


def test_functions_of_the_users_classes():
    members = dict(class_members(Shape))
    assert {"sides", "plain", "made", "area"} <= members.keys()
    assert members["sides"](Shape()) == members["plain"]() == LIMIT
    assert list(class_members(httpx.URL)) == []


def test_names_taken_from_other_modules():
    def ask():
        return clone_harness.speaker, json.dumps

    assert list(named_in_modules(ask)) == [("clone_harness.speaker", clone_harness.speaker)]
    assert list(named_in_modules(json.dumps)) == []


def test_overlaid_globals_hide_some_names_and_look_up_the_others():
    module = {"a": 1, "b": 2, "__name__": "m"}
    scope = OverlaidGlobals(module)
    scope["a"] = 10
    module["c"] = 3
    assert eval("a, b, c, __name__, len('xy')", scope, scope) == (10, 2, 3, "m", 2)
    assert module["a"] == 1
