"""Agents whose clients take no HTTP client: a class of the user's, and Ollama's own package."""

import threading
import time
from types import SimpleNamespace

import pytest
from autogen import AssistantAgent, ConversableAgent, GroupChat
from autogen.agentchat.group import AgentTarget, OnCondition, StringLLMCondition, TerminateTarget
from autogen.agentchat.group.patterns import DefaultPattern
from ollama_server import OllamaServer, ollama_config

from ag2_parallel import ParallelAgentRunner, ParallelTask, RetryPolicy
from ag2_parallel.testing import ModelServer, RecordingObserver

FAST = RetryPolicy(4, initial=0.001)


class OwnClient:
    """A model client as AG2's documentation has it. `plan` says what each call does."""

    plan = staticmethod(lambda params: "fine")

    def __init__(self, config, **_):
        self.model = config["model"]
        self.lock = threading.Lock()  # nothing that could be copied deeply

    def create(self, params):
        said = type(self).plan(params)
        if isinstance(said, Exception):
            raise said
        message = SimpleNamespace(content=said, function_call=None, tool_calls=None)
        if isinstance(said, dict):
            message = SimpleNamespace(content=None, function_call=None, **said)
        choice = SimpleNamespace(message=message, finish_reason="stop" if said else "content_filter")
        usage = SimpleNamespace(prompt_tokens=5, completion_tokens=2)  # AG2 itself looks here where there is a price
        return SimpleNamespace(choices=[choice], model=self.model, cost=0, usage=usage)

    def message_retrieval(self, response):
        message = response.choices[0].message
        return [message if message.tool_calls else message.content]

    def cost(self, response):
        return 0

    @staticmethod
    def get_usage(response):
        return {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7, "cost": 0, "model": response.model}


def client_that(plan):
    return type("OwnClient", (OwnClient,), {"plan": staticmethod(plan)})


def config(**entry):
    return {"config_list": [{"model": "own", "model_client_cls": "OwnClient", "price": [1, 1]} | entry]}


def agent(client, name="a", **options):
    made = ConversableAgent(name, llm_config=config(), human_input_mode="NEVER", **options)
    made.register_model_client(client)
    return made


def results_of(*tasks, **options):
    options = {"progress": False, "model_retry": FAST} | options
    return ParallelAgentRunner(**options).run(list(tasks))


@pytest.mark.parametrize("fresh", [True, False])
def test_calls_of_a_class_of_the_users_are_counted_priced_and_told_of(fresh):
    client = client_that(lambda params: f"to {params['messages'][-1]['content']}")
    template = agent(client)
    observer = RecordingObserver()
    tasks = [
        ParallelTask(name, name, agent=(lambda: agent(client)) if fresh else template)
        for name in ("one", "two", "three")
    ]
    results = results_of(*tasks, observers=[observer])
    assert {name: result.output for name, result in results.items()} == {name: f"to {name}" for name in results}
    for result in results.values():
        assert (result.usage.calls, result.usage.total_tokens, result.usage.cost) == (1, 7, 0.007)
        assert list(result.usage.by_model) == ["own"]
    finished = [event for event in observer.events if event.type == "ModelCallFinished"]
    assert sorted(event.task for event in finished) == ["one", "three", "two"]
    assert {event.endpoint for event in finished} == {"OwnClient"}
    assert not [event for event in observer.events if event.type == "RunWarning"]
    assert type(template.client._clients[0]) is client, "the template keeps its own"


def test_failures_of_such_a_client_are_tried_again_and_told_apart():
    left = [TimeoutError("slow"), ConnectionError("gone")]
    result = results_of(ParallelTask("t", "x", agent=agent(client_that(lambda _: left.pop() if left else "fine"))))["t"]
    assert (result.output, result.usage.retried_calls) == ("fine", 2)
    asked = []

    def refused(_params):
        asked.append(1)
        error = RuntimeError("no such model")
        error.status_code, error.body = 404, {"error": "model 'own' not found"}
        return error

    result = results_of(ParallelTask("t", "x", agent=agent(client_that(refused)), retry=3))["t"]
    assert (result.error.kind, result.attempts, len(asked)) == ("configuration", 1, 1)


def test_an_answer_that_the_filter_left_empty_says_so_and_is_final():
    result = results_of(ParallelTask("t", "x", agent=agent(client_that(lambda _: "")), retry=3))["t"]
    assert (result.error.kind, result.attempts) == ("content_filter", 1)
    assert "content filter left nothing" in result.error.message


def test_a_call_in_flight_is_left_to_its_thread_at_the_deadline():
    release = threading.Event()

    def slow(_params):
        release.wait(20)
        return "late"

    begun = time.monotonic()
    result = results_of(ParallelTask("t", "x", agent=agent(client_that(slow)), timeout=0.3), grace=0.2)["t"]
    assert time.monotonic() - begun < 10
    release.set()
    assert (result.status, result.ended) == ("timed_out", "abandoned")
    assert (result.usage.calls, result.usage.unreported_calls) == (0, 1)


