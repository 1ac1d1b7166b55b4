"""F04, F05, F13, F28: what tasks share, and what they must not."""

import contextvars
import json
import threading

import pytest
from agents import by_prompt, run, runner, served, statuses

from ag2_parallel import ConfigurationError, ParallelTask, RunFailedError
from ag2_parallel.testing import ModelServer

pytestmark = pytest.mark.usefixtures("no_threads_left")


def prompts_in(result):
    """The prompts of tasks that a transcript speaks of."""
    text = json.dumps(result.chat_history)
    return {f"<q{number}>" for number in range(8) if f"<q{number}>" in text}


class TestHistory:
    """F04."""

    def tasks(self, agent):
        return [ParallelTask(f"q{i}", f"<q{i}>", agent=agent, max_turns=2) for i in range(8)]

    @pytest.mark.parametrize("form", ["pair", "alone", "group"])
    def test_the_same_live_agents_in_eight_tasks_are_copied_for_each(self, line, form):
        with served(latency=0.05) as server:
            shared = line.form(form, server)
            before = line.state_of(shared)
            for _ in range(2):
                results = run(self.tasks(shared), max_workers=8)
                assert results.ok
                assert [prompts_in(result) for result in results.values()] == [{f"<q{i}>"} for i in range(8)]
            assert server.ledger.peak_in_flight > 1
        assert line.state_of(shared) == before

    @pytest.mark.parametrize("shares", ["pair", "member"])
    def test_agents_that_a_factory_hands_out_twice_are_refused_by_name(self, line, shares):
        with served(latency=0.05) as server:
            worker = line.assistant(server, "worker")
            whole = line.form("pair", server, worker)
            make = {"pair": lambda: whole, "member": lambda: line.form("pair", server, worker)}[shares]
            results = run(self.tasks(make), max_workers=8)
        assert len(results.succeeded) == 1
        assert {result.error.kind for result in results.failed} == {"shared_agent"}
        for result in results.failed:
            assert "fresh one" in result.error.message
            assert '"worker"' in result.error.message or '"boss"' in result.error.message
        assert prompts_in(results.succeeded[0]) == {f"<{results.succeeded[0].name}>"}

    def test_system_messages_and_hooks_of_one_task_reach_no_other(self, line):
        with ModelServer(lambda request: f"{request.system_text} / {request.last_text}", latency=0.05) as server:
            shared = line.with_system_of_each_prompt(server)
            original = line.state_of(shared)
            results = run([ParallelTask(f"q{i}", f"<q{i}>", agent=shared) for i in range(8)], max_workers=8)
            assert [r.output for r in results.values()] == [f"system of <q{i}> / <q{i}>" for i in range(8)]
            assert line.state_of(shared) == original


class TestConfigurations:
    """F05."""

    @staticmethod
    def secret_tool() -> str:
        """Known to some."""
        return "told"

    def tasks(self, line, form, config):
        def build(number):
            return line.agent_of(config, tools=[self.secret_tool] if number % 2 else [])

        for number in range(10):
            if form == "factory":
                yield ParallelTask(f"t{number}", f"prompt {number}", agent=lambda number=number: build(number))
            elif form == "template":
                yield ParallelTask(f"t{number}", f"prompt {number}", agent=build(number))
            else:
                functions = {line.TOOLS: [self.secret_tool]} if number % 2 else {}
                yield ParallelTask(f"t{number}", f"prompt {number}", {**line.described(config), **functions})

    @pytest.mark.parametrize("form", ["factory", "template", "agent_config"])
    def test_tools_stay_with_their_agent_and_the_configuration_as_it_was(self, line, form):
        with served() as server:
            config = line.config(server)
            before, as_text = line.snapshot(config), repr(config)
            for _ in range(2):
                assert run(list(self.tasks(line, form, config)), max_workers=8, timeout=30).ok
            for request in server.ledger.requests:
                tools = [tool["function"]["name"] for tool in request.body.get("tools") or []]
                assert tools == (["secret_tool"] if int(request.text.split()[1]) % 2 else [])
                assert not {"timeout", "seed", "cache_seed", "http_client"} & set(request.body)
            assert config == before
            assert repr(config) == as_text
        assert not [name for name in vars(self.secret_tool) if not name.startswith("__")]

    def test_the_runners_configuration_is_left_alone_too(self, line):
        with served() as server:
            config = line.config(server)
            before = line.snapshot(config)
            assert run([ParallelTask(f"t{i}", "hello") for i in range(4)], llm_config=config).ok
            assert config == before


