"""What AG2 1.x has of its own: agents behind tools, schemas, specs, copies, questions."""

import asyncio
import logging
import threading

import pydantic
import pytest
from agents import Routed, run, served

from ag2_parallel import ConfigurationError, ParallelTask
from ag2_parallel.events import AgentEvent
from ag2_parallel.testing import Fault, ModelServer, RecordingObserver, Reply, ToolCall

pytestmark = [pytest.mark.usefixtures("no_threads_left"), pytest.mark.usefixtures("ag2")]


class Diagnosis(pydantic.BaseModel):
    name: str


def delegating(request):
    """The boss asks the agents behind its tools, and repeats what they say; they answer "done"."""
    if request.system_text != "boss":
        return "done"
    told = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
    if told:
        return " & ".join(told)
    calls = [ToolCall(tool["function"]["name"], {"objective": "look"}) for tool in request.tools]
    return Reply(tool_calls=calls)


def a_boss(ag2, server, *, own_config=True):
    """An agent with another one behind a tool, which has one behind its own."""
    lowest = ag2.assistant(server, "lowest", system="low")
    middle = ag2.assistant(server, "middle", system="mid", tools=[lowest.as_tool(description="look")])
    if not own_config:
        lowest.config = None
    return ag2.assistant(server, "boss", system="boss", tools=[middle.as_tool(description="look")])


class TestAgentsBehindTools:
    @pytest.mark.parametrize("form", ["template", "factory", "routed factory"])
    def test_their_calls_are_the_tasks(self, ag2, form):
        with ModelServer(delegating) as server:
            agent = {
                "template": a_boss(ag2, server),
                "factory": lambda: a_boss(ag2, server),
                "routed factory": lambda ctx: a_boss(ag2, Routed(ctx, server)),
            }[form]
            seen = RecordingObserver()
            results = run([ParallelTask(f"t{i}", "x", agent=agent) for i in range(3)], observers=[seen])
            assert results.ok, results.errors
            assert {result.output for result in results.values()} == {"done"}
            assert {result.usage.calls for result in results.values()} == {3}
            assert results.usage.total_tokens == server.ledger.tokens_sent
        assert {event.agent for event in seen.of(AgentEvent)} == {"boss", "middle"}

    def test_one_that_a_function_reaches_is_copied_too(self, ag2):
        with ModelServer(delegating) as server:
            expert = ag2.assistant(server, "expert")

            async def consult(objective: str) -> str:
                return (await expert.ask(objective)).body

            boss = ag2.assistant(server, "boss", system="boss", tools=[consult])
            results = run([ParallelTask(f"t{i}", "x", agent=boss) for i in range(3)], max_workers=3)
            assert {result.usage.calls for result in results.values()} == {3}

    def test_sub_tasks(self, ag2):
        from ag2 import TaskConfig

        def reply(request):
            if "task agent" in request.system_text:
                return "sub-task done"
            told = [str(m["content"]) for m in request.messages if m["role"] == "tool"]
            return told[0] if told else Reply(tool_calls=[ToolCall("run_subtask", {"task": "look"})])

        with ModelServer(reply) as server:
            agent = ag2.assistant(server, "boss", tasks=TaskConfig(max_concurrency=1))
            results = run([ParallelTask(f"t{i}", "x", agent=agent) for i in range(4)], max_workers=4)
            assert {(result.output, result.usage.calls) for result in results.values()} == {("sub-task done", 3)}

    def test_those_in_the_background_end_with_the_task(self, ag2):
        from ag2.tools.subagents.background import background_agent_tool

        def reply(request):
            if request.system_text != "boss":
                return Fault.hang()
            told = [m for m in request.messages if m["role"] == "tool"]
            return "started" if told else Reply(tool_calls=[ToolCall("background_task_slow", {"objective": "look"})])

        with ModelServer(reply) as server:
            slow = ag2.assistant(server, "slow")
            boss = ag2.assistant(server, "boss", system="boss", tools=[background_agent_tool(slow, description="d")])
            result = run([ParallelTask("t", "x", agent=boss)])["t"]
            assert result.output == "started"
            assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)

    def test_a_stop_reaches_them(self, ag2):
        with ModelServer(lambda r: delegating(r) if r.system_text == "boss" else Fault.hang()) as server:
            result = run([ParallelTask("t", "x", agent=a_boss(ag2, server))], timeout=0.5)["t"]
            assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
        assert (result.status, result.ended) == ("timed_out", "cut")
        assert [message["role"] for message in result.chat_history] == ["user", "assistant"]