def test_a_stopped_task_makes_no_further_call():
    calls = []

    def chatty(_params):
        calls.append(1)
        time.sleep(0.2)
        return "more"

    def make():
        return agent(client_that(chatty), "a"), agent(client_that(chatty), "b")

    result = results_of(ParallelTask("t", "x", agent=make, max_turns=50, timeout=0.5), grace=5)["t"]
    assert (result.status, result.ended) == ("timed_out", "unwound")
    assert len(calls) < 6


def test_speaker_selection_by_such_a_client_is_counted():
    client = client_that(lambda params: "second" if "select the next" in str(params["messages"]).lower() else "words")

    def make():
        agents = [agent(client, "first"), agent(client, "second")]
        return GroupChat(
            agents,
            [],
            max_round=3,
            select_speaker_auto_llm_config=config(),
            select_speaker_auto_model_client_cls=client,
        )

    result = results_of(ParallelTask("t", "x", agent=make))["t"]
    speakers = [message["name"] for message in result.chat_history[1:]]
    assert speakers[0] == "second"
    assert result.usage.calls > len(speakers), "the selections are calls too"


def test_registered_clients_survive_the_tools_that_handoffs_add():
    def plan(params):
        if params.get("tools"):
            name = params["tools"][0]["function"]["name"]
            call = SimpleNamespace(id="c1", type="function", function=SimpleNamespace(name=name, arguments="{}"))
            call.model_dump = lambda: {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
            message = SimpleNamespace(tool_calls=[call])
            message.model_dump = lambda: {"content": None, "tool_calls": [call.model_dump()]}
            return {"tool_calls": [call], "model_dump": message.model_dump}
        return "from the second"

    client = client_that(plan)

    def make():
        first, second = agent(client, "first"), agent(client, "second")
        first.handoffs.add_llm_condition(
            OnCondition(target=AgentTarget(second), condition=StringLLMCondition("always"))
        )
        return DefaultPattern(first, [first, second], group_after_work=TerminateTarget())

    result = results_of(ParallelTask("t", "x", agent=make))["t"]
    assert (result.output, result.usage.calls) == ("from the second", 2), result.error


def test_an_agent_made_in_a_function_with_such_a_configuration_is_warned_of():
    observer = RecordingObserver()
    client = client_that(lambda _: "fine")

    def work(ctx):
        made = ConversableAgent("a", llm_config=ctx.llm_config(config()), human_input_mode="NEVER")
        made.register_model_client(client)
        user = ConversableAgent("u", llm_config=False, human_input_mode="NEVER")
        return user.initiate_chat(made, message="x", max_turns=1, silent=True).summary

    result = results_of(ParallelTask("t", run=work), observers=[observer])["t"]
    assert (result.output, result.usage.calls) == ("fine", 0)
    assert '"OwnClient" do not pass' in next(e.message for e in observer.events if e.type == "RunWarning")


def test_entries_of_both_sorts_in_one_fallback_list():
    with ModelServer("from the server") as server:
        both = {"config_list": [*server.llm_config()["config_list"], *config()["config_list"]]}
        made = ConversableAgent("a", llm_config=both, human_input_mode="NEVER")
        made.register_model_client(client_that(lambda _: "from the class"))
        assert results_of(ParallelTask("t", "x", agent=made))["t"].output == "from the server"
        server.reply = ""
        server.close()
        result = results_of(ParallelTask("t", "x", agent=made))["t"]
        assert (result.output, result.usage.calls, result.usage.retried_calls) == ("from the class", 1, 1)


# Ollama's own package against a server that speaks its protocol


@pytest.fixture
def ollama():
    with OllamaServer() as server:
        yield server


def test_ollama_agents_are_counted_exactly_and_tried_again(ollama):
    ollama.answers = [(503, {"error": "server busy, please try again.  maximum pending requests exceeded"})] * 2
    observer = RecordingObserver()
    llm = ollama_config(ollama)
    results = results_of(
        *[ParallelTask(f"t{i}", f"word {i}", {"llm_config": llm}) for i in range(8)],
        ParallelTask("template", "word t", agent=AssistantAgent("a", llm_config=llm)),
        observers=[observer],
        max_workers=4,
    )
    assert results.ok, results.errors
    assert {result.output for result in results.values()} == {f"heard word {i}" for i in (*range(8), "t")}
    assert (results.usage.calls, results.usage.retried_calls, results.usage.total_tokens) == (9, 2, 9 * 15)
    assert results.usage.cost == 0
    assert len(ollama.asked) == 11
    assert {e.endpoint for e in observer.events if e.type == "ModelCallStarted"} == {ollama.url}


def test_an_unknown_ollama_model_is_the_callers_error(ollama):
    ollama.answers = [(404, {"error": "model 'm' not found, try pulling it first"})] * 9
    result = results_of(ParallelTask("t", "x", {"llm_config": ollama_config(ollama)}, retry=3))["t"]
    assert (result.error.kind, result.error.status_code, result.attempts) == ("configuration", 404, 1)
    assert len(ollama.asked) == 1


def test_ollama_that_is_not_there_is_a_connection_error():
    llm = {"config_list": [{"api_type": "ollama", "model": "m", "client_host": "http://127.0.0.1:9"}]}
    result = results_of(ParallelTask("t", "x", {"llm_config": llm}), model_retry=2)["t"]
    assert (result.error.kind, result.usage.calls) == ("connection", 0)
