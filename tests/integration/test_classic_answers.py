"""Prompts of all shapes, and what a chat's answer becomes."""

from typing import Literal

import pytest
from autogen import AssistantAgent, ConversableAgent, GroupChat
from autogen.agentchat.group.patterns import RoundRobinPattern
from classic_scope import attempt, run, task
from pydantic import BaseModel

from ag2_parallel.frameworks.failures import InvalidAnswerError
from ag2_parallel.testing import Fault, ModelServer, Reply


class Finding(BaseModel):
    name: str
    score: int


GOOD = '{"name": "fever", "score": 3}'


def agent(server, name="a"):
    return AssistantAgent(name, system_message="Be brief.", llm_config=server.llm_config())


def seen(server):
    """Role and content of what the model was last sent."""
    return [(message["role"], message["content"]) for message in server.ledger.requests[-1].body["messages"]]


PROMPTS = {
    "text": ("hi", [("user", "hi")]),
    "message": ({"role": "user", "content": "hi"}, [("user", "hi")]),
    "parts": (
        {"content": [{"type": "text", "text": "hi"}]},
        [("user", [{"type": "text", "text": "hi"}])],
    ),
    "history": (
        [
            {"role": "system", "content": "Speak Latin."},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "unum"},
            {"role": "user", "content": "two"},
        ],
        [("system", "Speak Latin."), ("user", "one"), ("assistant", "unum"), ("user", "two")],
    ),
    "tool results": (
        [
            {"role": "user", "content": "one"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "unum"},
            {"role": "user", "content": "two"},
        ],
        [("user", "one"), ("assistant", None), ("tool", "unum"), ("user", "two")],
    ),
}


@pytest.mark.parametrize("shape", PROMPTS)
def test_a_prompt_of_any_shape_reaches_a_lone_agent(tmp_path, shape):
    prompt, expected = PROMPTS[shape]
    with ModelServer("ok") as server:
        ran = run(task(prompt), lambda _: agent(server), tmp_path=tmp_path)
        assert seen(server) == [("system", "Be brief."), *expected]
        assert ran.answer.output == "ok"
        assert len(ran.history) == len(expected) + 1


@pytest.mark.parametrize("form", ["pair", "group chat", "pattern"])
def test_a_prompt_with_history_reaches_a_team(tmp_path, form):
    prompt = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "unum"},
        {"role": "user", "content": "two"},
    ]

    def make(_):
        agents = [agent(server, "a"), agent(server, "b")]
        if form == "pair":
            return ConversableAgent("boss", llm_config=False, human_input_mode="NEVER"), agents[0]
        if form == "group chat":
            return GroupChat(agents, [], max_round=2, speaker_selection_method="round_robin")
        return RoundRobinPattern(agents[0], agents)

    with ModelServer("ok") as server:
        ran = run(task(prompt, max_turns=None if form == "group chat" else 2), make, tmp_path=tmp_path)
        sent = [
            content for _, content in [(m["role"], m["content"]) for m in server.ledger.requests[0].body["messages"]]
        ]
        assert sent == ["Be brief.", "one", "unum", "two"]
        assert ran.texts[:4] == ["one", "unum", "two", "ok"]
        assert ran.answer.output == "ok"


def test_an_empty_list_is_no_prompt(tmp_path):
    with ModelServer("ok") as server:
        ran = attempt(task([]), lambda _: agent(server), tmp_path=tmp_path)
        assert "empty list" in str(ran.error)


@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        (Finding, GOOD, Finding(name="fever", score=3)),
        (Finding, f"```json\n{GOOD}\n```", Finding(name="fever", score=3)),
        (list[int], "[1, 2]", [1, 2]),
        (int, " 42 ", 42),
        (Literal["red", "blue"], "red", "red"),
        (str, "plain", "plain"),
    ],
)
def test_an_answer_is_validated_into_its_type(tmp_path, output_type, text, value):
    with ModelServer(text) as server:
        ran = run(task(output_type=output_type), lambda _: agent(server), tmp_path=tmp_path)
        assert ran.answer.output == value
        assert ran.answer.summary == text
        asked_for = server.ledger.requests[0].body.get("response_format")
        assert (asked_for is not None) is (output_type is Finding)
        assert asked_for is None or asked_for["json_schema"]["name"] == "Finding"


@pytest.mark.parametrize("form", ["lone", "group"])
def test_an_answer_that_does_not_fit_is_asked_for_again_in_the_same_chat(tmp_path, form):
    def make(_):
        return agent(server) if form == "lone" else [agent(server, "a"), agent(server, "b")]

    def reply(request):
        return GOOD if "could not be used" in request.last_text else "a fever, I think"

    with ModelServer(reply) as server:
        fields = {"max_turns": 2} if form == "group" else {}
        ran = run(task(output_type=Finding, output_retries=1, **fields), make, tmp_path=tmp_path)
        assert ran.answer.output == Finding(name="fever", score=3)
        assert len(ran.history) == 4
        assert ran.texts[1] == "a fever, I think"
        assert "Finding" in ran.texts[2]
        assert server.ledger.count == 2