class TestCopying:
    """F13: the half without other processes."""

    def test_a_live_agent_with_a_client_runs_in_two_tasks(self, line):
        with served() as server:
            agent = line.assistant(server)
            before = line.state_of(agent)
            results = run([ParallelTask("t1", "one", agent=agent), ParallelTask("t2", "two", agent=agent)])
            assert [result.output for result in results.values()] == ["echo: one", "echo: two"]
            assert line.state_of(agent) == before

    @pytest.mark.parametrize("where", ["attribute", "tool", "context"])
    def test_locks_inside_an_agent_are_no_hindrance(self, line, where):
        class Telemetry:
            def __init__(self):
                self.lock = threading.RLock()

            def spans(self) -> str:
                with self.lock:
                    return "spans"

        built = []
        with served() as server:
            telemetry = Telemetry()

            def spans() -> str:
                return telemetry.spans()

            agent = line.with_tools(server, *([spans] if where == "tool" else []))
            if where == "attribute":
                agent.telemetry = Telemetry()
            elif where == "context":
                line.set_variable(agent, "telemetry", Telemetry())

            def first():
                built.append(1)
                return line.assistant(server)

            tasks = [ParallelTask("first", "x", agent=first)]
            tasks += [ParallelTask(f"t{i}", "call" if where == "tool" else "x", agent=agent) for i in range(2)]
            results = run(tasks)
            assert results.ok, results.errors
            assert built == [1]
            if where == "tool":
                assert [results[f"t{i}"].output for i in range(2)] == ["spans", "spans"]

    def test_what_cannot_be_copied_is_named_for_every_task_before_the_first_starts(self, line):
        built = []
        with served() as server:
            agent = line.assistant(server)
            agent.audit_file = open(__file__, encoding="utf-8")  # noqa: SIM115 - open while the agent is
            tasks = [ParallelTask("first", "x", agent=lambda: built.append(1))]
            tasks += [ParallelTask(name, "x", agent=agent) for name in ("t1", "t2")]
            try:
                with pytest.raises(ConfigurationError) as refused:
                    run(tasks)
            finally:
                agent.audit_file.close()
        assert built == []
        for words in ("audit_file", "factory", '"t1"', '"t2"'):
            assert words in str(refused.value)


tenant = contextvars.ContextVar("tenant", default="nobody")
span = contextvars.ContextVar("span", default="none")


class TestContextVariables:
    """F28."""

    def test_each_task_sees_the_callers_values_wherever_its_code_runs(self, line):
        def sync_tool() -> str:
            return f"{tenant.get()} {span.get()}"

        async def async_tool() -> str:
            return f"{tenant.get()} {span.get()}"

        def make(ctx):
            assert span.get() == "root", "another task's value"
            span.set(f"root/{ctx.name}")
            return line.agent_calling(server, sync_tool, async_tool)(ctx)

        def prompt(ctx):
            assert tenant.get() == "acme"
            return "call"

        def work():
            tenant.set("acme")
            span.set("root")
            tasks = [ParallelTask(f"t{i}", prompt, agent=make) for i in range(30)]
            results = run(tasks, max_workers=8)
            assert span.get() == "root", "a task's value got out"
            return results

        with served() as server:
            results = contextvars.copy_context().run(work)
        seen = [f"acme root/t{i}" for i in range(30)]
        assert [result.output for result in results.values()] == [f"{text} & {text}" for text in seen]
        assert tenant.get() == "nobody"

    @pytest.mark.parametrize("how", ["stream", "arun", "kept"])
    def test_in_every_way_of_running(self, line, how):
        import asyncio

        def task():
            return ParallelTask("t", agent=line.replying(tenant.get))

        async def arun():
            tenant.set("acme")
            return (await runner().arun([task()]))["t"].output

        def work():
            if how == "arun":
                return asyncio.run(arun())
            with runner() as kept:
                kept.run([task()])  # values are taken when a run starts, not when the runner does
                tenant.set("acme")
                return kept.run([task()])["t"].output if how == "kept" else next(kept.stream([task()])).output

        assert contextvars.copy_context().run(work) == "acme"


def test_a_shared_agent_stops_others_only_with_fail_fast(line):
    """F04: a refused task stops others only where that was asked for."""
    with served(by_prompt) as server:
        worker = line.assistant(server)
        with pytest.raises(RunFailedError) as caught:
            run(
                [ParallelTask(f"q{i}", f"<q{i}>", agent=lambda: worker) for i in range(4)],
                max_workers=1,
                handle_errors="fail_fast",
            )
        assert statuses(caught.value.results) == ["succeeded", "failed", "skipped", "skipped"]
        assert run([ParallelTask("t", "x", agent=line.ok(server))]).ok
