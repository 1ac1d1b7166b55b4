"""The user that the runner makes where a chat has none."""

from autogen.agentchat.group import AgentTarget, ContextVariables, OnContextCondition, StringContextCondition
from autogen.agentchat.group.handoffs import Handoffs

from ag2_parallel.frameworks.classic.one_shot_user import one_shot_user


def test_each_has_what_any_agent_has_and_shares_none_of_it():
    one, other = one_shot_user([]), one_shot_user([])
    assert isinstance(one.handoffs, Handoffs)
    assert isinstance(one.context_variables, ContextVariables)
    one.context_variables["seen"] = True
    one.handoffs.add_context_condition(
        OnContextCondition(target=AgentTarget(other), condition=StringContextCondition(variable_name="seen"))
    )
    assert other.context_variables.to_dict() == one_shot_user([]).context_variables.to_dict() == {}
    assert not other.handoffs.context_conditions
    assert one.context_variables.to_dict() == {"seen": True}


def test_its_variables_can_be_replaced():
    user = one_shot_user([])
    user.context_variables = shared = ContextVariables({"case": 7})
    assert user.context_variables is shared


def test_it_is_called_by_no_name_that_is_taken():
    assert one_shot_user(["user"]).name == "task_user"
