"""Small agents of AG2 1.x. `classic_line` has the same names."""

import asyncio
import contextlib
import copy
import itertools
import time
from typing import Annotated

import httpx2
from ag2 import Agent, Context, Inject, Middleware, Variable
from ag2.config import OpenAIConfig
from ag2.events import ModelMessage, ModelRequest, ModelResponse
from ag2.middleware import BaseMiddleware
from ag2.network import AgentTarget, FromSpeaker, Transition, TransitionGraph
from agents import Routed

from ag2_parallel.teams import WorkflowTeam

NAME = "ag2"


snapshot = copy.copy
"""A configuration as it is now."""


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


def short_team(server):
    """A team that ends with `LAST_WORD`."""
    return WorkflowTeam(talkers(server))


LAST_WORD = "whole"


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


def asks_by_itself(server):
    """A `run` function that asks an agent itself."""

    async def work(ctx):
        return (await assistant(Routed(ctx, server)).ask(ctx.prompt)).body

    return work


def with_variables(server):
    """A factory of an agent whose tool reads, changes and adds variables."""

    def visit(context: Context, patient: Annotated[dict, Variable()], seen: Annotated[list, Inject()]) -> str:
        context.variables["visited"] = "yes"
        seen.append("here")
        return patient["name"]

    return agent_calling(server, visit)


def was_told_of_error(text):
    """Whether a tool's result tells the agent of an error."""
    return text.startswith("Traceback ")


def with_human(server, mode, form="pair"):
    """A factory of agents one of whom, "person", asks a person and repeats the answer."""

    class Asks(BaseMiddleware):
        async def on_turn(self, call_next, event, context):
            return ModelResponse(ModelMessage(await context.input("What now?")))

    def make():
        person = assistant(server, "person", middleware=[Middleware(Asks)])
        others = {"alone": [], "pair": [assistant(server)], "group": [assistant(server), assistant(server, "b")]}
        return WorkflowTeam([person, *others[form]]) if others[form] else person

    return make


AFTER_A_PERSON = "answered"
"""The stop reason of such a task whose person answers."""


def model(url, **own):
    """A model configuration for an address, with a key or without."""
    return OpenAIConfig("m", base_url=url, **own)


def agent_of(made, name="a", tools=()):
    """An agent of a model configuration."""
    return Agent(name, config=made, tools=tools)


def model_of(agent):
    """The model configuration of an agent."""
    return agent.config


def described(made):
    """An agent of a model configuration as a task's `agent_config`."""
    return {"type": "ag2.Agent", "config": made}


def two_of(made):
    """A team of two."""
    return WorkflowTeam([agent_of(made), agent_of(made, "b")])


def misconfigured(made, key):
    """Descriptions that are refused; the key stands in each."""
    return [
        described({"model": "m", "api_key": key, "nonsense": 1}),
        described({"model": "m", "api_key": key, "provider": "nobody"}),
        {**described(made), "nonsense": made},
        {"type": "ag2.Agent", "config": made, "tools": "nowhere:tool"},
    ]


TOOLS = "tools"
"""The key of an `agent_config` that has tools."""


def form(name, server, worker=None):
    """A worker alone, behind a tool of a boss, or with a second one."""
    worker = worker or assistant(server, "worker")
    if name == "alone":
        return worker
    if name == "group":
        return WorkflowTeam([worker, assistant(server, "second")])
    return assistant(server, "boss", tools=[worker.as_tool(description="work")])


def state_of(agents):
    """What of agents a run must not change."""
    listed = agents.agents if isinstance(agents, WorkflowTeam) else [agents]
    return [
        (agent.config, list(agent.tools), agent.system_prompt, dict(agent.variables), agent.has_hitl_hook)
        for agent in listed
    ]


def with_system_of_each_prompt(server):
    """An agent whose hook makes its system message of the prompt."""
    agent = assistant(server)

    @agent.prompt
    def system(event: ModelRequest) -> str:
        return f"system of {event.parts[0].content}"

    return agent


def set_variable(agent, name, value):
    """Give an agent a context variable."""
    agent._agent_variables[name] = value
