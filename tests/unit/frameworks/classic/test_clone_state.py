"""What an agent's copy keeps, starts anew, shares and refuses."""

import threading

import httpx
import pytest
from autogen import AssistantAgent, ConversableAgent, GroupChat, LLMConfig, UserProxyAgent
from autogen.coding import LocalCommandLineCodeExecutor
from autogen.oai.openai_responses import OpenAIResponsesClient
from clone_harness import at_once, chat, clone, fingerprint, speaker

from ag2_parallel.frameworks.classic.cloning import Template
from ag2_parallel.testing import ModelServer


@pytest.fixture(scope="module")
def server():
    with ModelServer() as running:
        yield running


def assistant(server, name="assistant", **entry):
    return AssistantAgent(name, llm_config=server.llm_config(**entry))


class TestKept:
    def test_settings(self):
        stops = lambda message: "stop" in message["content"]
        agent = UserProxyAgent(
            "proxy",
            system_message="Be brief.",
            description="A proxy",
            is_termination_msg=stops,
            max_consecutive_auto_reply=3,
            human_input_mode="NEVER",
            default_auto_reply={"content": "auto", "tags": ["a"]},
            code_execution_config={"use_docker": False, "work_dir": "w"},
            silent=True,
        )
        copied = clone(agent)
        assert type(copied) is UserProxyAgent
        assert (copied.name, copied.system_message, copied.description) == ("proxy", "Be brief.", "A proxy")
        assert (copied.human_input_mode, copied.silent, copied.max_consecutive_auto_reply()) == ("NEVER", True, 3)
        assert copied._code_execution_config == agent._code_execution_config
        assert copied._code_execution_config is not agent._code_execution_config
        assert copied._is_termination_msg is stops
        assert copied._default_auto_reply == agent._default_auto_reply
        copied.update_system_message("Be long.")
        copied.description = "changed"
        copied._default_auto_reply["tags"].append("b")
        assert (agent.system_message, agent.description) == ("Be brief.", "A proxy")
        assert agent._default_auto_reply["tags"] == ["a"]

    def test_reply_limits_follow_the_copies(self):
        user, agent, stranger = speaker("user"), speaker("agent"), speaker("stranger")
        agent.update_max_consecutive_auto_reply(2, user)
        agent.update_max_consecutive_auto_reply(5, stranger)
        mine, copied = clone([user, agent])
        assert copied.max_consecutive_auto_reply(mine) == 2
        assert stranger not in copied._max_consecutive_auto_reply_dict
        copied.update_max_consecutive_auto_reply(7)
        assert copied.max_consecutive_auto_reply(speaker("new")) == 7
        assert agent.max_consecutive_auto_reply() == 100

    def test_a_local_code_executor_is_copied(self, tmp_path):
        executor = LocalCommandLineCodeExecutor(work_dir=tmp_path, timeout=9)
        agent = ConversableAgent("runner", llm_config=False, code_execution_config={"executor": executor})
        copied = clone(agent)
        assert copied.code_executor is not executor
        assert copied.code_executor is copied._code_execution_config["executor"]
        assert (copied.code_executor.work_dir, copied.code_executor.timeout) == (tmp_path, 9)

    def test_the_shape_of_the_root(self):
        agents = [speaker("a"), speaker("b")]
        assert [agent.name for agent in clone(agents)] == ["a", "b"]
        first, second = clone(tuple(agents))
        assert (first.name, second.name) == ("a", "b")
        assert first is not agents[0]
        assert isinstance(clone(GroupChat(agents, [])), GroupChat)
        assert Template(()).clone().root == ()


