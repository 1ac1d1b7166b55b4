"""Tools, hooks, replies and other code of a copy meet the copy; what they reach beyond the team stays shared."""

import threading
from typing import Annotated

import pytest
from autogen import ConversableAgent, UpdateSystemMessage, register_function
from autogen.agentchat.group.context_variables import ContextVariables
from autogen.tools import ChatContext, Tool, tool
from clone_harness import at_once, chat, clone, fingerprint, speaker

from ag2_parallel.frameworks.classic.cloning import Template
from ag2_parallel.testing import ModelServer, Reply, ToolCall


def call_once(request):
    """Call the tool that the last message names, then say what it answered."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return f"tool said {last['content']}"
    name, _, argument = request.last_text.partition(" ")
    return Reply(tool_calls=[ToolCall(name, {"text": argument})])


@pytest.fixture(scope="module")
def server():
    with ModelServer(call_once) as running:
        yield running


def assistant(server, name="assistant", **options):
    return ConversableAgent(name, llm_config=server.llm_config(), human_input_mode="NEVER", **options)


class TestTools:
    def test_a_registered_tool_is_called_with_the_copy_in_its_chat_context(self, server):
        seen = []

        def look(text: Annotated[str, "what"], context: ChatContext) -> str:
            (called,) = context.last_message["tool_calls"]
            seen.append((text, next(iter(context.chat_messages)), called["function"]["name"]))
            return text.upper()

        user, agent = speaker("user"), assistant(server)
        register_function(look, caller=agent, executor=user, description="looks")
        team = [user, agent]
        before = fingerprint(team)
        template = Template(team)

        def job(i):
            mine, other = template.clone().root
            return other, chat(mine, other, f"look t{i}", max_turns=2).summary

        answers = at_once(4, job)
        assert [summary for _, summary in answers] == [f"tool said T{i}" for i in range(4)]
        assert {text: partner for text, partner, _ in seen} == {f"t{i}": agent for i, (agent, _) in enumerate(answers)}
        assert {name for _, _, name in seen} == {"look"}
        assert fingerprint(team) == before

    def test_a_handle_that_cannot_be_copied_is_shared(self, server):
        lock = threading.Lock()

        class Telemetry:
            def __init__(self):
                self.lock = lock
                self.notes = []

            def note(self, text: str) -> str:
                with self.lock:
                    self.notes.append(text)
                return text

        telemetry = Telemetry()

        def record(text: str) -> str:
            return telemetry.note(text)

        agent = speaker("agent")
        agent.register_function({"record": record, "note": telemetry.note, "append": telemetry.notes.append})
        copied = clone(agent)
        copied.function_map["record"]("a")
        copied.function_map["note"]("b")
        copied.function_map["append"]("c")
        assert telemetry.notes == ["a", "b", "c"]
        assert copied.function_map["record"] is record

    def test_tool_objects_stay_tools(self, server):
        @tool(name="shout", description="shouts")
        def shout(text: str) -> str:
            return text.upper()

        user, agent = speaker("user"), assistant(server)
        shout.register_for_llm(agent)
        shout.register_for_execution(user)
        mine, other = clone([user, agent])
        assert other.tools == [shout]
        assert chat(mine, other, "shout hi", max_turns=2).summary == "tool said HI"
        other.remove_tool_for_llm(shout)
        assert [t.name for t in agent.tools] == ["shout"]
        assert agent.llm_config["tools"]

    def test_a_tool_over_an_agent_speaks_to_the_copy(self):
        expert = speaker("expert", default_auto_reply="expert answer")
        user = speaker("user")

        def consult(text: str) -> str:
            return chat(user, expert, text).summary

        consulting = Tool(func_or_tool=consult)
        user.register_function({"consult": consult})
        user._tools.append(consulting)
        template = Template(user)

        def job(i):
            copy = template.clone()
            answers = copy.root.function_map["consult"](f"q{i}"), copy.root.tools[0](text=f"r{i}")
            (other,) = [agent for agent in copy.agents if agent.name == "expert"]
            return answers, [m["content"] for m in other.chat_messages[copy.root]]

        for i, (answers, said) in enumerate(at_once(4, job)):
            assert answers == ("expert answer", "expert answer")
            assert said == [f"r{i}", "expert answer"]
        assert not expert.chat_messages
        assert not user.chat_messages

    def test_functions_given_at_construction(self, server):
        def whisper(text: str) -> str:
            "whispers"
            return text.lower()

        agent = assistant(server, functions=[whisper])
        copied = clone(agent)
        assert copied.tools[0].description == "whispers"
        assert copied.llm_config["tools"] == agent.llm_config["tools"]
        assert copied.llm_config["tools"] is not agent.llm_config["tools"]
        copied.update_tool_signature("whisper", is_remove=True)
        assert [entry["function"]["name"] for entry in agent.llm_config["tools"]] == ["whisper"]


class TestReplies:
    def test_config_is_the_copys_own(self):
        agent, seen = speaker("agent"), []

        def count(recipient, messages, sender, config):
            config["n"] += 1
            seen.append(recipient)
            return True, f"n={config['n']}"

        agent.register_reply([ConversableAgent, None], count, config={"n": 0, "past": []})
        template = Template(agent)
        copies = [template.clone().root for _ in range(2)]
        user = speaker("user")
        assert [chat(user, copies[0], "x").summary for _ in range(3)] == ["n=1", "n=2", "n=3"]
        assert chat(user, copies[1], "x").summary == "n=1"
        assert seen == [copies[0]] * 3 + [copies[1]]
        entry = agent._reply_func_list[0]
        assert entry["config"] == entry["init_config"] == {"n": 0, "past": []}
        assert copies[0]._reply_func_list[0]["config"]["past"] is not entry["config"]["past"]

    def test_triggers(self):
        user, other, agent = speaker("user"), speaker("other"), speaker("agent", default_auto_reply="default")
        agent.register_reply(user, lambda *_, **__: (True, "for user"))
        agent.register_reply(lambda sender: sender is other, lambda *_, **__: (True, "for other"))
        agent.register_reply("by name", lambda *_, **__: (True, "for a name"))
        agent.register_reply([_Special], lambda *_, **__: (True, "for a class"))
        special = _Special("special", llm_config=False, human_input_mode="NEVER")
        senders = [user, other, speaker("by name"), special]
        *copies, copied = clone([*senders, agent])
        summaries = [chat(sender, copied, "x").summary for sender in copies]
        assert summaries == ["for user", "for other", "for a name", "for a class"]
        assert chat(speaker("user"), copied, "x").summary == "default"

    def test_nested_chats_run_with_copies(self):
        inner = speaker("inner")
        inner.register_reply([ConversableAgent], lambda _, messages, **__: (True, f"inner {messages[-1]['content']}"))
        agent = speaker("agent")
        queue = [
            {
                "recipient": inner,
                "max_turns": 1,
                "message": lambda _recipient, messages, _sender, _config: messages[-1]["content"],
                "summary_method": "last_msg",
            }
        ]
        agent.register_nested_chats(queue, trigger=lambda sender: sender.name == "user")
        template = Template(agent)

        def job(i):
            copy = template.clone()
            summary = chat(speaker("user"), copy.root, f"t{i}").summary
            (nested,) = [other for other in copy.agents if other.name == "inner"]
            return summary, [m["content"] for m in nested.chat_messages[copy.root]]

        assert at_once(4, job) == [(f"inner t{i}", [f"t{i}", f"inner t{i}"]) for i in range(4)]
        assert not inner.chat_messages
        assert queue[0]["recipient"] is inner

    def test_a_config_that_cannot_be_copied_is_refused(self, tmp_path):
        agent = speaker("agent")
        with (tmp_path / "log").open("w") as log:

            def write(recipient, messages, sender, config):
                return False, None

            agent.register_reply([ConversableAgent], write, config={"log": log})
            (refusal, *_) = Template(agent).refusals
        assert refusal.startswith("agent 'agent': _reply_func_list, reply write, config['log'] (_io.TextIOWrapper)")
        assert refusal.endswith("; pass a factory")


class _Special(ConversableAgent):
    pass


class TestAgentState:
    def test_update_system_message_uses_the_copys_context(self, server):
        agent = speaker(
            "agent",
            context_variables=ContextVariables(data={"who": "template"}),
            update_agent_state_before_reply=[UpdateSystemMessage("You serve {who}")],
        )
        copied = clone(agent)
        copied.context_variables["who"] = "copy"
        chat(speaker("user"), copied, "x")
        assert copied.system_message == "You serve copy"
        assert agent.system_message == "You are a helpful AI Assistant."
        assert agent.context_variables["who"] == "template"

    def test_hooks_over_the_agent(self):
        agent, seen = speaker("agent"), []

        def hook(messages):
            seen.append(agent)
            return messages

        agent.register_hook("process_all_messages_before_reply", hook)
        copied = clone(agent)
        chat(speaker("user"), copied, "x")
        assert seen == [copied]
        copied.register_hook("process_all_messages_before_reply", lambda messages: messages)
        assert agent.hook_lists["process_all_messages_before_reply"] == [hook]

    def test_a_method_set_on_the_instance(self):
        agent = speaker("agent")
        agent.get_human_input = lambda prompt: f"{agent.name} {id(agent)}"
        copied = clone(agent)
        assert copied.get_human_input("?") == f"agent {id(copied)}"
