"""Model calls that AG2 makes on its own account, and the ways a chat may end."""

import pytest
from autogen import AssistantAgent, ConversableAgent, LLMConfig
from autogen.agentchat.group import (
    AgentTarget,
    NestedChatTarget,
    OnCondition,
    StringLLMCondition,
    TerminateTarget,
)
from autogen.agentchat.group.guardrails import LLMGuardrail
from autogen.agentchat.group.patterns import AutoPattern, DefaultPattern
from autogen.tools import Tool
from classic_scope import Scope, attempt, run, task

from ag2_parallel.errors import TaskStopped
from ag2_parallel.frameworks.classic.framework import ClassicFramework
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall


def agent(server, name, **options):
    return ConversableAgent(name, llm_config=server.llm_config(), human_input_mode="NEVER", **options)


def handing_off(request):
    """Hands over as soon as it may; otherwise says who it is."""
    tools = [tool["function"]["name"] for tool in request.tools]
    return Reply(tool_calls=[ToolCall(tools[0])]) if tools else f"from {request.system_text}"


def team_with_handoff(server, target):
    first = agent(server, "first", system_message="the first")
    second = agent(server, "second", system_message="the second")
    first.handoffs.add_llm_condition(OnCondition(target=target(second), condition=StringLLMCondition("always")))
    return first, second


@pytest.mark.parametrize("fresh", [True, False])
def test_handoffs_and_their_rebuilt_clients_go_through_the_gate(tmp_path, fresh):
    """AG2 makes an agent's client anew from its configuration for every handoff it offers."""

    def make(_=None):
        first, second = team_with_handoff(server, AgentTarget)
        return DefaultPattern(first, [first, second], group_after_work=TerminateTarget())

    with ModelServer(handing_off) as server:
        framework, template = ClassicFramework(), make()
        for _ in range(2):
            before = server.ledger.count
            ran = run(task(), make if fresh else template, fresh=fresh, framework=framework, tmp_path=tmp_path)
            assert ran.answer.output == "from the second"
            assert ran.answer.stop_reason == "no_next_speaker"
            assert ran.scope.gate.requests == server.ledger.count - before == 2
            assert ran.scope.draft.last_speaker == "second"


@pytest.mark.parametrize("fresh", [True, False])
def test_a_nested_chat_as_a_handoffs_target(tmp_path, fresh):
    def make(_=None):
        def queued(second):
            return {"recipient": second, "message": "go", "max_turns": 1, "summary_method": "last_msg"}

        def nested(second):
            return NestedChatTarget(nested_chat_config={"chat_queue": [queued(second)], "use_async": False})

        first, _second = team_with_handoff(server, nested)
        return DefaultPattern(first, [first], group_after_work=TerminateTarget())

    with ModelServer(handing_off) as server:
        framework, template = ClassicFramework(), make()
        for _ in range(2):
            before = server.ledger.count
            work = task(max_turns=5)
            ran = run(work, make if fresh else template, fresh=fresh, framework=framework, tmp_path=tmp_path)
            assert "from the second" in ran.texts
            assert ran.scope.gate.requests == server.ledger.count - before >= 2


def test_guardrails_ask_through_the_gate_and_stay_the_users_own(tmp_path):
    def reply(request):
        if "guardrail" in request.system_text:
            return '{"activated": false, "justification": "fine"}'
        return "an answer"

    with ModelServer(reply) as server:
        guardrail = LLMGuardrail(
            "careful", "is rude", TerminateTarget(), LLMConfig(server.llm_config()["config_list"][0])
        )
        client = guardrail.client

        def make(_):
            first, second = agent(server, "first"), agent(server, "second")
            for each in (first, second):
                each.register_input_guardrail(guardrail)
                each.register_output_guardrail(guardrail)
            return DefaultPattern(first, [first, second])

        ran = run(task(), make, tmp_path=tmp_path)
        assert ran.answer.output == "an answer"
        assert ran.scope.gate.requests == server.ledger.count == 3
        assert guardrail.client is client


def test_a_prompt_that_names_its_speaker_starts_a_pattern_as_that_agent(tmp_path):
    def make(_):
        first, second = agent(server, "first"), agent(server, "second")
        return DefaultPattern(first, [first, second])

    with ModelServer("heard") as server:
        ran = run(task({"role": "user", "name": "second", "content": "my turn"}), make, tmp_path=tmp_path)
        assert [message["name"] for message in ran.history] == ["second", "first"]


def test_history_keeps_the_names_of_a_groups_agents(tmp_path):
    prompt = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "name": "second", "content": "unum"},
        {"role": "user", "content": "two"},
    ]
    with ModelServer("ok") as server:
        agents = [agent(server, "first"), agent(server, "second")]
        ran = run(task(prompt, max_turns=2), lambda _: agents, tmp_path=tmp_path)
        assert [message["name"] for message in ran.history] == ["user", "second", "user", "first"]
        assert [message["role"] for message in agents[1].chat_messages[next(iter(agents[1].chat_messages))]][
            1
        ] == "assistant"