def test_re_asking_is_capped(tmp_path):
    with ModelServer('{"name": 1}') as server:
        ran = attempt(task(output_type=Finding, output_retries=2), lambda _: agent(server), tmp_path=tmp_path)
        assert isinstance(ran.error, InvalidAnswerError)
        assert "score: Field required" in str(ran.error)
        assert server.ledger.count == 3
        assert len(ran.history) == 6


def test_reflection_sums_a_chat_up_through_the_gate(tmp_path):
    def reply(request):
        return "the sum" if "Sum it up" in str(request.messages[-1]["content"]) else "a long talk"

    with ModelServer(reply) as server:
        fields = {"summary_method": "reflection_with_llm", "summary_args": {"summary_prompt": "Sum it up"}}
        ran = run(task(**fields), lambda _: agent(server), tmp_path=tmp_path)
        assert ran.answer.output == "the sum"
        assert ran.texts[-1] == "a long talk"
        ran = run(task(max_turns=3, **fields), lambda _: [agent(server, "a"), agent(server, "b")], tmp_path=tmp_path)
        assert ran.answer.output == "the sum"
        assert ran.scope.gate.requests == 3
        assert fields["summary_args"] == {"summary_prompt": "Sum it up"}


def test_a_failing_reflection_fails_the_task_with_its_reason(tmp_path):
    with ModelServer(["an answer", Fault.status(400, message="no reflections today")]) as server:
        ran = attempt(task(summary_method="reflection_with_llm"), lambda _: agent(server), tmp_path=tmp_path)
        assert "no reflections today" in str(ran.error)
        assert ran.texts[-1] == "an answer"


def test_other_summaries(tmp_path):
    with ModelServer("an answer") as server:
        ran = run(task(summary_method=None), lambda _: agent(server), tmp_path=tmp_path)
        assert (ran.answer.output, ran.answer.summary, ran.texts[-1]) == (None, None, "an answer")

        def shout(sender, recipient, arguments):
            return recipient.last_message(sender)["content"].upper() + arguments["end"]

        ran = run(task(summary_method=shout, summary_args={"end": "!"}), lambda _: agent(server), tmp_path=tmp_path)
        assert ran.answer.output == "AN ANSWER!"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_answer_is_a_failure(tmp_path, text):
    with ModelServer(Reply(text)) as server:
        ran = attempt(task(), lambda _: agent(server), tmp_path=tmp_path)
        assert isinstance(ran.error, InvalidAnswerError)
        assert str(ran.error).endswith("ended without an answer (stop reason: answered)")


def test_an_agent_without_a_model_that_has_nothing_to_say_is_told_by_its_cause(tmp_path):
    ran = attempt(task(), lambda _: AssistantAgent("mute"), tmp_path=tmp_path)
    assert isinstance(ran.error, InvalidAnswerError)
    assert '"mute" has no model: give it an llm_config (that of the runner is for agent_config alone)' in str(ran.error)


def test_a_model_error_is_raised_as_it_is(tmp_path):
    with ModelServer(Fault.status(401, message="wrong key")) as server:
        ran = attempt(task(), lambda _: agent(server), tmp_path=tmp_path)
        assert type(ran.error).__name__ == "AuthenticationError"
        assert ran.scope.gate.requests == 1
        assert ran.scope.draft.agent == "a"
        assert ran.texts == ["hello"]


def test_the_sdks_retries_are_off_and_a_fallback_is_used(tmp_path):
    with ModelServer([Fault.status(500), "from the second"]) as server:
        config = {
            "config_list": [server.llm_config()["config_list"][0], server.llm_config(price=[1, 2])["config_list"][0]]
        }
        ran = run(task(), lambda _: AssistantAgent("a", llm_config=config), tmp_path=tmp_path)
        assert ran.answer.output == "from the second"
        assert server.ledger.count == 2
        assert [entry["last_entry"] for entry in ran.scope.gate.entries] == [False, True]
        assert [entry["price"] for entry in ran.scope.gate.entries] == [None, (1.0, 2.0)]


def test_the_console_is_captured_without_a_price_warning(tmp_path, capfd):
    with ModelServer("printed") as server:
        ran = run(task(), lambda _: agent(server), tmp_path=tmp_path)
        assert "printed" in "".join(ran.scope.draft.console)
        out, err = capfd.readouterr()
        assert "cost" not in out + err
        assert "printed" not in out + err
