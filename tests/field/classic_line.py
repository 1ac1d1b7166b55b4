"""Small AG2 Classic agents. `ag2_line` has the same names."""

import copy
import time

import httpx
from agents import Routed
from autogen import AssistantAgent, ConversableAgent, GroupChat, UserProxyAgent
from autogen.agentchat.group import ContextVariables, ReplyResult
from autogen.agentchat.group.patterns import DefaultPattern, RoundRobinPattern

NAME = "classic"


snapshot = copy.deepcopy
"""A configuration as it is now."""


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


def short_team(server):
    """A team that ends with `LAST_WORD`."""
    return talkers(server)


LAST_WORD = "TERMINATE"

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


def asks_by_itself(server):
    """A `run` function that asks an agent itself."""

    def work(ctx):
        agent = assistant(Routed(ctx, server))
        return agent.generate_reply([{"role": "user", "content": ctx.prompt}])

    return work


def with_variables(server):
    """A factory of an agent whose tool reads, changes and adds variables."""

    def visit(context_variables: ContextVariables) -> ReplyResult:
        context_variables["visited"] = "yes"
        context_variables["seen"].append("here")
        return ReplyResult(message=context_variables["patient"]["name"], context_variables=context_variables)

    def make(ctx):
        agent = assistant(Routed(ctx, server), functions=[visit])
        return DefaultPattern(initial_agent=agent, agents=[agent])

    return make


def was_told_of_error(text):
    """Whether a tool's result tells the agent of an error."""
    return text.startswith("Error: ")


def with_human(server, mode, form="pair"):
    """A factory of agents one of whom, "person", asks a person."""

    def make():
        person = UserProxyAgent("person", human_input_mode=mode, code_execution_config=False, default_auto_reply="hm")
        if form == "alone":
            return ConversableAgent("person", llm_config=config(server), human_input_mode=mode)
        return (person, assistant(server)) if form == "pair" else [person, assistant(server)]

    return make


AFTER_A_PERSON = "human_exit"
"""The stop reason of such a task whose person says `exit`."""


def model(url, **own):
    """A model configuration for an address, with a key or without."""
    return {"config_list": [{"model": "m", "base_url": url, **own}]}


def agent_of(made, name="a", tools=()):
    """An agent of a model configuration."""
    agent = AssistantAgent(name, llm_config=made)
    for tool in tools:
        agent.register_for_llm(description=tool.__name__)(tool)
    return agent


def model_of(agent):
    """The model configuration of an agent."""
    return agent.llm_config


def described(made):
    """An agent of a model configuration as a task's `agent_config`."""
    return {"llm_config": made}


def two_of(made):
    """A team of two."""
    return agent_of(made), agent_of(made, "b")


def misconfigured(made, key):
    """Descriptions that are refused; the key stands in each."""
    entry = made["config_list"][0]
    return [
        {"llm_config": {**made, "nonsense": key}},
        {"llm_config": {"config_list": [{**entry, "api_key": key, "temperature": "hot"}]}},
        {"llm_config": made, "nonsense": made},
        {"llm_config": made, "name": made},
        {"llm_config": made, "description": made},
    ]


TOOLS = "functions"
"""The key of an `agent_config` that has tools."""


def form(name, server, worker=None):
    """A worker alone, with a user, or with a second one."""
    worker = worker or assistant(server, "worker")
    user = UserProxyAgent("boss", human_input_mode="NEVER", code_execution_config=False, max_consecutive_auto_reply=1)
    return {"alone": worker, "pair": (user, worker), "group": [worker, assistant(server, "second")]}[name]


def state_of(agents):
    """What of agents a run must not change."""
    listed = agents if isinstance(agents, list | tuple) else [agents]
    return [(dict(agent.chat_messages), agent.system_message, agent.client) for agent in listed]


def with_system_of_each_prompt(server):
    """An agent whose hook sets its system message by the prompt."""

    def update(agent, messages):
        agent.update_system_message(f"system of {messages[-1]['content']}")

    agent = ConversableAgent("a", llm_config=config(server), human_input_mode="NEVER")
    agent.register_hook("update_agent_state", update)
    return agent


def set_variable(agent, name, value):
    """Give an agent a context variable."""
    agent.context_variables[name] = value
