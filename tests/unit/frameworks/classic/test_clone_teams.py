"""Group chats, managers and patterns are copied whole, run side by side, and leave the original as it was."""

import pytest
from autogen import ConversableAgent, GroupChat, GroupChatManager, LLMConfig
from autogen.agentchat import initiate_group_chat
from autogen.agentchat.contrib.capabilities.transform_messages import TransformMessages
from autogen.agentchat.contrib.capabilities.transforms import MessageHistoryLimiter
from autogen.agentchat.group import (
    AgentTarget,
    ContextExpression,
    ContextVariables,
    ExpressionContextCondition,
    FunctionTarget,
    FunctionTargetResult,
    GroupChatConfig,
    GroupChatTarget,
    NestedChatTarget,
    OnCondition,
    OnContextCondition,
    ReplyResult,
    StayTarget,
    StringLLMCondition,
    TerminateTarget,
)
from autogen.agentchat.group.guardrails import LLMGuardrail, RegexGuardrail
from autogen.agentchat.group.patterns import (
    AutoPattern,
    DefaultPattern,
    ManualPattern,
    RandomPattern,
    RoundRobinPattern,
)
from autogen.io.base import IOStream
from clone_harness import Quiet, at_once, chat, clone, fingerprint, speaker

from ag2_parallel.frameworks.classic.cloning import Template
from ag2_parallel.testing import ModelServer, Reply, ToolCall


def play(request):
    """Name a speaker, call a tool where told to, answer a guardrail, else echo."""
    text = request.last_text
    if any("Read the above conversation" in str(message["content"]) for message in request.messages):
        return "second"
    if "You are a guardrail" in request.system_text:
        return '{"activated": false, "justification": "fine"}'
    last = request.messages[-1]
    tools = [entry["function"]["name"] for entry in request.tools]
    if text.startswith("use ") and last["role"] != "tool":
        _, name, value = text.split()
        if name in tools:
            return Reply(tool_calls=[ToolCall(name, {"x": int(value)} if name == "add" else {})])
    return f"said {text}"


@pytest.fixture(scope="module")
def server():
    with ModelServer(play) as running:
        yield running


def member(server, name, **options):
    config = LLMConfig(server.llm_config()["config_list"][0])
    return ConversableAgent(name, llm_config=config, human_input_mode="NEVER", **options)


def run_pattern(pattern, message, rounds=6):
    with IOStream.set_default(Quiet()):
        result, context, last = initiate_group_chat(pattern, messages=message, max_rounds=rounds)
    return [(m.get("name"), m["content"]) for m in result.chat_history], context.to_dict(), last


def add(x: int, context_variables: ContextVariables) -> ReplyResult:
    """Adds."""
    context_variables["sum"] = context_variables.get("sum", 0) + x
    return ReplyResult(message=f"sum {context_variables['sum']}", context_variables=context_variables)


