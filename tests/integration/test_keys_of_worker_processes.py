"""Keys that only a worker process sees, in a factory or in its environment, are masked in the caller's process too."""

import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import ModelServer

KEY = "plaincorporatevalue"


def classic_factory(base_url):
    def made(ctx):
        from autogen import AssistantAgent

        entry = {"model": "scripted", "base_url": base_url, "api_key": "plaincorporatevalue"}
        return AssistantAgent("a", llm_config=ctx.llm_config({"config_list": [entry]}))

    return {"agent": made}


def ag2_factory(base_url):
    def made():
        from ag2 import Agent
        from ag2.config import OpenAIConfig

        return Agent("a", config=OpenAIConfig(model="scripted", base_url=base_url, api_key="plaincorporatevalue"))

    return {"agent": made}


def from_environment(base_url):
    return {"agent_config": {"llm_config": {"config_list": [{"model": "scripted", "base_url": base_url}]}}}


@pytest.mark.parametrize("fields", [classic_factory, ag2_factory, from_environment])
def test_a_key_that_only_a_worker_process_sees_is_masked(tmp_path, monkeypatch, fields):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    events = []
    runner = ParallelAgentRunner(
        1, backend="process", journal=tmp_path / "runs.db", progress=False, observers=[events.append]
    )
    with ModelServer(f"they say {KEY}") as server:
        results = runner.run([ParallelTask("t", "x", **fields(server.base_url))])
    assert results["t"].output == "they say ***"
    results.timeline(tmp_path / "page.html")
    results.to_json(tmp_path / "results.json")
    assert KEY not in repr(events)
    assert [path.name for path in tmp_path.iterdir() if KEY.encode() in path.read_bytes()] == []
