"""F33: a key leaves nowhere: not on a console, in a log, a result, an event or an error, in any of its forms."""

import base64
import json
import logging
import pickle

import pytest
from agents import finished, runner, script, served

from ag2_parallel import ConfigurationError, ParallelTask
from ag2_parallel.testing import ModelServer, RecordingObserver

pytestmark = pytest.mark.usefixtures("no_threads_left")

KEYS = ["sk-test-0123456789abcdef", "Zebra9QuiltMarble", "AbC+/dEf012345=="]
"""One shaped like a key, one that only its place tells, and one that needs care in a pattern."""


def forms(key):
    encoded = base64.b64encode(key.encode()).decode()
    return [key, encoded, encoded.rstrip("="), f"Bearer {key}", base64.b64encode(f":{key}".encode()).decode()]


def assert_absent(key, blob):
    for form in forms(key):
        at = blob.find(form)
        assert at < 0, f"...{blob[max(0, at - 200) : at + 100]}..."


PROGRAM = """
import json, logging, os, pickle
from functools import partial
logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s %(args)s")
logging.getLogger().setLevel(logging.DEBUG)
url, how = sys.argv[1:3]
KEY = os.environ["OPENAI_API_KEY"] if how == "environment" else sys.stdin.readline().strip()
own = {} if how == "environment" else {"api_key": KEY}
model = line.model(url, **own)

def make(): return agent_of(model)
def routed(ctx): return agent_of(ctx.llm_config(model))
def breaking():
    held = []
    def tool() -> str:
        key, holder = KEY, held
        raise RuntimeError(f"cannot reach it with Bearer {KEY} and {model}")
    held.append(agent_of(model, tools=[tool]))
    return held[0]
def broken_factory():
    agent = make()
    raise RuntimeError(f"no agent: {model} {line.model_of(agent)}")
def sayer(ctx):
    agent = routed(ctx)
    ctx.report(f"built with {KEY}")
    return agent

events = []
tasks = []
for name, form in (("config", {"agent_config": line.described(model)}), ("live", {"agent": make()}),
                   ("factory", {"agent": make}), ("routed", {"agent": routed}), ("team", {"agent": line.two_of(model)})):
    tasks += [ParallelTask(f"{name} {kind}", kind, max_turns=2, **form) for kind in ("hang", "refused", "repeat", "fine")]
tasks += [ParallelTask("tool", "call", agent=breaking), ParallelTask("bad factory", "x", agent=broken_factory),
          ParallelTask("sayer", "fine", agent=sayer), ParallelTask("said", f"my key is {KEY}", agent=make)]
runner = ParallelAgentRunner(timeout=1.5, max_workers=12, llm_config=model, observers=[events.append], console=sys.argv[3], retry=2)
print("runner", repr(runner))
results = runner.run(tasks)
print("statuses", sorted(set(statuses(results))))
print("results", repr(results), [repr(r) for r in results.values()], results._repr_html_(), results.errors)
for r in results.values():
    print("error", r.error, r.error and r.error.traceback, r.output, r.console, r.chat_history, [a.to_dict() for a in r.attempt_log])
print("tasks", [repr(task) for task in tasks if task.name != "said"])  # its prompt has the key, and was given by its user
print("pickle", pickle.dumps(results).decode("latin1"))
results.to_json("r.json")
print("json", open("r.json").read(), results.to_dict())
print("events", [repr(e) for e in events], [json.dumps(e.to_dict()) for e in events])
for bad in line.misconfigured(model, KEY):
    try: runner.run([ParallelTask("bad", "x", bad)])
    except ConfigurationError as error: print("refused", error, repr(error))
try: ParallelAgentRunner(llm_config=model, nonsense=KEY)
except ConfigurationError as error: print("refused", error)
print("whole", flush=True)
"""


def telling(key):
    """A model server that says what it was sent."""
    from agents import by_prompt

    from ag2_parallel.testing import Fault

    def reply(request):
        if request.last_text == "refused":
            return Fault.status(401, message=f"Incorrect API key provided: {key}. Authorization: Bearer {key}")
        if request.last_text == "repeat":
            return f"the key is {key}, in base64 {forms(key)[1]}, sent as Bearer {key}"
        return by_prompt(request)

    return reply


@pytest.mark.parametrize(
    ("key", "how", "console"),
    [(KEYS[0], "environment", "prefix"), (KEYS[1], "configuration", "grouped"), (KEYS[2], "configuration", "quiet")],
)
def test_a_key_is_nowhere_in_what_a_program_shows_and_keeps(line, key, how, console, tmp_path):
    import subprocess

    env = {"OPENAI_API_KEY": key} if how == "environment" else {}
    with served(telling(key)) as server:
        process = script(tmp_path, PROGRAM, server.base_url, how, console, line=line, stdin=subprocess.PIPE, **env)
        process.stdin.write(f"{key}\n")
        out, err = finished(process)
        assert server.ledger.count > 20
    assert out.endswith("whole\n")
    assert "statuses ['failed', 'succeeded', 'timed_out']" in out
    assert out.count("refused ") >= 5
    assert "***" in out
    assert "openai._base_client" in err, "the logs of all loggers at DEBUG are not there"
    assert_absent(key, out + err + (tmp_path / "r.json").read_text())


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_only_an_agent_holds_is_learnt_before_anything_is_said_of_it(line, key, caplog, capfd):
    """The key is in a live agent, or made in a factory, and nowhere in the runner's options."""

    def leak() -> str:
        raise RuntimeError(f"with {key}")

    seen = RecordingObserver()
    with ModelServer(telling(key)) as server, caplog.at_level(logging.DEBUG):
        keyed = line.model(server.base_url, api_key=key)
        tasks = [
            ParallelTask("live", "repeat", agent=line.agent_of(keyed)),
            ParallelTask("factory", "repeat", agent=lambda: line.agent_of(keyed)),
            ParallelTask("live tool", "call", agent=line.agent_of(keyed, tools=[leak])),
            ParallelTask("factory tool", "call", agent=lambda: line.agent_of(keyed, tools=[leak])),
            ParallelTask("refused", "refused", agent=lambda: line.agent_of(keyed)),
        ]
        for console in ("quiet", "prefix", "grouped"):
            results = runner(observers=[seen], console=console, timeout=20).run(tasks)
            streamed = list(runner(console=console).stream(tasks))
            said = capfd.readouterr()
            blob = [said.out, said.err, caplog.text, repr(results), repr(results.to_dict()), repr(tasks)]
            blob += [pickle.dumps(results).decode("latin1"), pickle.dumps(streamed).decode("latin1")]
            blob += [json.dumps(event.to_dict()) for event in seen.events]
            assert_absent(key, "\n".join(blob))


@pytest.mark.parametrize("key", KEYS)
def test_errors_before_the_start_do_not_show_a_key(line, key):
    with served() as server:
        for bad in line.misconfigured(line.model(server.base_url, api_key=key), key):
            task = ParallelTask("bad", "x", bad)
            with pytest.raises(ConfigurationError) as caught:
                runner().run([task])
            assert_absent(key, str(caught.value) + repr(caught.value) + repr(task))
