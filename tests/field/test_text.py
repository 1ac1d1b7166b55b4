"""F07, F26: what agents print stays apart, and any text gets through or is refused at once."""

import json
import re
import sys
import unicodedata

import pytest
from agents import run, served

from ag2_parallel import ParallelTask, Template
from ag2_parallel.testing import ModelServer, Reply, ToolCall

pytestmark = pytest.mark.usefixtures("no_threads_left")

# ---- F07


def lines(tag, count=50):
    return "".join(f"<{tag}:{number}>\n" for number in range(count))


def by_model(line, server, tag):
    """An agent that is shown saying fifty lines."""
    return ParallelTask(tag, f"after 0.02 {lines(tag)}", agent=line.ok(server))


def by_tool(line, server, tag):
    """An agent whose tool prints fifty lines, piece by piece."""

    def chatty() -> str:
        for each in lines(tag).splitlines():
            sys.stdout.write(each[:3])
            sys.stdout.write(f"{each[3:]}\n")
        return "printed"

    return ParallelTask(tag, "call", agent=line.agent_calling(server, chatty))


def said(result, tag):
    return re.findall(rf"<{tag}:\d+>", result.console)


@pytest.mark.parametrize("make", [by_model, by_tool])
class TestConsole:
    tags = tuple(f"t{number}" for number in range(8))

    def run(self, line, make, console):
        with served() as server:
            results = run([make(line, server, tag) for tag in self.tags], max_workers=8, console=console)
        for tag, result in results.items():  # a transcript holds its own lines in all modes
            text = json.dumps([message["content"] for message in result.chat_history])
            assert set(re.findall(r"<(t\d):", text)) <= {tag}
            assert result.output == (lines(tag) if make is by_model else "printed")
        return results

    def test_grouped(self, line, make, capfd):
        results = self.run(line, make, "grouped")
        blocks = re.split(r"^===== (t\d) =====\n", capfd.readouterr().out, flags=re.MULTILINE)
        assert blocks[0] == ""
        assert sorted(blocks[1::2]) == sorted(self.tags)
        for tag, block in zip(blocks[1::2], blocks[2::2], strict=True):
            assert set(re.findall(r"<(t\d):", block)) == {tag}
            assert f"\n{lines(tag)}" in f"\n{block}"
            assert results[tag].console == block

    def test_prefixed(self, line, make, capfd):
        self.run(line, make, "prefix")
        shown = capfd.readouterr().out.splitlines()
        assert all(re.match(r"t\d \| ", each) for each in shown)
        for tag in self.tags:
            own = [each.removeprefix(f"{tag} | ") for each in shown if each.startswith(f"{tag} | ")]
            assert lines(tag) in "".join(f"{each}\n" for each in own)
        assert not [each for each in shown if len(set(re.findall(r"t\d", each.replace("after", "")))) > 1]

    def test_quiet(self, line, make, capfd):
        results = self.run(line, make, "quiet")
        out = capfd.readouterr().out
        if make is by_model:
            assert out == ""
            assert [len(set(said(results[tag], tag))) for tag in self.tags] == [50] * 8
        else:  # the user's own prints are nobody else's business
            assert len(re.findall(r"\d+>", out)) == 400
            assert "printed" not in out


# ---- F26

SENT = {
    "emoji": "\U0001f378",
    "decomposed": "e\u0301",
    "right to left": "\u202etxt",
    "line end": "\r\n",
    "escape": "\x1b[2J",
    "byte order mark": "\ufeffx",
    "nul": "a\x00b",
    "separators": "a\u2028b\u2029c\x85d",
    "noncharacter": "\uffff",
    "joined": "\U0001f469\u200d\U0001f52c",
    "quotes": "\"\\'{{ }} ${x} %s {0}",
}
UNSENDABLE = {
    "high": "\ud83d",
    "low inside": "a\udc97b",
    "undecodable bytes": b"caf\xe9".decode("utf-8", "surrogateescape"),
    "swapped pair": "\udf78\ud83c",
}


