"""F33: a server or a tool that says a secret again: it is in nothing that a run shows or keeps."""

import base64
import dataclasses
import json
import logging
import pickle
import sqlite3
import traceback
import zlib
from contextlib import closing
from urllib.parse import quote

import pytest
from environment import environment
from pydantic import BaseModel, SecretBytes, SecretStr

from ag2_parallel import Journal, ParallelAgentRunner, ParallelTask, Record, RunFailedError, once
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall

SECRET = "Zebra9QuiltMarble"
ODD = 'a"b\\c/é+&x9'
"""One that is written in another way nearly everywhere."""

BASIC = "Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode()


def spellings(secret):
    encoded = base64.b64encode(secret.encode()).decode()
    inside = base64.b64encode(f"user:{secret}".encode()).decode()
    quoted = quote(secret, safe="")
    return [secret, encoded, encoded.rstrip("="), f"Basic {inside}", quoted, quoted.lower(), json.dumps(secret)[1:-1]]


def assert_absent(secret, blob):
    for form in {secret, *spellings(secret)} - {secret.lower()}:
        at = blob.find(form)
        assert at < 0, f"...{blob[max(0, at - 200) : at + 100]}..."


def stored(path, *tables):
    """All text in a journal, or in some of its tables."""
    told = []
    with closing(sqlite3.connect(path)) as db:
        every = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        for table in tables or every:
            for cell in (cell for row in db.execute(f"select * from {table}") for cell in row):
                for data in (cell, cell[1:]) if isinstance(cell, bytes) else (str(cell).encode(),):
                    try:
                        told.append(zlib.decompress(data))
                    except zlib.error:
                        told.append(data)
    return b"\n".join(told).decode("utf-8", "replace")


def everything(tmp_path, tasks, **options):
    """Run the tasks and return the results and all that is shown and kept of them."""
    events = []
    runner = ParallelAgentRunner(
        progress=False, console="grouped", observers=[events.append], retry=2, model_retry=1,
        journal=Journal(tmp_path / "runs.db"), **options,
    )  # fmt: skip
    results = runner.run(tasks)
    results.timeline(tmp_path / "page.html")
    results.to_json(tmp_path / "results.json")
    told = [repr(results), results._repr_html_(), repr(runner), *map(repr, tasks), stored(tmp_path / "runs.db")]
    told += [repr(events), *(json.dumps(event.to_dict()) for event in events)]
    for result in results.values():
        told += [repr(dataclasses.replace(result, metadata=None)), str(result.error), repr(result.error)]
        told += [repr(result.output), repr(result.chat_history), result.console, repr(result.trace)]
    told += [path.read_text() for path in tmp_path.iterdir() if path.suffix in {".html", ".json", ".jsonl"}]
    return results, "\n".join(told)


def entry_of(how, url):
    address = url.replace("http://", f"http://user:{SECRET}@")
    return {
        "password of an address": {"base_url": address},
        "token of an address": {"base_url": url.replace("http://", f"http://{SECRET}@")},
        "query of an address": {"base_url": url, "default_headers": {"X-From": f"https://h/x?sig={SECRET}"}},
        "cookie": {"base_url": url, "default_headers": {"Cookie": f"theme=dark; sid={SECRET}"}},
        "basic": {"base_url": url, "default_headers": {"Authorization": BASIC}},
        "key": {"base_url": url, "api_key": SECRET},
    }[how]


HOWS = ["password of an address", "token of an address", "query of an address", "cookie", "basic", "key"]


@pytest.mark.parametrize("how", HOWS)
def test_what_a_server_says_again_of_a_configuration(tmp_path, capfd, caplog, how):
    said = " ".join(spellings(SECRET))

    def reply(request):
        return Fault.status(400, message=f"bad {said}") if request.last_text == "fail" else f"I know {said}"

    with ModelServer(reply) as server, caplog.at_level(logging.INFO, "ag2_parallel"):
        entry = {"model": "m", "api_key": "x", **entry_of(how, server.base_url)}
        tasks = [ParallelTask("fine", "x"), ParallelTask("bad", "fail")]
        cassette = Record(tmp_path / "tape.jsonl")
        results, told = everything(tmp_path, tasks, llm_config={"config_list": [entry]}, cassette=cassette)
        assert server.ledger.count >= 2
    assert results["fine"].output.startswith("I know ***")
    assert "bad ***" in results["bad"].error.message
    assert_absent(SECRET, told + capfd.readouterr().out + caplog.text)


