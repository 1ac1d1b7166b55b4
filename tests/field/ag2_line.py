"""Small agents of AG2 1.x. `classic_line` has the same names."""

import asyncio
import contextlib
import itertools
import time

import httpx2
from ag2 import Agent, Middleware
from ag2.config import OpenAIConfig
from ag2.events import ModelMessage, ModelResponse
from ag2.middleware import BaseMiddleware
from ag2.network import AgentTarget, FromSpeaker, Transition, TransitionGraph
from agents import Routed

from ag2_parallel.teams import WorkflowTeam

NAME = "ag2"


def config(server, **entry):
    """A model configuration for a server."""
    if isinstance(server, Routed):
        return server.ctx.llm_config(config(server.server, **entry))
    return OpenAIConfig(**{"model": "scripted", "api_key": "none", "base_url": server.base_url, **entry})


def agent_config(server, *, entry=None, **options):
    """An agent as a task's `agent_config` describes it."""
    return {"type": "ag2.Agent", "config": config(server, **(entry or {})), **options}


def assistant(server, name="a", *, entry=None, system=None, **options):
    """An agent that answers; made anew by each call."""
    return Agent(name, system or (), config=config(server, **(entry or {})), **options)


def ok(server):
    """A factory of an agent that answers the prompt."""
    return lambda ctx: assistant(Routed(ctx, server))


def replying(reply):
    """A factory of an agent without a model, whose answer is what `reply()` returns."""

    class Reply(BaseMiddleware):
        async def on_turn(self, call_next, event, context):
            return ModelResponse(ModelMessage(reply()))

    return lambda: Agent("a", config=OpenAIConfig("none", api_key="none"), middleware=[Middleware(Reply)])


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
    return assistant(server, tools=tools, **options)


def agent_calling(server, *tools):
    """A factory of `with_tools`."""
    return lambda ctx: with_tools(Routed(ctx, server), *tools)


def talkers(server, count=2, **options):
    """Agents of one team."""
    return [assistant(server, f"w{number}", **options) for number in range(count)]


def team(server, count=2, **options):
    """A team whose members answer each other for ever."""
    return WorkflowTeam(talkers(server, count, **options), in_a_circle)


def in_a_circle(user, members):
    """The graph of a team whose members speak in turn, without end."""
    ids = [user, *members, members[0]]
    turns = [Transition(FromSpeaker(one), AgentTarget(other)) for one, other in itertools.pairwise(ids)]
    return TransitionGraph(initial_speaker=user, transitions=turns)


def to_and_fro(user, members):
    """The graph of a team of two, told in other words."""
    first, second = members
    back = Transition(FromSpeaker(first), AgentTarget(second))
    return TransitionGraph(initial_speaker=user, transitions=[back], default_target=AgentTarget(first))


ENDLESS = {"in a circle": team, "to and fro": lambda server: WorkflowTeam(talkers(server), to_and_fro)}
"""Forms of such teams."""


def sharing_a_client(server):
    """Three agents that speak through one configuration, as a team."""
    made = talkers(server, 3)
    for agent in made[1:]:
        agent.config = made[0].config
    return WorkflowTeam(made, in_a_circle)


@contextlib.contextmanager
def own_client(connections, pool):
    """An HTTP client of the user's, for a `with` block: so many connections, so many seconds to wait for one."""
    limits, timeout = httpx2.Limits(max_connections=connections), httpx2.Timeout(5, pool=pool)
    client = httpx2.AsyncClient(limits=limits, timeout=timeout)
    yield client
    asyncio.run(client.aclose())


def was_told_of_error(text):
    """Whether a tool's result tells the agent of an error."""
    return text.startswith("Traceback ")