class TestGroupChat:
    def group(self, count=3, **options):
        agents = [speaker(f"w{i}", default_auto_reply=f"from w{i}") for i in range(count)]
        return agents, {"messages": [], "max_round": 4, "speaker_selection_method": "round_robin", **options}

    def test_copies_run_at_once_and_the_original_is_untouched(self):
        agents, options = self.group()
        manager = GroupChatManager(GroupChat(agents, **options), llm_config=False)
        before = fingerprint(manager)
        template = Template(manager)

        def job(i):
            copy = template.clone()
            chat(speaker("user"), copy.root, f"t{i}")
            return [(m["name"], m["content"]) for m in copy.root.groupchat.messages]

        told = [("w0", "from w0"), ("w1", "from w1"), ("w2", "from w2")]
        assert at_once(4, job) == [[("user", f"t{i}"), *told] for i in range(4)]
        assert fingerprint(manager) == before

    def test_transitions_name_copies(self):
        agents, options = self.group()
        w0, w1, w2 = agents
        allowed = {w0: [w2], w2: [w1], w1: [w0]}
        group_chat = GroupChat(
            agents, **options, allowed_or_disallowed_speaker_transitions=allowed, speaker_transitions_type="allowed"
        )
        copied = clone(group_chat)
        assert {k.name: [v.name for v in to] for k, to in copied.allowed_speaker_transitions_dict.items()} == {
            "w0": ["w2"],
            "w2": ["w1"],
            "w1": ["w0"],
        }
        assert set(copied.allowed_speaker_transitions_dict) == set(copied.agents)
        assert not set(copied.agents) & set(agents)
        manager = GroupChatManager(copied, llm_config=False)
        chat(copied.agents[0], manager, "go")
        assert [m["name"] for m in copied.messages] == ["w0", "w2", "w1", "w0"]

    def test_a_selection_function_over_the_agents(self):
        agents, options = self.group()
        w0, _, w2 = agents

        def select(last_speaker, groupchat):
            return {w0: w2, w2: w0}.get(last_speaker, w0)

        options["speaker_selection_method"] = select
        manager = GroupChatManager(GroupChat(agents, **options), llm_config=False)
        copy = Template(manager).clone()
        chat(speaker("user"), copy.root, "go")
        assert [m["name"] for m in copy.root.groupchat.messages] == ["user", "w0", "w2", "w0"]
        assert not any(agent.chat_messages for agent in agents)

    def test_the_run_copies_of_the_group_chat_are_listed_and_share_their_messages(self):
        agents, options = self.group()
        manager = GroupChatManager(GroupChat(agents, **options), llm_config=False)
        copy = Template(manager).clone()
        run_on = [entry["config"] for entry in copy.root._reply_func_list if isinstance(entry["config"], GroupChat)]
        assert [any(chat is one for chat in copy.group_chats) for one in [*run_on, copy.root.groupchat]] == [True] * 3
        assert all(one.messages is copy.root.groupchat.messages for one in run_on)
        assert {agent.name for agent in copy.agents} == {"chat_manager", "w0", "w1", "w2"}

    def test_auto_selection_with_a_model(self, server):
        agents = [member(server, name) for name in ("first", "second")]
        group_chat = GroupChat(agents, messages=[], max_round=3, select_speaker_auto_llm_config=agents[0].llm_config)
        manager = GroupChatManager(group_chat, llm_config=agents[0].llm_config)
        copy = Template(manager).clone()
        chat(speaker("user"), copy.root, "hello")
        assert [m["name"] for m in copy.root.groupchat.messages] == ["user", "second", "second"]
        assert len(copy.llm_configs) == 3
        assert not any(config is agent.llm_config for config in copy.llm_configs for agent in agents)

    def test_messages_of_an_earlier_run_are_left_behind(self):
        agents, options = self.group()
        manager = GroupChatManager(GroupChat(agents, **options), llm_config=False)
        user = speaker("user")
        chat(user, manager, "old")
        copy = Template(manager).clone()
        assert [one.messages for one in copy.group_chats] == [[]] * 3
        assert not any(agent.chat_messages for agent in copy.agents)
        assert copy.root.last_speaker is None
        assert "user" not in {agent.name for agent in copy.agents}
        assert len(manager.groupchat.messages) == 4

    def test_a_capability_keeps_working_on_the_copy(self):
        agents, options = self.group()
        limiter = TransformMessages(transforms=[MessageHistoryLimiter(max_messages=1)], verbose=False)
        limiter.add_to_agent(agents[0])
        seen = []
        agents[0].register_reply([ConversableAgent], lambda _, messages, **__: (seen.append(messages), (True, "ok"))[1])
        manager = GroupChatManager(GroupChat(agents, **options), llm_config=False)
        copied = clone(manager)
        hook = copied.groupchat.agents[0].hook_lists["process_all_messages_before_reply"][0]
        assert hook.__self__ is not limiter
        assert len(hook([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])) == 1


