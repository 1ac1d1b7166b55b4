"""A run with a journal and a cassette that is cut and goes on: the cassette holds what counts of all its lives."""

import itertools
import threading

import pytest

from ag2_parallel import Journal, ParallelAgentRunner, ParallelTask, Record, Replay
from ag2_parallel.testing import Fault, ModelServer, Reply


@pytest.fixture
def runner(tmp_path):
    def made(server, **options):
        return ParallelAgentRunner(
            2,
            progress=False,
            llm_config=server.llm_config(),
            model_retry=1,
            **{"journal": tmp_path / "runs.db"} | options,
        )

    return made


def tasks(*names, **fields):
    return [ParallelTask(name, f"case {name}", **fields) for name in names]


@pytest.mark.parametrize("torn", [False, True], ids=["whole", "last line torn"])
def test_what_stands_stays_and_what_starts_anew_is_played_anew(tmp_path, runner, torn):
    path = tmp_path / "talk.jsonl"
    broken = True

    def answer(request):
        if broken and request.last_text == "case b":
            return Fault.status(400)
        return Reply(f"{'first' if broken else 'second'} {request.last_text}")

    with ModelServer(answer) as server:
        first = runner(server, cassette=Record(path)).run(tasks("a", "b"), run_id="one")
        assert [result.ok for result in first.values()] == [True, False]
        if torn:
            with path.open("ab") as file:
                file.write(b'{"task":"b","dig')
        broken = False
        second = runner(server, cassette=Record(path)).run(tasks("a", "b", "c"), run_id="one")
        asked = server.ledger.count
        played = runner(server, journal=None, cassette=Replay(path)).run(tasks("a", "b", "c"))
        assert server.ledger.count == asked == 4
    assert second.ok
    assert {name: result.output for name, result in played.items()} == {
        "a": "first case a",
        "b": "second case b",
        "c": "second case c",
    }


def test_a_task_that_was_cut_is_played_from_the_calls_of_both_lives(tmp_path, runner):
    path = tmp_path / "talk.jsonl"
    go_on = threading.Event()

    def two_calls(ctx):
        from autogen import AssistantAgent

        agent = AssistantAgent("a", llm_config=ctx.llm_config(config))
        said = []
        for number in range(2):
            while number and not go_on.wait(0.01):
                ctx.check()
            said.append(agent.generate_reply([{"role": "user", "content": f"question {number}"}]))
        return [text if isinstance(text, str) else text["content"] for text in said]

    with ModelServer(lambda request: Reply(f"answer to {request.last_text}")) as server:
        config = server.llm_config()
        cut = runner(server, cassette=Record(path), timeout=1).run([ParallelTask("t", run=two_calls)], run_id="one")
        assert cut["t"].status == "timed_out"
        go_on.set()
        whole = runner(server, cassette=Record(path)).run([ParallelTask("t", run=two_calls)], run_id="one")
        assert whole["t"].usage.replayed_calls == 1
        played = runner(server, journal=None, cassette=Replay(path)).run([ParallelTask("t", run=two_calls)])
        assert server.ledger.count == 2
    assert played["t"].output == whole["t"].output == ["answer to question 0", "answer to question 1"]


@pytest.mark.parametrize(
    ("calls", "words"), [(False, "answer"), (True, "sk-live-1a2b3c4d")], ids=["none kept", "one kept"]
)
def test_calls_that_the_journal_does_not_have_are_played_as_they_were_made_again(tmp_path, runner, calls, words):
    path, go_on, numbers = tmp_path / "talk.jsonl", threading.Event(), itertools.count(1)

    def chat(ctx):
        from autogen import AssistantAgent

        agent = AssistantAgent("a", llm_config=ctx.llm_config(config))
        said = "question 0"
        for number in range(3):
            while number == 2 and not go_on.wait(0.01):
                ctx.check()
            answer = agent.generate_reply([{"role": "user", "content": f"question {number} after {said}"}])
            said = answer if isinstance(answer, str) else answer["content"]
        return said

    def answer(request):
        number = next(numbers)
        return Reply(f"{number} {words}" if "question 1" in request.last_text else f"{number}")

    with ModelServer(answer) as server:
        config, task = server.llm_config(), ParallelTask("t", run=chat)
        options = {"journal": Journal(tmp_path / "runs.db", calls=calls), "cassette": Record(path)}
        assert not runner(server, timeout=1, **options).run([task], run_id="one").ok
        go_on.set()
        whole = runner(server, **options).run([task], run_id="one")
        played = runner(server, journal=None, cassette=Replay(path)).run([task])
    assert whole["t"].replayed_calls == int(calls)
    assert played["t"].output == whole["t"].output


def test_a_played_run_goes_on_where_its_journal_ends(tmp_path, runner):
    path, go_on, numbers = tmp_path / "talk.jsonl", threading.Event(), itertools.count(1)
    go_on.set()

    def chat(ctx):
        from autogen import AssistantAgent

        agent = AssistantAgent("a", llm_config=ctx.llm_config(config))
        said = []
        for number in range(3):
            while number == 2 and not go_on.wait(0.01):
                ctx.check()
            said.append(agent.generate_reply([{"role": "user", "content": "the same"}]))
        return [text if isinstance(text, str) else text["content"] for text in said]

    with ModelServer(lambda _request: f"{next(numbers)}") as server:
        config, task = server.llm_config(), ParallelTask("t", run=chat)
        assert runner(server, journal=None, cassette=Record(path)).run([task])["t"].output == ["1", "2", "3"]
        go_on.clear()
        assert not runner(server, cassette=Replay(path), timeout=1).run([task], run_id="one").ok
        go_on.set()
        whole = runner(server, cassette=Replay(path)).run([task], run_id="one")["t"]
    assert whole.replayed_calls == 2
    assert whole.output == ["1", "2", "3"]
