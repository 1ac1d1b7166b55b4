"""What is allowed and seldom meant is hinted at. S15: a factory that makes connections of its own is told of the cheaper way, once a run."""

import pytest
from autogen import ConversableAgent

from ag2_parallel import ParallelAgentRunner, ParallelTask
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