class TestPatterns:
    def team(self, server):
        """Three agents with a tool, handoffs of several sorts and a nested chat."""
        first, second, third = (member(server, name) for name in ("first", "second", "third"))
        inner = speaker("inner", default_auto_reply="inner answer")
        first.register_for_llm(description="adds")(add)
        first.handoffs.add_llm_condition(OnCondition(target=AgentTarget(second), condition=StringLLMCondition("go")))
        queue = [{"recipient": inner, "max_turns": 1, "message": "nested", "summary_method": "last_msg"}]
        nested = NestedChatTarget(nested_chat_config={"chat_queue": queue})
        second.handoffs.add_llm_condition(OnCondition(target=nested, condition=StringLLMCondition("ask")))
        first.handoffs.set_after_work(AgentTarget(third))
        big = ExpressionContextCondition(ContextExpression("${sum} > 100"))
        third.handoffs.add_context_condition(OnContextCondition(target=TerminateTarget(), condition=big))
        return [first, second, third], inner

    def test_copies_run_at_once_and_the_original_is_untouched(self, server):
        agents, inner = self.team(server)
        pattern = DefaultPattern(
            initial_agent=agents[0],
            agents=agents,
            user_agent=speaker("user"),
            context_variables=ContextVariables(data={"sum": 0}),
        )
        before = fingerprint(pattern.__dict__, 9)
        template = Template(pattern)

        def job(i):
            copy = template.clone()
            said, context, last = run_pattern(copy.root, f"use add {i}")
            return said, context, last.name, {agent.name for agent in copy.agents}

        results = at_once(3, job)
        for i, (said, context, last, names) in enumerate(results):
            assert said[0] == ("user", f"use add {i}")
            assert said[2] == ("_Group_Tool_Executor", f"sum {i}")
            assert [name for name, _ in said][3:] == ["first", "third"]
            assert context == {"sum": i}
            assert last == "third"
            assert names == {"first", "second", "third", "inner", "user"}
        assert fingerprint(pattern.__dict__, 9) == before
        assert not inner.chat_messages
        assert run_pattern(template.clone().root, "use add 7")[1] == {"sum": 7}

    def test_a_nested_chat_target_runs_the_copy(self, server):
        agents, inner = self.team(server)
        pattern = DefaultPattern(initial_agent=agents[1], agents=agents, user_agent=speaker("user"))
        template = Template(pattern)
        for _ in range(2):
            said, *_ = run_pattern(template.clone().root, "use transfer_to_wrapped_nested_second_1_1 0")
            assert ("wrapped_nested_second_1", "inner answer") in said
        assert not inner.chat_messages

    @pytest.mark.parametrize("kind", [AutoPattern, RoundRobinPattern, RandomPattern, ManualPattern])
    def test_every_pattern_runs_twice_from_one_template(self, server, kind):
        agents = [member(server, name) for name in ("first", "second")]
        pattern = kind(
            initial_agent=agents[0],
            agents=agents,
            user_agent=speaker("user", default_auto_reply="go on"),
            context_variables=ContextVariables(data={"n": 1}),
            group_manager_args={"llm_config": LLMConfig(server.llm_config()["config_list"][0]), "silent": True},
        )
        before = fingerprint(pattern.__dict__, 9)
        template = Template(pattern)
        for _ in range(2):
            copied = template.clone().root
            assert type(copied) is kind
            # A manual pattern would ask a person for its third speaker.
            said, context, _ = run_pattern(copied, "hello", rounds=2 if kind is ManualPattern else 4)
            assert said[1] == ("first", "said hello")
            assert context == {"n": 1}
        assert fingerprint(pattern.__dict__, 9) == before

    def test_guardrails(self, server):
        first, second = member(server, "first"), member(server, "second")
        first.input_guardrails.append(RegexGuardrail("words", "forbidden", AgentTarget(second)))
        first.output_guardrails.append(LLMGuardrail("judge", "rude", StayTarget(), first.llm_config))
        copy = Template([first, second]).clone()
        copied = copy.root[0]
        result = copied.run_input_guardrails([{"content": "a forbidden thing"}])
        assert result.guardrail is copied.input_guardrails[0]
        assert result.guardrail is not first.input_guardrails[0]
        assert copied.run_output_guardrails("hello") is None
        judge = copied.output_guardrails[0]
        assert judge.client.total_usage_summary is not None
        assert first.output_guardrails[0].client.total_usage_summary is None
        assert any(config is judge.llm_config for config in copy.llm_configs)

    def test_function_targets_and_group_chat_targets(self, server):
        first, second = member(server, "first"), speaker("second", default_auto_reply="second here")
        variables = ContextVariables(data={"visits": 0})

        def route(output, context_variables):
            context_variables["visits"] += 1
            return FunctionTargetResult(target=AgentTarget(second))

        first.handoffs.set_after_work(FunctionTarget(route))
        lonely = speaker("lonely", default_auto_reply="lonely here")
        inside = DefaultPattern(initial_agent=lonely, agents=[lonely], user_agent=speaker("visitor"))
        # AG2 leaves these two models unfinished, so they are made without validation.
        config = GroupChatConfig.model_construct(pattern=inside, messages="x", max_rounds=3)
        target = GroupChatTarget.model_construct(group_chat_config=config)
        second.handoffs.set_after_work(TerminateTarget())
        second.handoffs.add_llm_condition(OnCondition(target=target, condition=StringLLMCondition("inside")))
        pattern = DefaultPattern(
            initial_agent=first, agents=[first, second], user_agent=speaker("user"), context_variables=variables
        )
        copy = Template(pattern).clone()
        assert {agent.name for agent in copy.agents} == {"first", "second", "user", "lonely", "visitor"}
        second_copy = copy.root.agents[1]
        inside_copy = second_copy.handoffs.llm_conditions[0].target.group_chat_config.pattern
        assert inside_copy is not inside
        assert any(inside_copy.agents[0] is agent for agent in copy.agents)
        second_copy.handoffs.llm_conditions.clear()
        said, context, _ = run_pattern(copy.root, "hello")
        assert [name for name, _ in said] == ["user", "first", "second"]
        assert context == {"visits": 1}
        assert variables["visits"] == 0

    def test_a_pattern_that_ran_before_gives_copies_with_the_context_of_their_own(self, server):
        agents = [member(server, "first"), member(server, "second")]
        agents[0].register_for_llm(description="adds")(add)
        pattern = DefaultPattern(
            initial_agent=agents[0],
            agents=agents,
            user_agent=speaker("user"),
            context_variables=ContextVariables(data={"sum": 100}),
        )
        run_pattern(pattern, "use add 1")
        template = Template(pattern)
        results = at_once(2, lambda i: run_pattern(template.clone().root, f"use add {i + 1}")[1])
        assert results == [{"sum": 102}, {"sum": 103}]
        assert pattern.context_variables["sum"] == 101