class TestSchemas:
    def test_an_agents_own_schema_makes_the_output(self, ag2):
        with ModelServer(["nonsense", '{"name": "flu"}']) as server:
            agent = ag2.assistant(server, response_schema=Diagnosis)
            result = run([ParallelTask("t", "x", agent=agent, output_retries=1)])["t"]
            assert server.ledger.count == 2
        assert result.output == Diagnosis(name="flu")
        assert result.summary == '{"name": "flu"}'

    def test_the_tasks_type_comes_first(self, ag2):
        with ModelServer("[1]") as server:
            agent = ag2.assistant(server, response_schema=Diagnosis)
            assert run([ParallelTask("t", "x", agent=agent, output_type=list[int])])["t"].output == [1]

    def test_a_wrong_answer_is_the_tasks_failure(self, ag2):
        with ModelServer("nonsense") as server:
            agent = ag2.assistant(server, response_schema=Diagnosis)
            result = run([ParallelTask("t", "x", agent=agent)])["t"]
        assert (result.status, result.error.kind) == ("failed", "invalid_answer")


class TestDescriptions:
    def test_a_spec_runs_on_the_runners_model(self, ag2):
        from ag2 import AgentSpec

        with served() as server:
            spec = AgentSpec(name="speaker", prompt=["be kind"])
            result = run([ParallelTask("t", "hello", agent=spec)], llm_config=ag2.config(server))["t"]
            assert "be kind" in str(server.ledger.requests[0].body["messages"])
        assert (result.output, result.last_speaker) == ("echo: hello", "speaker")

    def test_what_a_spec_lacks_is_said_before_the_start(self, ag2):
        from ag2 import AgentSpec

        with pytest.raises(ConfigurationError, match=r"names no model.*llm_config") as caught:
            run([ParallelTask("t", "hello", agent=AgentSpec(name="a", tool_names=["search"]))])
        assert "search" in str(caught.value)

    def test_an_agent_config_of_plain_data(self, ag2):
        with ModelServer(delegating) as server:
            entry = {"model": "scripted", "api_key": "none", "base_url": server.base_url}
            config = {
                "type": "ag2.Agent",
                "prompt": "boss",
                "config": entry,
                "agents": [{"name": "helper", "description": "looks"}],
            }
            before = repr(config)
            results = run([ParallelTask(f"t{i}", "x", config) for i in range(2)])
        assert {(result.output, result.usage.calls) for result in results.values()} == {("done", 3)} or results.ok
        assert results["t0"].last_speaker == "t0"
        assert repr(config) == before

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"system_message": "x"}, 'did you mean "prompt"'),
            ({"config": {"provider": "opnai", "model": "m"}}, 'did you mean "openai"'),
            ({"config": {"modle": "m"}}, "modle"),
            ({"config": None}, "no config"),
            ({"tools": ["nowhere:tool"]}, "cannot be imported"),
            ({"agents": [{"config": None, "nmae": "x"}]}, r"agents\[0\].*nmae"),
        ],
    )
    def test_problems_are_found_before_the_start(self, ag2, change, words):
        with served() as server, pytest.raises(ConfigurationError, match=words):
            run([ParallelTask("t", "x", {**ag2.agent_config(server), **change})])

    def test_an_agent_without_a_model_gets_the_runners(self, ag2):
        from ag2 import Agent

        with served() as server:
            assert run([ParallelTask("t", "hello", agent=Agent("a"))], llm_config=ag2.config(server)).ok
            with pytest.raises(ConfigurationError, match='"a" has no model'):
                run([ParallelTask("t", "hello", agent=Agent("a"))])