def test_an_agent_that_may_not_reply_gives_no_answer(tmp_path):
    with ModelServer("ok") as server:
        ran = attempt(task(), lambda _: agent(server, "a", max_consecutive_auto_reply=0), tmp_path=tmp_path)
        assert "ended without an answer (stop reason: auto_reply_limit)" in str(ran.error)
        assert ran.error.kind == "invalid_answer"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"is_termination_msg": lambda message: "fine" in str(message.get("content"))}, "termination_message"),
        ({"max_consecutive_auto_reply": 1}, "auto_reply_limit"),
    ],
)
def test_max_turns_left_early_says_why(tmp_path, rule, reason):
    """With max_turns AG2 leaves its loop without an event."""

    def make(_):
        starter = ConversableAgent("s", llm_config=False, human_input_mode="NEVER", default_auto_reply="more")
        return starter, agent(server, "a", **rule)

    with ModelServer("fine") as server:
        ran = run(task(max_turns=9), make, tmp_path=tmp_path)
        assert ran.answer.stop_reason == reason
        assert "fine" in ran.texts


def test_a_stop_inside_speaker_selection_ends_the_team(tmp_path):
    from autogen import GroupChat

    scope = Scope(stop_at=lambda scope: scope.gate.requests == 1)
    with ModelServer("first") as server:
        ran = attempt(
            task(),
            lambda _: GroupChat([agent(server, "first"), agent(server, "second")], [], max_round=4),
            tmp_path=tmp_path,
            scope=scope,
        )
        assert isinstance(ran.error, TaskStopped)
        assert server.ledger.count == 1
        assert ran.texts == ["hello"]


def test_agents_hidden_in_bound_methods_and_partials_are_found(tmp_path):
    from functools import partial

    class Desk:
        def __init__(self, helper):
            self.helper = helper

        def consult(self, question: str) -> str:
            asker = ConversableAgent("asker", llm_config=False, human_input_mode="NEVER")
            return asker.initiate_chat(self.helper, message=question, max_turns=1, summary_args={}).summary

    def update(helper, agent, messages):
        agent.update_system_message(f"helped by {helper.name}")

    def reply(request):
        results = [message["content"] for message in request.messages if message["role"] == "tool"]
        if results or not request.tools:
            return results[-1] if results else "helped"
        return Reply(tool_calls=[ToolCall("consult", {"question": "?"})])

    def make(_):
        made = AssistantAgent("a", llm_config=server.llm_config())
        desk = Desk(agent(server, "helper"))
        made.register_for_llm()(Tool(name="consult", description="ask", func_or_tool=desk.consult))
        made.register_hook("update_agent_state", partial(update, agent(server, "other")))
        return made

    with ModelServer(reply) as server:
        ran = run(task(), make, tmp_path=tmp_path)
        assert ran.answer.output == "helped"
        assert ran.scope.gate.requests == server.ledger.count == 3
        assert {each.name for each in ran.scope.claimed} >= {"a", "helper", "other"}
        assert ran.scope.held.count('tool object "consult"') == 1


def test_a_pair_may_be_a_user_and_a_groups_manager(tmp_path):
    from autogen import GroupChat, GroupChatManager

    def make(_):
        boss = ConversableAgent("boss", llm_config=False, human_input_mode="NEVER")
        group = GroupChat(
            [agent(server, "first"), agent(server, "second")], [], max_round=3, speaker_selection_method="round_robin"
        )
        return boss, GroupChatManager(group, llm_config=False)

    with ModelServer(["one", "two"]) as server:
        ran = run(task(), make, tmp_path=tmp_path)
        assert ran.texts == ["hello", "one", "two"]
        assert (ran.answer.output, ran.answer.stop_reason) == ("two", "max_turns")
        assert ran.scope.draft.last_speaker == "second"


def test_the_user_that_ag2_adds_to_a_pattern_is_never_chosen_to_speak(tmp_path):
    def reply(request):
        return "_User" if "select the next" in str(request.body["messages"]).lower() else "an answer"

    def make(_):
        agents = [agent(server, "first"), agent(server, "second")]
        return AutoPattern(agents[0], agents, group_manager_args={"llm_config": server.llm_config()})

    with ModelServer(reply) as server:
        ran = run(task(max_turns=4), make, tmp_path=tmp_path)
        assert "_User" not in [message["name"] for message in ran.history[1:]]
        assert ran.answer.output == "an answer"  # whatever the tool executor, chosen in its place, has not to say


def test_a_client_that_ag2_makes_anew_does_not_retry_either(tmp_path):
    def make(_):
        first, second = team_with_handoff(server, AgentTarget)
        return DefaultPattern(first, [first, second])

    with ModelServer(Fault.status(500)) as server:
        ran = attempt(task(), make, tmp_path=tmp_path)
        assert type(ran.error).__name__ == "InternalServerError"
        assert server.ledger.count == ran.scope.gate.requests == 1
