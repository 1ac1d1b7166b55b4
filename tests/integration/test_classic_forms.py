"""Every form that a Classic task's agent may have, in real chats with a model server."""

import pytest
from autogen import AssistantAgent, ConversableAgent, GroupChat, GroupChatManager, UserProxyAgent
from autogen.agentchat.group import ContextVariables, ReplyResult
from autogen.agentchat.group.patterns import AutoPattern, RandomPattern, RoundRobinPattern
from classic_scope import attempt, run, task

from ag2_parallel.errors import TaskStopped
from ag2_parallel.frameworks.classic.framework import ClassicFramework
from ag2_parallel.testing import ModelServer, Reply, ToolCall


def tool_model(name="double", arguments=None):
    """Calls the tool first, and says what it got once it has the result."""

    def reply(request):
        results = [message["content"] for message in request.messages if message["role"] == "tool"]
        if not results:
            return Reply(tool_calls=[ToolCall(name, arguments or {"x": 21})])
        return f"the tool says {results[-1]}"

    return reply


def select(name):
    """Answers questions for the next speaker with `name`, and everything else with a sentence."""

    def reply(request):
        if "select the next" in str(request.body["messages"]).lower() or "roles" in request.system_text.lower():
            return name
        return f"said by the model, message {len(request.messages)}"

    return reply


def test_a_lone_agent_answers_and_ends(tmp_path):
    with ModelServer("forty-two") as server:
        ran = run(task("what is it?"), lambda _: AssistantAgent("a", llm_config=server.llm_config()), tmp_path=tmp_path)
        assert ran.answer.output == ran.answer.summary == "forty-two"
        assert ran.answer.stop_reason == "answered"
        assert [message["name"] for message in ran.history] == ["user", "a"]
        assert ran.scope.draft.last_speaker == "a"
        assert server.ledger.count == ran.scope.gate.requests == 1


def test_a_lone_agents_tools_are_executed(tmp_path):
    def make(_):
        agent = AssistantAgent("a", llm_config=server.llm_config())

        @agent.register_for_llm(description="double")
        def double(x: int) -> int:
            return 2 * x

        return agent

    with ModelServer(tool_model()) as server:
        ran = run(task(), make, tmp_path=tmp_path)
        assert ran.answer.output == "the tool says 42"
        assert ran.scope.gate.requests == server.ledger.count == 2
        assert ran.scope.draft.tool is None
        assert ran.scope.names().count("executed_function") == 1


def test_max_turns_cuts_a_lone_agent(tmp_path):
    def make(_):
        agent = AssistantAgent("a", llm_config=server.llm_config())

        @agent.register_for_llm(description="double")
        def double(x: int) -> int:
            return 2 * x

        return agent

    with ModelServer(Reply(tool_calls=[ToolCall("double", {"x": 1})])) as server:
        ran = run(task(max_turns=3), make, tmp_path=tmp_path)
        assert ran.answer.stop_reason == "max_turns"
        assert server.ledger.count == 3


def test_an_answer_ends_a_lone_chat_before_max_turns(tmp_path):
    with ModelServer("done") as server:
        ran = run(task(max_turns=5), lambda _: AssistantAgent("a", llm_config=server.llm_config()), tmp_path=tmp_path)
        assert (ran.answer.stop_reason, server.ledger.count) == ("answered", 1)


@pytest.mark.parametrize(("text", "output"), [("Fine. TERMINATE", "Fine."), ("TERMINATE", None)])
def test_the_word_for_the_end_is_no_part_of_the_answer(tmp_path, text, output):
    with ModelServer(text) as server:
        ran = attempt(task(), lambda _: AssistantAgent("a", llm_config=server.llm_config()), tmp_path=tmp_path)
        if output:
            assert (ran.answer.output, ran.answer.stop_reason) == (output, "termination_message")
        else:
            assert "ended without an answer" in str(ran.error)


def test_a_pair_talks_until_its_own_rule_ends_it(tmp_path):
    def make(_):
        user = UserProxyAgent(
            "boss",
            human_input_mode="NEVER",
            code_execution_config=False,
            default_auto_reply="go on",
            is_termination_msg=lambda m: "three" in m["content"],
        )
        return user, AssistantAgent("worker", llm_config=server.llm_config())

    with ModelServer(["one", "two", "three"]) as server:
        ran = run(task("count"), make, tmp_path=tmp_path)
        assert ran.answer.output == "three"
        assert ran.answer.stop_reason == "termination_message"
        assert ran.texts == ["count", "one", "go on", "two", "go on", "three"]