class TestCopies:
    def test_what_cannot_be_copied_is_refused_by_name(self, ag2, tmp_path):
        from ag2 import KnowledgeConfig, MemoryStream
        from ag2.knowledge import SqliteKnowledgeStore

        with served() as server:
            worker = ag2.assistant(server, "worker")
            agents = {
                "knowledge": ag2.assistant(
                    server, knowledge=KnowledgeConfig(store=SqliteKnowledgeStore(tmp_path / "k.db"))
                ),
                "stream": ag2.assistant(server, tools=[worker.as_tool(description="d", stream=MemoryStream())]),
                "dependencies": ag2.assistant(server, dependencies={"lines": open(__file__, encoding="utf-8")}),  # noqa: SIM115
            }
            for name, agent in agents.items():
                with pytest.raises(ConfigurationError, match="pass a factory") as refused:
                    run([ParallelTask("t", "x", agent=agent)])
                assert "agent 'a'" in str(refused.value)
                assert name in str(refused.value)
            agents["dependencies"].dependencies["lines"].close()

    def test_state_of_observers_and_variables_is_each_copys_own(self, ag2):
        from ag2.observers import LoopDetector

        with served() as server:
            shared = {"notes": []}
            agent = ag2.assistant(server, observers=[LoopDetector()], variables=shared)

            @agent.tool
            def note(context: ag2.Context) -> str:
                context.variables["notes"].append("noted")
                return str(len(context.variables["notes"]))

            results = run([ParallelTask(f"t{i}", "call", agent=agent) for i in range(6)], max_workers=6)
        assert {result.output for result in results.values()} == {"1"}
        assert {str(result.context["notes"]) for result in results.values()} == {"['noted']"}
        assert shared == {"notes": []}

    def test_objects_that_running_tasks_share_are_named_once(self, ag2, caplog):
        shared = []
        both = threading.Barrier(2, timeout=20)

        async def meet() -> str:
            await asyncio.to_thread(both.wait)
            return "met"

        def make(ctx):
            return ag2.with_tools(Routed(ctx, server), meet, variables={"shared": shared})

        with served() as server, caplog.at_level(logging.WARNING):
            assert run([ParallelTask(f"t{i}", "call", agent=make) for i in range(2)], max_workers=2).ok
        assert [r.getMessage() for r in caplog.records if 'list "shared" of agent "a"' in r.getMessage()]


class TestQuestions:
    def asking(self, ag2, server, **options):
        async def ask_person(context: ag2.Context) -> str:
            return await context.input("how many?")

        return ag2.with_tools(server, ask_person, **options)

    def test_a_tools_question_reaches_the_runners_function(self, ag2):
        asked = []

        def hook(request):
            asked.append((request.task, request.agent, request.prompt))
            return "seven"

        with served() as server:
            result = run([ParallelTask("t", "call", agent=self.asking(ag2, server))], human_input=hook)["t"]
        assert result.output == "seven"
        assert asked == [("t", "a", "how many?")]

    def test_one_of_an_agent_behind_a_tool_too(self, ag2):
        def reply(request):
            told = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
            if told:
                return told[0]
            return Reply(tool_calls=[ToolCall(t["function"]["name"], {"objective": "x"}) for t in request.tools])

        with ModelServer(reply) as server:
            boss = ag2.assistant(
                server, "boss", tools=[self.asking(ag2, server, name="worker").as_tool(description="d")]
            )
            result = run([ParallelTask("t", "x", agent=boss)], human_input=lambda _request: "seven")["t"]
        assert result.output == "seven"

    def test_an_agents_own_hook_answers_first(self, ag2):
        with served() as server:
            agent = self.asking(ag2, server, hitl_hook=lambda event: "its own")
            assert (
                run([ParallelTask("t", "call", agent=agent)], human_input=lambda _r: "seven")["t"].output == "its own"
            )
            assert run([ParallelTask("t", "call", agent=agent)])["t"].output == "its own"

    def test_a_question_waits_no_longer_than_the_task(self, ag2):
        release = threading.Event()
        with served() as server:
            task = ParallelTask("t", "call", agent=self.asking(ag2, server), timeout=0.5)
            result = run([task], human_input=lambda _r: str(release.wait(20)), grace=0.2)["t"]
            release.set()
        assert result.status == "timed_out"