class TestLeftBehind:
    def test_history_usage_and_what_a_run_leaves(self, server):
        user, agent = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False), assistant(server)
        chat(user, agent, "old")
        agent.initiate_chats([])
        agent.client_cache = object()
        agent.run_executor = speaker("executor")
        before = fingerprint(agent)
        mine, copied = clone([user, agent])
        assert not copied.chat_messages
        assert not mine.chat_messages
        assert copied.get_total_usage() is None
        assert agent.get_total_usage()["total_cost"] is not None
        assert (copied.client_cache, copied.run_executor) == (None, None)
        assert not hasattr(copied, "_finished_chats")
        assert chat(mine, copied, "new").summary == "echo: new"
        assert [m["content"] for m in copied.chat_messages[mine]] == ["new", "echo: new"]
        assert fingerprint(agent) == before

    def test_usage_is_counted_per_copy(self, server):
        template = Template(assistant(server))

        def job(i):
            copied = template.clone().root
            for _ in range(i + 1):
                chat(speaker("user"), copied, "x")
            usage = copied.get_actual_usage()["scripted"]["total_tokens"]
            return usage, copied.client.wrapper_id == id(copied.client), len(copied.client._response_metadata)

        results = at_once(3, job)
        one = results[0][0]
        assert results == [(one, True, 1), (2 * one, True, 2), (3 * one, True, 3)]
        assert template._shared_root.get_actual_usage() is None

    def test_chat_messages_given_at_construction_are_history_too(self):
        user = speaker("user")
        agent = speaker("agent", chat_messages={user: [{"content": "old", "role": "user"}]})
        copy = Template(agent).clone()
        assert not copy.root.chat_messages
        assert copy.agents == [copy.root]


class TestClients:
    def test_an_agent_with_its_own_client_shares_it(self, server):
        agent = assistant(server)
        copied = clone(agent)
        assert copied.client is not agent.client
        assert copied.client._clients[0] is agent.client._clients[0]
        assert copied.client._clients is not agent.client._clients
        assert copied.client._config_list == agent.client._config_list

    def test_llm_configs_are_independent(self, server):
        agent = assistant(server, tags=["a"], default_headers={"x-team": "t"})
        copy = Template(agent).clone()
        (config,) = copy.llm_configs
        assert config is copy.root.llm_config
        assert config == agent.llm_config
        config["tools"] = [{"type": "function"}]
        config.config_list[0].tags.append("b")
        config.config_list[0].model = "other"
        assert not agent.llm_config["tools"]
        assert (agent.llm_config.config_list[0].tags, agent.llm_config.config_list[0].model) == (["a"], "scripted")
        assert agent.llm_config["config_list"][0]["api_key"] == config["config_list"][0]["api_key"]

    def test_an_http_client_in_the_config_is_shared(self, server):
        with httpx.Client() as http:
            entry = server.llm_config()["config_list"][0] | {"http_client": http}
            agent = ConversableAgent("agent", llm_config=LLMConfig(entry), human_input_mode="NEVER")
            copied = clone(agent)
            assert copied.llm_config.config_list[0].http_client is http
            assert chat(speaker("user"), copied, "x").summary == "echo: x"

    def test_a_custom_model_client_is_shared(self):
        class Scripted:
            def __init__(self, config, **_):
                self.lock = threading.Lock()

            def create(self, params):
                raise NotImplementedError

        config = {"model": "m", "api_type": "openai", "api_key": "k", "model_client_cls": "Scripted"}
        agent = ConversableAgent("agent", llm_config={"config_list": [config]}, human_input_mode="NEVER")
        waiting = clone(agent)
        agent.register_model_client(Scripted)
        copied = clone(agent)
        assert copied.client._clients[0] is agent.client._clients[0]
        waiting.register_model_client(Scripted)
        assert waiting.client._clients[0] is not agent.client._clients[0]

    def test_a_client_that_remembers_the_conversation_is_not_shared(self, server):
        agent = assistant(server, api_type="responses")
        (client,) = agent.client._clients
        assert type(client) is OpenAIResponsesClient
        client.previous_response_id = "r1"
        client.image_output_params["quality"] = "low"
        (copied,) = clone(agent).client._clients
        assert type(copied) is OpenAIResponsesClient
        assert copied._oai_client is client._oai_client
        assert copied.previous_response_id is None
        copied.image_output_params["quality"] = "high"
        copied.previous_response_id = "r2"
        assert (client.previous_response_id, client.image_output_params["quality"]) == ("r1", "low")
