"""F26, F33: what is kept of a run, in a journal or a cassette, has text of any kind in it and no key."""

import json

import pytest
from agents import runner
from test_secrets import KEYS, assert_absent

from ag2_parallel import Journal, ParallelTask, Record, Replay, once
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall

pytestmark = pytest.mark.usefixtures("no_threads_left")

TEXTS = ["\U0001f378", "e\u0301", "\u202etxt", "\r\n", "\x1b[2J", "\ufeffx", "\x00", "\u2028"]
HALVES = ["\ud83d", "a\udc97b"]


def blob(folder):
    """Everything that was written, as text, and what its JSON strings mean."""
    return "\n".join(path.read_bytes().decode("latin1") for path in sorted(folder.rglob("*")) if path.is_file())


def echo(request):
    return f"heard {request.last_text}"


@pytest.mark.parametrize("half", [False, True])
def test_any_text_goes_through_a_journal_and_a_cassette(tmp_path, half):
    """F26: also a half of a pair that a model answers with."""
    texts = HALVES if half else TEXTS
    reply = (lambda request: Reply(texts[int(request.last_text)])) if half else echo
    with ModelServer(reply) as server:
        prompts = [str(i) for i in range(len(texts))] if half else texts
        tasks = [ParallelTask(f"t{i}", prompt) for i, prompt in enumerate(prompts)]
        options = {"llm_config": server.llm_config(), "journal": Journal(tmp_path / "runs.db")}
        live = runner(**options, cassette=Record(tmp_path / "talk.jsonl")).run(tasks)
        played = runner(**options, cassette=Replay(tmp_path / "talk.jsonl")).run(tasks)
    assert live.ok, live.errors
    assert [result.output for result in played.values()] == [result.output for result in live.values()]
    assert [result.output for result in live.values()] == (texts if half else [f"heard {text}" for text in texts])
    for line in (tmp_path / "talk.jsonl").read_text(encoding="utf-8").split("\n")[:-1]:
        json.loads(line)


@once
def remember(secret: str) -> str:
    """Remember something."""
    return f"remembered {len(secret)}"


@pytest.mark.parametrize("key", KEYS[:2])
def test_no_key_is_kept(tmp_path, key):
    """F33: of a call that fails, one that succeeds, one that is cut, a tool's argument."""

    def reply(request):
        if "hang" in str(request.messages):
            return Fault.hang()
        if "refuse" in str(request.messages):
            return Fault.status(401, message=f"Incorrect API key provided: {key}")
        if request.tools and request.messages[-1]["role"] != "tool":
            return Reply(tool_calls=[ToolCall("remember", {"secret": "x" * 5})])
        return "fine"

    with ModelServer(reply) as server:
        config = server.llm_config(api_key=key)
        tasks = [
            ParallelTask("refused", "refuse", {"llm_config": config}),
            ParallelTask("hangs", "hang", {"llm_config": config}, timeout=1.0),
            ParallelTask("tool", "go", {"llm_config": config, "functions": [remember]}),
            ParallelTask("effect", run=lambda _ctx: remember(key)),
        ]
        options = {"journal": Journal(tmp_path / "runs.db"), "cassette": Record(tmp_path / "talk.jsonl")}
        results = runner(llm_config=config, model_retry=1, **options).run(tasks)
    assert [result.status for result in results.values()] == ["failed", "timed_out", "succeeded", "succeeded"]
    assert_absent(key, blob(tmp_path))