@pytest.mark.parametrize(
    "context",
    [
        {"password": SECRET},
        {"a": [{"api_key": SECRET.encode()}]},
        {"db_password": SecretStr(SECRET)},
        {"auth_token": SecretBytes(SECRET.encode())},
        {"url": f"postgresql://me:{SECRET}@host:5432/db"},
        {"url": f"https://h/x?api_key={SECRET}"},
    ],
    ids=["text", "bytes", "SecretStr", "SecretBytes", "address", "query"],
)
@pytest.mark.parametrize("field", ["context", "metadata"])
def test_what_a_tool_says_again_of_a_tasks_data(tmp_path, capfd, field, context):
    def raising(ctx):
        print("using", SECRET)
        error = ValueError("refused")
        error.add_note(f"with {SECRET}") if hasattr(error, "add_note") else None
        raise RuntimeError("no login") from error

    def telling(ctx):
        return " ".join(spellings(SECRET))

    tasks = [ParallelTask(run.__name__, run=run, **{field: context}) for run in (raising, telling)]
    results, told = everything(tmp_path, tasks)
    assert results["telling"].output.startswith("***")
    assert "no login" in results["raising"].error.traceback
    assert_absent(SECRET, told + capfd.readouterr().out)


class Said(BaseModel):
    text: str


@dataclasses.dataclass(frozen=True)
class Held:
    text: str
    more: object = None


@pytest.mark.parametrize(
    "value",
    [Said(text=SECRET), Held("x", {"y": Held(SECRET)}), {SECRET}, frozenset({SECRET}), SECRET.encode(), (1, [SECRET])],
    ids=["pydantic", "dataclass", "set", "frozenset", "bytes", "tuple"],
)
def test_an_output_of_any_type(tmp_path, value):
    config = {"config_list": [{"model": "m", "api_key": SECRET}]}
    results, told = everything(tmp_path, [ParallelTask("t", run=lambda ctx: value)], llm_config=config)
    assert type(results["t"].output) is type(value)
    assert_absent(SECRET, told)
    assert SECRET in repr(value), "what the task has is left as it is"


def test_an_output_without_a_secret_is_the_same_object():
    value = Held("harmless", {"words"})
    results = ParallelAgentRunner(progress=False, llm_config={"config_list": [{"model": "m", "api_key": SECRET}]}).run(
        [ParallelTask("t", run=lambda ctx: value)]
    )
    assert results["t"].output is value


def test_a_secret_that_is_spelt_differently_everywhere(tmp_path, capfd):
    def failing(ctx):
        print(spellings(ODD), repr(ODD))
        raise KeyError(ODD, f"{ODD!r} {quote(ODD, safe='')} {json.dumps({'key': ODD})}")

    with ModelServer(lambda request: json.dumps({"said": ODD})) as server:
        config = server.llm_config(default_headers={"X-Note": "y"}, api_key="x")
        tasks = [
            ParallelTask("a", run=failing, context={"password": ODD}),
            ParallelTask("b", "say it", context={"password": ODD}),
        ]
        _, told = everything(tmp_path, tasks, llm_config=config, cassette=Record(tmp_path / "tape.jsonl"))
    assert_absent(ODD, told + capfd.readouterr().out)


def test_a_secret_that_a_long_text_is_cut_in():
    """Half a key is too much as well."""
    config = {"config_list": [{"model": "m", "api_key": SECRET}]}
    shown = [repr(ParallelTask("t", "x" * length + SECRET, {"llm_config": config})) for length in range(90, 125)]
    lengths = range(19_780, 19_980, 8)

    def long(ctx):
        raise RuntimeError("x" * int(ctx.prompt) + " " + SECRET + " " + "y" * 40_000)

    tasks = [ParallelTask(f"t{length}", str(length), run=long) for length in lengths]
    results = ParallelAgentRunner(4, llm_config=config, progress=False).run(tasks)
    told = shown + [result.error.traceback for result in results.values()]
    assert all("characters left out" in text for text in told[len(shown) :])
    assert not [text for text in told if SECRET[:6] in text or SECRET[-6:] in text]


@once
def noted(thing):
    return object()


class Opaque:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def test_an_argument_that_an_effect_cannot_be_known_by():
    config = {"config_list": [{"model": "m", "api_key": SECRET}]}
    tasks = [
        ParallelTask(f"t{length}", run=lambda ctx, length=length: noted(Opaque("z" * length + " " + SECRET)))
        for length in range(40, 60)
    ]
    results = ParallelAgentRunner(llm_config=config, progress=False).run(tasks)
    assert all("is no plain data" in result.error.message for result in results.values())
    assert SECRET[:6] not in repr([result.error for result in results.values()])


