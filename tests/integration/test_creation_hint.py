"""S15: a factory that makes connections of its own is told of the cheaper way, once a run."""

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
