"""What is allowed and seldom meant is hinted at. S15: a factory that makes connections of its own is told of the cheaper way, once a run."""

import pytest
from ag2.config import OpenAIConfig
from autogen import ConversableAgent

from ag2_parallel import ParallelAgentRunner, ParallelTask, Template
from ag2_parallel.events import RunHint
from ag2_parallel.testing import ModelServer, RecordingObserver

pytestmark = pytest.mark.usefixtures("no_threads_left")


def hints(build):
    seen = RecordingObserver()
    tasks = [ParallelTask(f"t{i}", "hello", agent=build) for i in range(3)]
    ParallelAgentRunner(progress=False, observers=[seen]).run(tasks).raise_for_failures()
    return [event.message for event in seen.of(RunHint)]


def test_an_empty_prompt_and_an_endless_pair_are_hinted_at():
    with ModelServer() as server:
        seen = RecordingObserver()

        def pair(ctx):
            routed = ctx.llm_config(server.llm_config())
            return tuple(ConversableAgent(n, llm_config=routed, human_input_mode="NEVER") for n in ("a", "b"))

        tasks = [
            ParallelTask("quiet", agent_config={"llm_config": server.llm_config()}),
            ParallelTask("pair", "hello", agent=pair, timeout=1),
        ]
        ParallelAgentRunner(progress=False, observers=[seen]).run(tasks)
    hints = " ".join(event.message for event in seen.of(RunHint))
    assert 'task "quiet" has no prompt, so its agent gets an empty message' in hints
    assert 'ParallelTask("quiet", "Summarise the case.")' in hints
    assert "no max_turns" in hints


def test_once_for_own_connections_and_never_for_routed_ones():
    with ModelServer() as server:
        (hint,) = hints(lambda: ConversableAgent("a", llm_config=server.llm_config(), human_input_mode="NEVER"))
        assert "ctx.llm_config" in hint
        assert (
            hints(
                lambda ctx: ConversableAgent(
                    "a", llm_config=ctx.llm_config(server.llm_config()), human_input_mode="NEVER"
                )
            )
            == []
        )


@pytest.mark.parametrize("line", ["classic", "ag2"])
def test_places_in_plain_text_are_hinted_at_once_and_sent_as_they_stand(line):
    with ModelServer("fine") as server:
        classic = {"llm_config": server.llm_config()}
        ag2 = {"type": "ag2.Agent", "config": OpenAIConfig("m", api_key="none", base_url=server.base_url)}
        config = classic if line == "classic" else ag2
        seen = RecordingObserver()
        tasks = [
            ParallelTask("plain", "Sum up: {{ upstream.notes }}", agent_config=config),
            ParallelTask("other", "Sum up: {{ upstream['notes'].output }}", agent_config=config),
            ParallelTask("code", "What does {{ user.name }} mean in Jinja2?", agent_config=config),
            ParallelTask("filled", Template("Task {{ metadata }}"), agent_config=config, metadata=3),
        ]
        ParallelAgentRunner(1, progress=False, observers=[seen]).run(tasks).raise_for_failures()
        asked = [request.text for request in server.ledger.requests]
    (hint,) = [event.message for event in seen.of(RunHint)]
    assert 'task "plain": its prompt is plain text, so its agent reads {{ upstream.notes }} as it stands' in hint
    assert "prompt_template" in hint
    assert any("{{ upstream.notes }}" in text for text in asked)
    assert any("Task 3" in text for text in asked)
