"""Configurations and live agents used for many attempts: copied, never changed, never run themselves."""

import copy
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from autogen import AssistantAgent, ConversableAgent, GroupChat, GroupChatManager, LLMConfig
from autogen.agentchat.group import ContextVariables
from autogen.agentchat.group.patterns import AutoPattern
from classic_scope import Scope, attempt, run, task

from ag2_parallel.errors import SharedAgentError, UnsupportedAgentError
from ag2_parallel.frameworks.classic.framework import ClassicFramework
from ag2_parallel.tasks import ParallelTask
from ag2_parallel.testing import ModelServer, Reply, ToolCall


def config_task(config, prompt="hello", name="t", **fields):
    return ParallelTask(name, prompt, config, **fields)


def test_a_configuration_becomes_an_agent_named_after_its_task(tmp_path):
    with ModelServer() as server:
        config = {"system_message": "Be brief.", "llm_config": server.llm_config()}
        before = copy.deepcopy(config)
        framework = ClassicFramework()
        ran = run(config_task(config, "one", "Case 7: fever"), framework=framework, fresh=False, tmp_path=tmp_path)
        assert ran.answer.output == "echo: one"
        assert ran.scope.draft.last_speaker == "Case_7__fever"
        ran = run(config_task(config | {"name": "own"}, "two"), framework=framework, fresh=False, tmp_path=tmp_path)
        assert ran.answer.output == "echo: two"
        assert ran.scope.draft.last_speaker == "own"
        assert [len(request.body["messages"]) for request in server.ledger.requests] == [2, 2]
        assert config == before


def test_the_runners_model_serves_tasks_without_one(tmp_path):
    with ModelServer() as server:
        framework = ClassicFramework(server.llm_config())
        assert run(config_task({}), framework=framework, fresh=False, tmp_path=tmp_path).answer.output == "echo: hello"
        assert (
            run(config_task(None), framework=framework, fresh=False, tmp_path=tmp_path).answer.output == "echo: hello"
        )


def test_one_agent_is_built_for_many_tasks_at_once(tmp_path):
    built = []

    class Counted(AssistantAgent):
        def __init__(self, *args, **kwargs):
            built.append(kwargs["name"])
            super().__init__(*args, **kwargs)

    with ModelServer(latency=0.02) as server, ThreadPoolExecutor(8) as pool:
        config = {"type": Counted, "llm_config": server.llm_config()}
        framework = ClassicFramework()
        work = [config_task(dict(config), f"p{i}", f"task {i}") for i in range(24)]
        ran = list(pool.map(lambda each: run(each, framework=framework, fresh=False, tmp_path=tmp_path), work))
        assert [each.answer.output for each in ran] == [f"echo: p{i}" for i in range(24)]
        assert len(built) == 1


def test_functions_of_a_configuration_are_tools_and_stay_unmarked(tmp_path):
    def double(x: int) -> int:
        """Double it."""
        return 2 * x

    def reply(request):
        results = [message["content"] for message in request.messages if message["role"] == "tool"]
        return results[-1] if results else Reply(tool_calls=[ToolCall("double", {"x": 4})])

    with ModelServer(reply) as server:
        config = {"llm_config": server.llm_config(), "functions": [double]}
        ran = run(config_task(config), fresh=False, tmp_path=tmp_path)
        assert ran.answer.output == "8"
        assert vars(double) == {}
        assert server.ledger.requests[0].body["tools"][0]["function"]["description"] == "Double it."


def test_the_users_own_http_client_is_sent_through(tmp_path):
    with ModelServer() as server, httpx.Client() as own:
        config = {"llm_config": server.llm_config(http_client=own)}
        framework = ClassicFramework()
        ran = run(config_task(config), framework=framework, fresh=False, tmp_path=tmp_path)
        assert {entry["through"] for entry in ran.scope.gate.entries} == {own}
        assert ran.scope.gate.requests == 1


def test_a_task_has_its_context_and_its_folder(tmp_path):
    with ModelServer() as server:
        config = {
            "llm_config": server.llm_config(),
            "context_variables": {"kept": [1]},
            "code_execution_config": {"use_docker": False},
        }
        ran = run(config_task(config, context={"case": 7}), fresh=False, tmp_path=tmp_path)
        assert ran.scope.draft.context == {"kept": [1], "case": 7}
        assert config["code_execution_config"] == {"use_docker": False}
        assert (tmp_path / "run" / "task-0").is_dir()