def test_a_pair_that_never_ends_stops_at_the_auto_reply_limit(tmp_path):
    def make(_):
        talker = ConversableAgent(
            "x", llm_config=server.llm_config(), human_input_mode="NEVER", max_consecutive_auto_reply=2
        )
        return talker, ConversableAgent("y", llm_config=server.llm_config(), human_input_mode="NEVER")

    with ModelServer("and on") as server:
        assert run(task(), make, tmp_path=tmp_path).answer.stop_reason == "auto_reply_limit"
        assert run(task(max_turns=2), make, tmp_path=tmp_path).answer.stop_reason == "max_turns"


def workers(server, count=3):
    return [ConversableAgent(f"w{i}", llm_config=server.llm_config(), human_input_mode="NEVER") for i in range(count)]


def test_a_list_of_agents_is_a_round_robin_group(tmp_path):
    with ModelServer(lambda request: f"message {len(request.messages)}") as server:
        ran = run(task(max_turns=4), lambda _: workers(server), tmp_path=tmp_path)
        assert [message["name"] for message in ran.history] == ["user", "w0", "w1", "w2"]
        assert ran.answer.stop_reason == "max_turns"
        assert ran.answer.output == ran.texts[-1]
        assert ran.scope.draft.last_speaker == "w2"
        assert ran.scope.gate.requests == 3


def test_a_group_whose_last_word_is_terminate_keeps_the_answer_before_it(tmp_path):
    with ModelServer(["a plan", "a review", "TERMINATE"]) as server:
        ran = run(task(), lambda _: workers(server), tmp_path=tmp_path)
        assert ran.answer.stop_reason == "termination_message"
        assert ran.answer.output == "a review"


@pytest.mark.parametrize("managed", [False, True])
def test_a_group_chat_selects_its_speakers_through_the_gate(tmp_path, managed):
    def make(_):
        group = GroupChat(agents=workers(server), messages=[], max_round=3)
        return GroupChatManager(group, llm_config=server.llm_config()) if managed else group

    with ModelServer(select("w1")) as server:
        ran = run(task(), make, tmp_path=tmp_path)
        assert [message["name"] for message in ran.history] == ["user", "w1", "w1"]
        assert ran.scope.gate.requests == server.ledger.count == 4  # two selections, two answers
        assert ran.answer.output == ran.texts[-1]


def test_a_group_chats_own_selection_model_goes_through_the_gate(tmp_path):
    def make(_):
        group = GroupChat(
            workers(server), [], max_round=3, select_speaker_auto_llm_config=server.llm_config(model="chooser")
        )
        return GroupChatManager(group, llm_config=False)

    with ModelServer(select("w2")) as server:
        ran = run(task(), make, tmp_path=tmp_path)
        assert [request.model for request in server.ledger.requests].count("chooser") == 2
        assert ran.scope.gate.requests == server.ledger.count == 4


@pytest.mark.parametrize("with_user", [False, True])
def test_an_auto_pattern_and_its_context_variables(tmp_path, with_user):
    def make(_):
        agents = workers(server)

        def note(finding: str, context_variables: ContextVariables) -> ReplyResult:
            """Note a finding."""
            context_variables["finding"] = finding
            return ReplyResult(message="noted", context_variables=context_variables)

        agents[0].register_for_llm(description="note")(note)
        user = ConversableAgent("boss", human_input_mode="NEVER") if with_user else None
        return AutoPattern(
            agents[0],
            agents,
            user_agent=user,
            group_manager_args={"llm_config": server.llm_config()},
            context_variables=ContextVariables(data={"case": 7, "kept": True}),
        )

    def reply(request):
        if "w0" in request.system_text and "tool" not in {message["role"] for message in request.messages}:
            return "w1"
        if request.tools and not any(message["role"] == "tool" for message in request.messages):
            return Reply(tool_calls=[ToolCall("note", {"finding": "fever"})])
        return "w1" if "w1" in request.system_text else "my view"

    with ModelServer(reply) as server:
        ran = run(task(max_turns=6, context={"case": 8}), make, tmp_path=tmp_path)
        assert ran.scope.draft.context == {"case": 8, "kept": True, "finding": "fever"}
        assert ran.scope.gate.requests == server.ledger.count
        assert "_User" not in [message.get("name") for message in ran.history[1:]]
        assert ran.answer.stop_reason == "max_turns"
        assert ran.answer.output == "my view"


