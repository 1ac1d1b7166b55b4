"""Reading transcripts, reasons and model configurations."""

import httpx
import pytest

from ag2_parallel.frameworks.classic.build import placeholder_config
from ag2_parallel.frameworks.classic.model_configs import route_of
from ag2_parallel.frameworks.classic.stop_reasons import says_terminate, stop_reason
from ag2_parallel.frameworks.classic.stream import Termination
from ag2_parallel.frameworks.classic.transcript import calls_tool, last_answer, text_of


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain ", "plain "),
        ("done. TERMINATE\n", "done."),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"content": "nested", "tool_calls": None}, "nested"),
        (3, "3"),
    ],
)
def test_the_text_of_a_message(content, text):
    assert text_of(content) == text


def said(name, content, **more):
    return {"name": name, "content": content, "role": "user"} | more


def test_the_answer_a_chat_came_to():
    assert last_answer([]) == ""
    assert last_answer([said("a", "one"), said("b", "two")]) == "two"
    assert last_answer([said("a", "mine"), said("b", "go on"), said("a", "TERMINATE")]) == "mine"
    assert last_answer([said("a", "mine"), said("b", "TERMINATE")]) == "mine"
    assert last_answer([said("a", "TERMINATE")]) == ""
    assert last_answer([said("a", "mine"), said("b", "")]) == ""
    called = said("a", None, tool_calls=[{"id": "1"}])
    assert calls_tool(called)
    assert last_answer([said("a", "mine"), called]) == ""
    assert last_answer([called, said("t", "result", role="tool")]) == "result"


@pytest.mark.parametrize(
    ("reasons", "last", "expected"),
    [
        ([], "fine", "answered"),
        ([], "fine. TERMINATE", "termination_message"),
        ([("Termination message condition on agent 'user' met", "user")], "fine", "answered"),
        ([("Termination message condition on agent 'user' met", "user")], "TERMINATE.", "termination_message"),
        ([("Termination message condition on agent 'a' met", "a")], "fine", "termination_message"),
        ([("Maximum turns (3) reached", "user")], "fine", "max_turns"),
        ([("Maximum rounds (3) reached", "chat_manager")], "fine", "max_turns"),
        ([("No next speaker selected", "chat_manager")], "fine", "no_next_speaker"),
        ([("Maximum number of consecutive auto-replies reached", "a")], "fine", "auto_reply_limit"),
        ([("User requested to end the conversation", "a")], "fine", "human_exit"),
        (
            [("User requested to end the conversation", "a"), ("No reply generated", "chat_manager")],
            "fine",
            "human_exit",
        ),
        ([("No reply generated", "chat_manager")], "fine", "answered"),
        ([("Something new", "a")], "fine", "answered"),
    ],
)
def test_why_a_chat_ended(reasons, last, expected):
    terminations = [Termination(reason, sender, None) for reason, sender in reasons]
    assert stop_reason(terminations, user="user", last_message={"content": last}) == expected


def test_the_word_for_the_end():
    assert says_terminate({"content": "ok **TERMINATE**"})
    assert not any(map(says_terminate, (None, {}, {"content": None}, {"content": "TERMINATE is a word"})))


def test_a_configuration_that_is_only_copied_makes_no_connection():
    entry = {"model": "m", "api_key": "k", "base_url": "http://localhost/v1", "price": [1.0, 2.0], "max_retries": 4}
    with httpx.Client(timeout=3) as own:
        config = {"config_list": [entry | {"http_client": own}, entry | {"api_type": "ollama"}], "temperature": 0.5}
        held = placeholder_config(config)
    routed, untouched = held.config_list
    assert route_of(routed) == (own, (1.0, 2.0), True)
    assert routed.http_client.timeout == own.timeout
    assert (routed.max_retries, untouched.max_retries) == (0, 4)
    assert config["config_list"][0]["http_client"] is own
    with pytest.raises(httpx.UnsupportedProtocol, match="only its copies may"):
        routed.http_client.get("http://localhost")
    assert placeholder_config(False) is False
