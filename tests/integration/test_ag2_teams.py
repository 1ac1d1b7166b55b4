"""Teams of AG2 1.x on a hub."""

import logging

import pytest
from agents import Routed, run, served

from ag2_parallel import ConfigurationError, ParallelTask
from ag2_parallel.teams import WorkflowTeam, run_workflow
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall

pytestmark = [pytest.mark.usefixtures("no_threads_left"), pytest.mark.usefixtures("ag2")]


class TestTeams:
    def test_members_speak_in_order_and_the_transcript_is_the_teams(self, ag2):
        with served() as server:
            team = WorkflowTeam(ag2.talkers(server, 3))
            results = run([ParallelTask(f"t{i}", f"<{i}>", agent=team) for i in range(4)], max_workers=4)
            for i, result in enumerate(results.values()):
                assert result.stop_reason == "answered"
                assert [message["name"] for message in result.chat_history] == ["user", "w0", "w1", "w2"]
                assert result.output == result.chat_history[-1]["content"]
                assert f"<{i}>" in result.output
                assert result.usage.calls == 3

    def test_context_variables_are_the_channels(self, ag2):
        from ag2.network import ChannelInject
        from ag2.network.workflow_helpers import set_context

        async def classify(channel: ChannelInject) -> str:
            await set_context(channel, "category", "billing")
            return "classified"

        def reply(request):
            told = any(message["role"] == "tool" for message in request.messages)
            return Reply(tool_calls=[ToolCall("classify")]) if request.tools and not told else "done"

        with ModelServer(reply) as server:
            team = WorkflowTeam([ag2.with_tools(server, classify, name="w0"), ag2.assistant(server, "w1")])
            result = run([ParallelTask("t", "x", agent=team, context={"patient": "Ada"})])["t"]
        assert result.ok, result.error
        assert result.context == {"patient": "Ada", "category": "billing"}

    @pytest.mark.parametrize(
        ("reply", "kind"),
        [(Fault.status(500), "provider"), ("", "invalid_answer"), (Fault.status(401), "authentication")],
    )
    def test_a_member_that_fails_fails_the_team_at_once(self, ag2, reply, kind, caplog):
        with ModelServer(["first", reply]) as server:
            result = run([ParallelTask("t", "x", agent=WorkflowTeam(ag2.talkers(server)))], model_retry=1, timeout=20)[
                "t"
            ]
        assert (result.status, result.error.kind) == ("failed", kind)
        assert [message["content"] for message in result.chat_history] == ["x", "first"]
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]

    def test_a_stop_closes_the_hub(self, ag2):
        with ModelServer(["first", Fault.hang()]) as server:
            result = run([ParallelTask("t", "x", agent=WorkflowTeam(ag2.talkers(server)))], timeout=1.5)["t"]
            assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
        assert (result.status, result.ended) == ("timed_out", "cut")
        assert result.last_speaker == "w0"

    def test_in_code_of_ones_own(self, ag2):
        async def discuss(ctx):
            said = []
            team = WorkflowTeam(ag2.talkers(Routed(ctx, server)), ag2.in_a_circle)
            outcome = await run_workflow(team, ctx.prompt, max_turns=5, on_message=said.append)
            assert said == outcome.messages
            return outcome.close_reason

        with served() as server:
            result = run([ParallelTask("t", "x", run=discuss)])["t"]
        assert (result.output, result.usage.calls) == ("max_turns", 4)

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda ag2, server: WorkflowTeam([]), "needs a list of ag2.Agent"),
            (lambda ag2, server: WorkflowTeam([ag2.assistant(server), ag2.assistant(server)]), "doubled: a"),
            (lambda ag2, server: WorkflowTeam([ag2.assistant(server, "user")]), "WorkflowTeam.user"),
            (lambda ag2, server: WorkflowTeam([ag2.assistant(server)], graph={"initial": "a"}), "is a function"),
        ],
    )
    def test_what_is_no_team_is_refused(self, ag2, make, words):
        with served() as server, pytest.raises(ConfigurationError, match=words):
            run([ParallelTask("t", "x", agent=make(ag2, server))])