def test_a_round_robin_pattern(tmp_path):
    with ModelServer(lambda request: f"message {len(request.messages)}") as server:
        ran = run(task(max_turns=4), lambda _: RoundRobinPattern(*_first(workers(server))), tmp_path=tmp_path)
        assert [message.get("name") for message in ran.history][1:] == ["w0", "w1", "w2"]
        assert ran.answer.stop_reason == "max_turns"


def _first(agents):
    return agents[0], agents


def test_nested_chats_go_through_the_gate_and_are_no_part_of_the_transcript(tmp_path):
    def make(_):
        inner = ConversableAgent("inner", llm_config=server.llm_config(), human_input_mode="NEVER")
        outer = ConversableAgent("outer", llm_config=False, human_input_mode="NEVER")
        outer.register_nested_chats(
            [{"recipient": inner, "max_turns": 1, "summary_method": "last_msg"}], trigger=lambda _: True
        )
        return outer

    with ModelServer("from within") as server:
        ran = run(task(), make, tmp_path=tmp_path)
        assert ran.answer.output == "from within"
        assert ran.answer.stop_reason == "answered"
        assert ran.scope.gate.requests == server.ledger.count == 1
        assert [message["name"] for message in ran.history] == ["user", "outer"]


def test_a_factory_may_use_a_configuration_routed_before(tmp_path):
    """An agent made with `ctx.llm_config` is not routed through two gates, and its unknown price stays unknown."""
    with ModelServer("ok") as server:
        config = server.llm_config(price=[1.0, 2.0])
        before = str(config)
        ran = run(task(), lambda ctx: AssistantAgent("a", llm_config=ctx.llm_config(config)), tmp_path=tmp_path)
        assert ran.scope.gate.requests == server.ledger.count == 1
        assert {entry["price"] for entry in ran.scope.gate.entries} == {(1.0, 2.0)}
        assert {entry["through"] for entry in ran.scope.gate.entries} == {None}
        assert str(config) == before

        ran = run(
            task(), lambda ctx: AssistantAgent("a", llm_config=ctx.llm_config(server.llm_config())), tmp_path=tmp_path
        )
        assert {entry["price"] for entry in ran.scope.gate.entries} == {None}


def test_nothing_is_recognised_that_is_not_ag2s():
    framework = ClassicFramework()
    agent = ConversableAgent("a", llm_config=False)
    assert framework.recognises(agent)
    assert framework.recognises((agent, agent))
    assert framework.recognises([agent])
    for other in (None, "text", object(), [], (agent,), (agent, 1), ConversableAgent, lambda: agent):
        assert not framework.recognises(other)


def test_a_random_pattern_stops_in_the_middle(tmp_path):
    from classic_scope import Scope

    with ModelServer("text") as server:
        scope = Scope(stop_at=lambda scope: scope.gate.requests >= 3)
        ran = attempt(task(), lambda _: RandomPattern(*_first(workers(server))), tmp_path=tmp_path, scope=scope)
        assert isinstance(ran.error, TaskStopped)
        assert len(ran.history) >= 3
        assert ran.scope.draft.last_speaker in {"w0", "w1", "w2"}


def test_how_long_a_pair_and_a_list_go_on_where_nobody_says(tmp_path):
    """The figures in README.md and docs/agents.md."""
    with ModelServer("go on") as server:
        pair = run(task(), lambda _: tuple(workers(server)[:2]), tmp_path=tmp_path)
        assert (pair.answer.stop_reason, len(pair.history)) == ("auto_reply_limit", 201)
        listed = run(task(), lambda _: workers(server), tmp_path=tmp_path)
        assert (listed.answer.stop_reason, len(listed.history)) == ("max_turns", 10)
