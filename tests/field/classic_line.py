"""Small AG2 Classic agents. `ag2_line` has the same names."""

import time

import httpx
from agents import Routed
from autogen import AssistantAgent, ConversableAgent, GroupChat
from autogen.agentchat.group.patterns import RoundRobinPattern

NAME = "classic"


def config(server, **entry):
    """A model configuration for a server."""
    if isinstance(server, Routed):
        return server.ctx.llm_config(config(server.server, **entry))
    return server.llm_config(**entry)


def agent_config(server, *, entry=None, **options):
    """An agent as a task's `agent_config` describes it."""
    return {"llm_config": config(server, **(entry or {})), **options}


def assistant(server, name="a", *, entry=None, system=None, **options):
    """An agent that answers; made anew by each call."""
    if system is not None:
        options["system_message"] = system
    return AssistantAgent(name, llm_config=config(server, **(entry or {})), **options)


def ok(server):
    """A factory of an agent that answers the prompt."""
    return lambda ctx: assistant(Routed(ctx, server))


def replying(reply):
    """A factory of an agent without a model, whose answer is what `reply()` returns."""

    def make():
        agent = ConversableAgent("a", llm_config=False, human_input_mode="NEVER")
        agent.register_reply([ConversableAgent, None], lambda *_args, **_more: (True, reply()))
        return agent

    return make


def sleepy(seconds):
    """A factory of an agent whose own code blocks."""

    def reply():
        time.sleep(seconds)
        return "slept"

    return replying(reply)


def raises(error):
    """A factory of an agent whose own code raises."""

    def reply():
        raise error

    return replying(reply)


def with_tools(server, *tools, **options):
    """An agent that calls all its tools when its prompt is `call`."""
    agent = assistant(server, **options)
    for tool in tools:
        agent.register_for_llm(description=tool.__name__)(tool)
    return agent


def agent_calling(server, *tools):
    """A factory of `with_tools`."""
    return lambda ctx: with_tools(Routed(ctx, server), *tools)


def talkers(server, count=2, **options):
    """Agents that answer each other for ever: a list, which is a team."""
    return [
        ConversableAgent(
            f"w{number}",
            llm_config=config(server),
            human_input_mode="NEVER",
            max_consecutive_auto_reply=10**6,
            **options,
        )
        for number in range(count)
    ]


team = talkers
"""A team whose members answer each other for ever."""

ENDLESS = {
    "pair": lambda server: tuple(talkers(server)),
    "list": talkers,
    "group chat": lambda server: GroupChat(
        talkers(server), [], max_round=10**6, speaker_selection_method="round_robin"
    ),
    "pattern": lambda server: RoundRobinPattern((made := talkers(server))[0], made),
}
"""Forms of such teams."""


def sharing_a_client(server):
    """Three agents that speak through one client object, as a team."""
    made = talkers(server, 3)
    for agent in made[1:]:
        agent.client = made[0].client
    return made


def own_client(connections, pool):
    """An HTTP client of the user's, for a `with` block: so many connections, so many seconds to wait for one."""
    return httpx.Client(limits=httpx.Limits(max_connections=connections), timeout=httpx.Timeout(5, pool=pool))


def was_told_of_error(text):
    """Whether a tool's result tells the agent of an error."""
    return text.startswith("Error: ")