@pytest.mark.parametrize("console", ["quiet", "prefix", "grouped"])
def test_every_text_that_can_be_sent_arrives_as_it_is(line, console, tmp_path, capfd):
    with served() as server:
        results = run(
            [ParallelTask(name, text, agent=line.ok(server)) for name, text in SENT.items()],
            console=console,
            retry=3,
            max_workers=4,
        )
        assert {request.text for request in server.ledger.requests} == set(SENT.values())
    assert {name: result.output for name, result in results.items()} == {n: f"echo: {t}" for n, t in SENT.items()}
    assert {result.attempts for result in results.values()} == {1}
    results.to_json(tmp_path / "r.json")
    rows = json.loads((tmp_path / "r.json").read_bytes().decode("utf-8"))["results"]
    assert [row["output"] for row in rows] == [f"echo: {text}" for text in SENT.values()]
    out = capfd.readouterr().out
    assert not [c for c in out if unicodedata.category(c) == "Cc" and c not in "\n\t"]


PLACES = {
    "prompt": lambda line, server, text: {"prompt": text, "agent": line.ok(server)},
    "message": lambda line, server, text: {"prompt": {"role": "user", "content": text}, "agent": line.ok(server)},
    "messages": lambda line, server, text: {
        "prompt": [{"role": "user", "content": text}] * 2,
        "agent": line.ok(server),
    },
    "function": lambda line, server, text: {"prompt": lambda ctx: text, "agent": line.ok(server)},
    "template": lambda line, server, text: {
        "prompt": Template("{{ context.x }}"),
        "agent": line.ok(server),
        "context": {"x": text},
    },
    "config": lambda line, server, text: {"prompt": text, "agent_config": line.agent_config(server)},
    "live agent": lambda line, server, text: {"prompt": text, "agent": line.assistant(server)},
    "group": lambda line, server, text: {"prompt": text, "agent": line.team(server), "max_turns": 4},
    "system message": lambda line, server, text: {
        "prompt": "x",
        "agent": lambda: line.assistant(server, system=text),
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_what_cannot_be_sent_fails_at_once_and_says_why(line, place, tmp_path, capfd):
    """F26: however often it may be tried."""
    with served() as server:
        tasks = [ParallelTask(name, **PLACES[place](line, server, text)) for name, text in UNSENDABLE.items()]
        results = run([*tasks, ParallelTask("other", "fine", agent=line.ok(server))], retry=3, console="prefix")
        assert [request.text for request in server.ledger.requests] == ["fine"]
    assert [result.name for result in results.succeeded] == ["other"]
    for result in results.failed:
        assert result.attempts == 1
        assert (result.error.kind, result.error.retryable) == ("configuration", False)
        assert "surrogate" in result.error.message
    results.to_json(tmp_path / "r.json")
    rows = json.loads((tmp_path / "r.json").read_bytes().decode("utf-8"))["results"]
    assert [row["status"] for row in rows] == ["failed"] * 4 + ["succeeded"]
    for text in (repr(tasks), repr(results), results._repr_html_(), capfd.readouterr().out):
        text.encode()


HALF = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "\ud83d"}}]}


def test_half_a_pair_from_a_model_may_be_whole_in_the_next_attempt(line):
    """F26: within a conversation nothing is sent again."""
    with ModelServer([HALF, "whole", line.LAST_WORD]) as server:
        tasks = [ParallelTask("t", "hello", agent=line.short_team(server), max_turns=6)]
        result = run(tasks, retry=3)["t"]
        assert result.ok
        assert (result.output, result.attempts, server.ledger.count) == ("whole", 2, 3)
    with ModelServer(HALF) as server:
        result = run([ParallelTask("t", "hello", agent=line.team(server), max_turns=6)])["t"]
        assert server.ledger.count == 1
    assert (result.status, result.error.kind) == ("failed", "invalid_answer")
    assert "half of a surrogate pair" in result.error.message
    assert len(result.chat_history) == 2


def test_half_a_pair_from_a_tool_is_not_sent_again(line):
    """F26."""

    def tool() -> str:
        return "\udc97"

    with ModelServer(Reply(tool_calls=[ToolCall("tool")])) as server:
        result = run([ParallelTask("t", "hello", agent=line.agent_calling(server, tool))])["t"]
        assert server.ledger.count == 1
    assert (result.status, result.error.kind) == ("failed", "invalid_answer")
    assert len(result.chat_history) >= 2
