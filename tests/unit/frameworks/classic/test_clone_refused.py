"""What cannot be copied is refused by name: whose it is, where it sits, why, and what to do."""

import contextlib
import sqlite3

import clone_office
import pytest
from autogen.agentchat.contrib.capabilities.agent_capability import AgentCapability
from autogen.agentchat.contrib.capabilities.teachability import Teachability
from autogen.agentchat.group.context_variables import ContextVariables
from autogen.coding import DockerCommandLineCodeExecutor
from clone_harness import clone, speaker

from ag2_parallel.errors import UnsupportedAgentError
from ag2_parallel.frameworks.classic.cloning import Template


class _Unwilling:
    def __deepcopy__(self, memo):
        raise RuntimeError("not me")


class TestRefused:
    def refusals(self, name, value):
        agent = speaker("agent")
        setattr(agent, name, value)
        template = Template([speaker("other"), agent])
        with pytest.raises(UnsupportedAgentError) as caught:
            template.clone()
        assert list(caught.value.problems) == template.refusals
        assert all(refusal.endswith("; pass a factory") for refusal in template.refusals)
        return template.refusals

    def test_a_handle_among_an_agents_attributes(self, tmp_path):
        class Store:
            pass

        store = Store()
        with (tmp_path / "log").open("w") as log:
            store.files = {"log": log}
            (refusal, *_) = self.refusals("store", store)
        # What Python says in the brackets differs from version to version.
        assert refusal.startswith(
            "agent 'agent': store.files['log'] (_io.TextIOWrapper) cannot be copied (cannot pickle"
        )
        assert refusal.endswith("; pass a factory")

    def test_a_connection_among_the_context_variables(self):
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            agent = speaker("agent", context_variables=ContextVariables(data={"db": database}))
            (refusal,) = Template(agent).refusals
        assert refusal == (
            "agent 'agent': context_variables.data['db'] (sqlite3.Connection) cannot be copied "
            "(cannot pickle 'sqlite3.Connection' object); pass a factory"
        )

    def test_an_object_that_fails_to_copy(self):
        (refusal,) = self.refusals("unwilling", _Unwilling())
        assert "agent 'agent': unwilling" in refusal
        assert "not me" in refusal

    def test_a_container_executor(self):
        # Made without its constructor, which would start a container.
        executor = DockerCommandLineCodeExecutor.__new__(DockerCommandLineCodeExecutor)
        (refusal,) = self.refusals("_code_executor", executor)
        assert refusal.startswith("agent 'agent': _code_executor (autogen.coding.")
        assert "runs code in one container" in refusal

    @pytest.mark.parametrize(
        ("kind", "why"),
        [
            ("_Router", "whose method route names the agent 'clerk', a global"),
            ("_Switchboard", "whose method lines names the agent 'clerks', a global"),
            ("_Office", "whose class attribute 'head' holds an agent"),
        ],
    )
    def test_a_class_that_leads_to_an_agent(self, kind, why):
        """Be it copied, or shared by a tool."""
        made = globals()[kind]()
        (refusal,) = self.refusals("router", made)
        assert refusal.startswith(f"agent 'agent': router is a {kind}, {why}")
        (refusal,) = self.refusals("_function_map", {"it": lambda: made})
        assert why in refusal

    def test_a_function_that_takes_an_agent_from_a_module_of_the_users(self):
        def by_import():
            import clone_office

            return clone_office.boss

        def by_global():
            return clone_office.boss

        def harmless():
            return clone_office.GREETING

        for function in (by_import, by_global):
            (refusal,) = self.refusals("_function_map", {"it": function})
            assert "agent 'agent': _function_map['it'] (function) names clone_office.boss" in refusal
        agent = speaker("agent")
        agent.register_function({"it": harmless})
        assert clone(agent).function_map["it"] is harmless

    def test_teachability(self):
        # Made without its constructor, which would open a database.
        teachability = Teachability.__new__(Teachability)
        agent = speaker("agent")
        agent.register_hook("process_last_received_message", teachability.process_last_received_message)
        (refusal,) = Template(agent).refusals
        assert refusal.startswith("agent 'agent': hook_lists['process_last_received_message'][0], bound object")
        assert "keeps what it learns in one database" in refusal

    def test_a_capability_is_copied_or_refused(self):
        class Counting(AgentCapability):
            def __init__(self, counts):
                self.counts = counts

            def count(self, content):
                self.counts.append(content)
                return content

        agent = speaker("agent")
        counting = Counting([])
        agent.register_hook("process_last_received_message", counting.count)
        clone(agent).hook_lists["process_last_received_message"][0]("x")
        assert counting.counts == []
        counting.counts = (step for step in ())
        (refusal,) = Template(agent).refusals
        assert ".counts (generator) cannot be copied" in refusal

    def test_objects_that_need_each_other_first(self):
        agent = speaker("agent")
        first, second = _Knot(), _Knot()
        first.other, second.other = second, first
        agent.knot = first
        (refusal,) = Template(agent).refusals
        assert "needs itself to be made" in refusal

    def test_a_long_path_loses_its_middle(self):
        nested = agent = speaker("agent")
        agent.deep = nested = []
        for _ in range(100):
            nested.append([])
            nested = nested[0]
        nested.append(step for step in ())
        (refusal,) = Template(agent).refusals
        assert " ... " in refusal
        assert len(refusal) < 300

    def test_a_team_without_a_named_owner(self):
        (refusal,) = Template([speaker("a"), (step for step in ())]).refusals
        assert refusal.startswith("the agents: [1] (generator) cannot be copied")


clerk = speaker("clerk")
clerks = [clerk]


class _Router:
    def route(self, message):
        return clerk


class _Switchboard:
    @property
    def lines(self):
        return len(clerks)


class _Office:
    head = clerk


class _Knot:
    other = None

    def __reduce__(self):
        return _untie, (self.other,)


def _untie(other):
    knot = _Knot()
    knot.other = other
    return knot