def test_a_live_agent_is_copied_and_left_untouched(tmp_path):
    with ModelServer() as server, ThreadPoolExecutor(4) as pool:
        agent = AssistantAgent("a", llm_config=server.llm_config(), context_variables=ContextVariables(data={"n": 0}))
        framework = ClassicFramework()
        assert framework.problems(task(agent=agent), agent) == []

        def once(number):
            work = task(f"p{number}", agent=agent, context={"n": number})
            return run(work, agent, fresh=False, framework=framework, tmp_path=tmp_path)

        ran = list(pool.map(once, range(8)))
        assert [each.answer.output for each in ran] == [f"echo: p{i}" for i in range(8)]
        assert [each.scope.draft.context for each in ran] == [{"n": i} for i in range(8)]
        assert agent.chat_messages == {}
        assert agent.context_variables.to_dict() == {"n": 0}
        assert agent.client.total_usage_summary is None
        assert agent.llm_config.config_list[0].http_client is None
        assert sum(each.scope.gate.requests for each in ran) == server.ledger.count == 8


@pytest.mark.parametrize("form", ["pair", "list", "group", "manager", "pattern"])
def test_a_live_team_is_copied_and_all_its_calls_pass_the_gate(tmp_path, form):
    def reply(request):
        return "b" if "select the next" in str(request.body["messages"]).lower() else f"says {len(request.messages)}"

    with ModelServer(reply) as server:
        agents = [ConversableAgent(name, llm_config=server.llm_config(), human_input_mode="NEVER") for name in "abc"]
        group = GroupChat(agents, [], max_round=4)
        root = {
            "pair": (agents[0], agents[1]),
            "list": agents,
            "group": group,
            "manager": GroupChatManager(group, llm_config=server.llm_config()),
            "pattern": AutoPattern(agents[0], agents, group_manager_args={"llm_config": server.llm_config()}),
        }[form]
        framework = ClassicFramework()
        work = task(agent=root, max_turns=4)
        assert framework.problems(work, root) == []
        for _ in range(2):
            before = server.ledger.count
            ran = run(work, root, fresh=False, framework=framework, tmp_path=tmp_path)
            assert ran.answer.stop_reason == "max_turns"
            assert ran.scope.gate.requests == server.ledger.count - before > 0
        assert [agent.chat_messages for agent in agents] == [{}, {}, {}]
        assert group.messages == []


def test_what_cannot_be_copied_is_refused_before_anything_starts(tmp_path):
    agent = ConversableAgent("a", llm_config=False)
    agent.rows = (row for row in ())
    framework = ClassicFramework()
    (problem,) = framework.problems(task(agent=agent), agent)
    assert 'task "t"' in problem
    assert "rows" in problem
    assert "pass a factory" in problem
    ran = attempt(task(agent=agent), agent, fresh=False, framework=framework, tmp_path=tmp_path)
    assert isinstance(ran.error, UnsupportedAgentError)


def test_an_object_a_factory_returned_before_is_refused(tmp_path):
    with ModelServer() as server:
        agent = AssistantAgent("a", llm_config=server.llm_config())
        ran = attempt(task(), lambda _: agent, tmp_path=tmp_path, scope=Scope(taken=[agent]))
        assert isinstance(ran.error, SharedAgentError)
        inner = ConversableAgent("inner", llm_config=False)
        agent.register_nested_chats([{"recipient": inner, "message": "?"}], trigger=lambda _: True)
        ran = attempt(task(), lambda _: agent, tmp_path=tmp_path, scope=Scope(taken=[inner]))
        assert isinstance(ran.error, SharedAgentError)
        assert server.ledger.count == 0


def test_a_client_class_of_the_users_goes_through_the_gate_as_a_whole(tmp_path):
    class Own:
        def __init__(self, config, **_):
            self.model = config["model"]

        def create(self, params):
            from types import SimpleNamespace

            message = SimpleNamespace(content="own answer", function_call=None, tool_calls=None)
            return SimpleNamespace(choices=[SimpleNamespace(message=message)], model=self.model)

        def message_retrieval(self, response):
            return [choice.message.content for choice in response.choices]

        def cost(self, response):
            return 0

        @staticmethod
        def get_usage(response):
            return {}

    def make(_):
        agent = AssistantAgent("a", llm_config=LLMConfig({"model": "m", "model_client_cls": "Own"}))
        agent.register_model_client(Own)
        return agent

    ran = run(task(), make, tmp_path=tmp_path)
    assert ran.answer.output == "own answer"
    assert [call["endpoint"] for call in ran.scope.gate.foreign] == ["Own"]
    assert [event for event, _ in ran.scope.emitted if event.__name__ == "RunWarning"] == []


def test_keys_are_learnt_and_masked(tmp_path):
    with ModelServer() as server:
        config = {"llm_config": server.llm_config(api_key="a-very-plain-secret")}
        ran = run(config_task(config), fresh=False, tmp_path=tmp_path)
        assert ran.scope.redactor.text("key: a-very-plain-secret") == "key: ***"
