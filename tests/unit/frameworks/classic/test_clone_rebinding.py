"""Whatever code of an agent leads back to an agent is rebuilt around the copy, or refused by name."""

import functools
import threading
import weakref
from typing import NamedTuple

import pytest
from autogen.agentchat.group.context_variables import ContextVariables
from clone_harness import chat, clone, speaker

from ag2_parallel.frameworks.classic.cloning import Template

desk = speaker("desk")
peers = {"desk": desk}


def ask_desk(text: str) -> str:
    return f"{_through(text)} at {id(desk)}"


def _through(text):
    return f"{peers['desk'].name} {id(peers['desk'])} {text}"


class Helper:
    """An object of the user's that holds an agent, and things of its own."""

    def __init__(self, agent, database):
        self.agent = agent
        self.database = database
        self.asked = []

    def ask(self, text):
        self.asked.append(text)
        return self.agent

    def __call__(self, messages):
        self.asked.append(messages)
        self.database.append(self.agent)
        return messages


class Slotted:
    __slots__ = ("__agent", "unset")

    def __init__(self, agent):
        self.__agent = agent

    def agent(self):
        return self.__agent


class Pair(NamedTuple):
    agent: object
    note: str


class Book(dict):
    """A dict of the user's own class."""


class TestRebinding:
    def test_partial_functions(self):
        agent = speaker("agent")

        def act(who, *, beside, text):
            return who, beside, text

        bound = functools.partial(act, agent, beside={"agent": agent})
        bound.note = "kept"
        agent.register_function({"act": bound})
        copied = clone(agent)
        assert copied.function_map["act"](text="x") == (copied, {"agent": copied}, "x")
        assert copied.function_map["act"].note == "kept"
        assert bound(text="x")[0] is agent

    def test_bound_methods_of_agents(self):
        agent = speaker("agent", default_auto_reply="hm")
        agent.register_function({"last": agent.last_message, "set": agent.update_system_message})
        copied = clone(agent)
        copied.function_map["set"]("new")
        assert copied.system_message == "new"
        assert agent.system_message == "You are a helpful AI Assistant."
        assert copied.function_map["last"].__self__ is copied

    def test_an_object_that_holds_an_agent_is_copied_with_its_containers(self):
        agent = speaker("agent")
        helper = Helper(agent, database := _Database())
        agent.register_function({"ask": helper.ask})
        agent.register_hook("process_all_messages_before_reply", helper)
        copied = clone(agent)
        assert copied.function_map["ask"]("q") is copied
        mine = copied.function_map["ask"].__self__
        assert mine is copied.hook_lists["process_all_messages_before_reply"][0]
        assert (mine.asked, helper.asked) == (["q"], [])
        assert mine.database is database
        chat(speaker("user"), copied, "hello")
        assert database.rows == [copied]
        assert helper.agent is agent

    def test_closures_in_closures_defaults_and_attributes(self):
        agent = speaker("agent")

        def outer(fallback=agent, *, other=agent):
            def inner():
                return agent

            return inner(), fallback, other

        outer.owner = agent
        agent.register_function({"outer": outer})
        copied = clone(agent)
        made = copied.function_map["outer"]
        assert made() == (copied, copied, copied)
        assert made.owner is copied
        named = ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__")
        assert all(getattr(made, name) == getattr(outer, name) for name in named)
        assert outer() == (agent, agent, agent)

    def test_a_recursive_function_and_an_empty_cell(self):
        agent = speaker("agent")

        def down(n):
            return agent if n == 0 else down(n - 1)

        def unset():
            return agent, later

        agent.register_function({"down": down, "unset": unset})
        copied = clone(agent)
        assert copied.function_map["down"](3) is copied
        with pytest.raises(NameError):
            copied.function_map["unset"]()
        later = 1
        assert agent.function_map["unset"]() == (agent, later)

    def test_lambdas_sets_tuples_slots_weak_references(self):
        agent = speaker("agent")
        members, frozen, pair = {agent, "x"}, frozenset({agent}), (agent, 1)
        slotted, named, reference = Slotted(agent), Pair(agent, "n"), weakref.ref(agent)
        elsewhere = weakref.ref(speaker("elsewhere"))
        agent.register_function(
            {"get": lambda: (members, frozen, pair, slotted, named, reference, elsewhere, slotted.agent)}
        )
        copied = clone(agent)
        got = copied.function_map["get"]()
        assert got[:3] == ({copied, "x"}, frozenset({copied}), (copied, 1))
        assert got[3].agent() is copied
        assert not hasattr(got[3], "unset")
        assert (type(got[4]), got[4]) == (Pair, (copied, "n"))
        assert got[5]() is copied
        assert got[6] is elsewhere
        assert got[7]() is copied

    def test_builtin_methods_follow_what_they_are_bound_to(self):
        agent = speaker("agent")
        found, free = [agent], []
        agent.register_function({"count": found.count, "add": free.append})
        copied = clone(agent)
        assert copied.function_map["count"](copied) == 1
        assert copied.function_map["add"].__self__ is free

    def test_globals_of_the_users_module(self):
        """A function that names a global agent meets the copy; the module is not touched."""
        agent = speaker("agent")
        agent.register_function({"ask_desk": ask_desk})
        copy = Template(agent).clone()
        (mine,) = [other for other in copy.agents if other.name == "desk"]
        assert mine is not desk
        assert copy.root.function_map["ask_desk"]("x") == f"desk {id(mine)} x at {id(mine)}"
        assert ask_desk("x") == f"desk {id(desk)} x at {id(desk)}"
        assert peers == {"desk": desk}

    def test_globals_seen_by_a_rebuilt_function_are_the_modules_own(self):
        agent = speaker("agent")
        scope = {"agent": agent, "__name__": "notebook"}
        exec(
            "def look():\n    global count\n    count = late + 1\n    return agent, len(scope_name()), count\n"
            "def scope_name():\n    return __name__\n",
            scope,
        )
        agent.register_function({"look": scope["look"]})
        copied = clone(agent)
        scope["late"] = 41
        assert copied.function_map["look"]() == (copied, 8, 42)
        assert "count" not in scope
        del scope["late"]
        with pytest.raises(NameError):
            copied.function_map["look"]()

    def test_context_variables_are_the_copys_own_in_closures_too(self):
        variables = ContextVariables(data={"n": 0})
        agent = speaker("agent")

        def count():
            variables["n"] += 1
            return variables["n"]

        agent.register_function({"count": count})
        assert [clone(agent).function_map["count"]() for _ in range(3)] == [1, 1, 1]
        assert variables["n"] == 0

    @pytest.mark.parametrize(
        ("make", "named"),
        [
            (lambda agent: functools.lru_cache(lambda: agent), "_lru_cache_wrapper"),
            (lambda agent: functools.partial(len, Book(agent=agent)), "Book"),
        ],
    )
    def test_what_cannot_be_rebuilt_is_refused_by_name(self, make, named):
        agent = speaker("agent")
        agent.register_function({"it": make(agent)})
        (refusal,) = Template(agent).refusals
        assert refusal.startswith("agent 'agent': _function_map['it']")
        assert named in refusal
        assert refusal.endswith("; pass a factory")


class _Database:
    def __init__(self):
        self.rows = []
        self.lock = threading.Lock()

    def append(self, row):
        with self.lock:
            self.rows.append(row)