def test_what_ends_a_run_as_a_whole_and_what_is_logged(caplog):
    """Causes and notes are printed by Python itself."""
    config = {"config_list": [{"model": "m", "api_key": SECRET}]}

    class Door:
        def close(self):
            raise OSError(f"cannot close with {SECRET}")

    def source():
        yield ParallelTask("t", run=lambda ctx: ctx.resources["door"] and "done")
        raise RuntimeError("no more") from ValueError(f"refused {SECRET}")

    def watching(event):
        raise ValueError(f"cannot watch with {SECRET}")

    runner = ParallelAgentRunner(llm_config=config, progress=False, resources={"door": Door}, observers=[watching])
    with pytest.raises(RunFailedError, match="no more") as caught:
        list(runner.stream(source()))
    assert_absent(SECRET, "".join(traceback.format_exception(caught.value)) + caplog.text)
    assert "cannot close with ***" in caplog.text
    assert "cannot watch with ***" in caplog.text


def test_a_harmless_cause_is_shown():
    def source():
        yield ParallelTask("t", run=lambda ctx: "done")
        raise RuntimeError("no more") from ValueError("at the end of the list")

    with pytest.raises(RunFailedError) as caught:
        list(ParallelAgentRunner(progress=False).stream(source()))
    assert "at the end of the list" in "".join(traceback.format_exception(caught.value))


class Unsendable:
    def __reduce__(self):
        raise TypeError(f"cannot send {SECRET}")


def gives_unsendable(ctx):
    return Unsendable()


def says_the_others_key(ctx):
    raise ValueError(f"it is {SECRET}")


def test_worker_processes(tmp_path):
    """What cannot be sent, and the key of another task."""
    config = {"llm_config": {"config_list": [{"model": "m", "api_key": SECRET, "base_url": "http://127.0.0.1:1"}]}}
    tasks = [
        ParallelTask("has it", "x", config),
        ParallelTask("unsendable", run=gives_unsendable),
        ParallelTask("other", run=says_the_others_key),
    ]
    results, told = everything(tmp_path, tasks, backend="process")
    assert "cannot send ***" in results["unsendable"].error.message
    assert results["other"].error.message == "it is ***"
    assert_absent(SECRET, told)
    bad = [*tasks, ParallelTask("bad", run=gives_unsendable, metadata=Unsendable())]
    with pytest.raises(Exception, match=r"cannot send \*\*\*") as caught:
        ParallelAgentRunner(backend="process", progress=False).run(bad)
    assert_absent(SECRET, "".join(traceback.format_exception(caught.value)))


def test_a_stream_that_says_it_in_pieces(tmp_path):
    """What is kept to be played again is looked at as a whole."""
    secret = "Zebra9 Quilt Marble"
    with ModelServer(f"the key {secret} is known") as server:
        config = server.llm_config(api_key=secret, stream=True)
        journal = Journal(tmp_path / "runs.db", calls=True)
        runner = ParallelAgentRunner(
            llm_config=config,
            progress=False,
            console="quiet",
            journal=journal,
            cassette=Record(tmp_path / "tape.jsonl"),
        )
        results = runner.run([ParallelTask("t", "x")])
        assert server.ledger.count == 1
    assert results["t"].output == "the key *** is known"
    for word in secret.split():
        assert word not in (tmp_path / "tape.jsonl").read_text() + stored(tmp_path / "runs.db", "calls")


def test_results_are_pickled_without_it():
    config = {"config_list": [{"model": "m", "api_key": SECRET}]}
    results = ParallelAgentRunner(llm_config=config, progress=False).run([ParallelTask("t", run=lambda ctx: {SECRET})])
    assert SECRET.encode() not in pickle.dumps(results)


def test_the_answer_to_a_question_for_a_password(tmp_path):
    import autogen

    def login() -> str:
        """Log in."""
        from autogen.io import IOStream

        return f"logged in with {IOStream.get_default().input('password: ', password=True)}"

    def reply(request):
        said = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
        return said[-1] if said else Reply(tool_calls=[ToolCall("login")])

    with ModelServer(reply) as server:
        agent = autogen.ConversableAgent("a", llm_config=server.llm_config(), human_input_mode="NEVER")
        agent.register_for_llm(description="log in")(login)
        task = ParallelTask("t", "go", agent=agent, max_turns=3)
        results, told = everything(tmp_path, [task], human_input=lambda request: SECRET)
    assert results["t"].output == "logged in with ***"
    assert_absent(SECRET, told)


def says_the_environments_key(ctx):
    import os

    return f"it is {os.environ['MISTRAL_API_KEY']}"


@pytest.mark.parametrize("backend", ["local", "process"])
def test_keys_that_only_an_sdk_looks_for_in_the_environment(tmp_path, backend):
    with environment(MISTRAL_API_KEY=SECRET):
        tasks = [ParallelTask("t", run=says_the_environments_key)]
        results, told = everything(tmp_path, tasks, backend=backend)
    assert results["t"].output == "it is ***"
    assert_absent(SECRET, told)
