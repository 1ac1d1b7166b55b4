"""What every line of AG2 has to do with prompts of every form."""

import pytest
from agents import run, served

from ag2_parallel import ConfigurationError, ParallelTask, Template

pytestmark = pytest.mark.usefixtures("no_threads_left")


class TestPrompts:
    def test_a_conversation_is_continued(self, line):
        messages = [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "first"},
            {"role": "user", "content": "two"},
        ]
        with served() as server:
            result = run([ParallelTask("t", messages, agent=line.assistant(server, system="you are kind"))])["t"]
            sent = server.ledger.requests[0].body["messages"]
        assert result.output == "echo: two"
        assert [m["content"] for m in sent if m["role"] != "system"] == ["one", "first", "two"]
        assert "be brief" in str([m["content"] for m in sent if m["role"] in {"system", "developer"}])
        assert [m["content"] for m in result.chat_history][-4:] == ["one", "first", "two", "echo: two"]

    def test_a_transcript_is_continued(self, line):
        with served() as server:
            first = run([ParallelTask("t", "one", agent=line.ok(server))])["t"]
            prompt = [*first.chat_history, {"role": "user", "content": "two"}]
            second = run([ParallelTask("t", prompt, agent=line.ok(server))])["t"]
        assert second.output == "echo: two"
        assert [m["content"] for m in second.chat_history] == ["one", "echo: one", "two", "echo: two"]

    def test_parts_and_templates(self, line):
        parts = {"role": "user", "content": [{"type": "text", "text": "what"}, {"type": "text", "text": "is it"}]}
        with served(lambda request: "seen") as server:
            tasks = [
                ParallelTask("parts", parts, agent=line.ok(server)),
                ParallelTask("template", Template("{{ metadata }}"), agent=line.ok(server), metadata="filled"),
            ]
            assert run(tasks).ok
            sent = str([request.body["messages"] for request in server.ledger.requests])
        for text in ("what", "is it", "filled"):
            assert text in sent

    def test_an_empty_list_is_refused(self, line):
        with served() as server:
            with pytest.raises(ConfigurationError, match="prompt"):
                run([ParallelTask("t", [], agent=line.ok(server))])
            result = run([ParallelTask("t", lambda _ctx: [], agent=line.ok(server))])["t"]
        assert (result.status, result.error.kind) == ("failed", "configuration")

    def test_tool_calls_that_nothing_answered_are_answered(self, ag2):
        """AG2 1.x: a transcript that a stop left in the middle of a call can be continued."""
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "", "tool_calls": [call, {**call, "id": "c2"}]},
            {"role": "tool", "tool_call_id": "c2", "content": "seen"},
            {"role": "user", "content": "two"},
        ]
        with served(lambda _request: "fine") as server:
            assert run([ParallelTask("t", messages, agent=ag2.ok(server))]).ok
            sent = server.ledger.requests[0].body["messages"]
        results = {m["tool_call_id"]: m["content"] for m in sent if m["role"] == "tool"}
        assert results["c2"] == "seen"
        assert "not completed" in results["c1"]
