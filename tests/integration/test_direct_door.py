"""Which calls of which agents take the direct door, and what it leaves alone."""

import httpx
import pytest
from autogen import ConversableAgent, GroupChat, LLMConfig
from classic_scope import run, task

from ag2_parallel import ParallelAgentRunner, ParallelTask
from ag2_parallel.frameworks.request_keys import configuration, plain
from ag2_parallel.testing import ModelServer


def agent(server, name="agent", **entry):
    config = LLMConfig(server.llm_config(**entry)["config_list"][0])
    return ConversableAgent(name, llm_config=config, human_input_mode="NEVER")


@pytest.mark.parametrize("fresh", [True, False])
def test_agents_use_it_whether_they_are_fresh_or_copied(tmp_path, fresh):
    with ModelServer("fine") as server:
        made = agent(server)
        ran = run(task(max_turns=1), (lambda _: made) if fresh else made, fresh=fresh, tmp_path=tmp_path)
        assert ran.answer.output == "fine"
        assert ran.scope.gate.direct == ["scripted"]
        assert server.ledger.count == 1


@pytest.mark.parametrize("fresh", [True, False])
def test_it_is_turned_off_in_an_entry_and_nobody_hears_of_that(tmp_path, fresh):
    with ModelServer("fine") as server:
        made = agent(server, direct=False)
        ran = run(task(max_turns=1), (lambda _: made) if fresh else made, fresh=fresh, tmp_path=tmp_path)
        assert ran.scope.gate.direct == []
        assert ran.scope.gate.requests == 1
        assert "direct" not in server.ledger.requests[0].body
        if not fresh:
            assert made.llm_config.config_list[0].direct is False, "the template is the user's own"


def test_a_configuration_routed_for_a_factory_stays_turned_off():
    with ModelServer("fine") as server:
        routed = []

        def factory(ctx):
            routed.append(ctx.llm_config(server.llm_config(direct=False)))
            return ConversableAgent("agent", llm_config=routed[0], human_input_mode="NEVER")

        result = ParallelAgentRunner(progress=False).run([ParallelTask("t", "hi", agent=factory, max_turns=1)])["t"]
        assert result.output == "fine"
        assert not hasattr(routed[0].config_list[0], "direct")
        assert "direct" not in server.ledger.requests[0].body


def test_the_users_own_client_is_never_passed_by(tmp_path):
    seen = []
    with ModelServer("fine") as server, httpx.Client(event_hooks={"request": [seen.append]}) as own:
        made = agent(server, http_client=_Shared(own))
        ran = run(task(max_turns=1), made, tmp_path=tmp_path)
        assert (ran.answer.output, ran.scope.gate.direct, len(seen)) == ("fine", [], 1)


class _Shared(httpx.Client):
    """AG2 copies configurations deeply."""

    def __init__(self, own):
        super().__init__(event_hooks=own.event_hooks)

    def __deepcopy__(self, memo):
        return self


def test_agents_that_ag2_makes_use_the_other_door(tmp_path):
    def reply(request):
        return "second" if "Read the above conversation" in str(request.messages) else f"from {request.system_text}"

    with ModelServer(reply) as server:
        agents = [agent(server, name) for name in ("first", "second")]
        for each in agents:
            each.update_system_message(each.name)
        chat = GroupChat(agents, [], max_round=3, select_speaker_auto_llm_config=server.llm_config())
        ran = run(task(max_turns=3), chat, tmp_path=tmp_path)
        assert len(ran.scope.gate.direct) == sum("from" in text for text in ran.texts)
        assert ran.scope.gate.requests == server.ledger.count > len(ran.scope.gate.direct)


def test_a_reply_function_has_the_trigger_of_its_agents_class(tmp_path):
    asked = []

    class Own(ConversableAgent):
        def _match_trigger(self, trigger, sender):
            asked.append(trigger)
            return super()._match_trigger(trigger, sender)

    with ModelServer("fine") as server:
        made = Own("own", llm_config=server.llm_config(), human_input_mode="NEVER")
        assert run(task(max_turns=1), lambda _: made, fresh=True, tmp_path=tmp_path).answer.output == "fine"
        assert asked


@pytest.mark.parametrize(("trigger", "answers"), [("user", True), ("somebody", False), (lambda sender: False, False)])
def test_triggers_of_every_kind_still_decide(tmp_path, trigger, answers):
    with ModelServer("from the model") as server:
        made = agent(server)
        made.register_reply(trigger, lambda *_args, **_options: (True, "from the function"))
        ran = run(task(max_turns=1), lambda _: made, fresh=True, tmp_path=tmp_path)
        assert ran.answer.output == ("from the function" if answers else "from the model")


def test_only_plain_values_are_a_configuration():
    assert plain({"a": None, "b": 1}) == plain({"a": None, "b": 1}) != plain({"a": None, "b": True})
    assert plain({"a": object()}) is None
    assert plain(len) is None
    assert configuration(httpx) is None
