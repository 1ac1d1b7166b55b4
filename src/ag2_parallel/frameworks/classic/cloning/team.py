"""What AG2 Classic's own objects are made of, and what of them a copy keeps, starts anew or leaves behind."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from autogen import ConversableAgent, GroupChat, LLMConfig, OpenAIWrapper
from autogen.agentchat.contrib.capabilities.agent_capability import AgentCapability
from autogen.agentchat.contrib.capabilities.transform_messages import TransformMessages
from autogen.agentchat.group.context_variables import ContextVariables
from autogen.agentchat.group.patterns.pattern import Pattern
from autogen.llm_config.entry import ApplicationConfig
from autogen.tools import Tool

from ag2_parallel.frameworks.cloning.anatomy import CONTAINERS, attribute, instance, take_apart
from ag2_parallel.frameworks.cloning.leaves import is_leaf
from ag2_parallel.frameworks.cloning.node import Anatomy, Body, Fresh, Kind, Level, Part, Place, TeamRules

if TYPE_CHECKING:
    from collections.abc import Callable

TEAM_TYPES = (
    ConversableAgent,
    GroupChat,
    Pattern,
    ContextVariables,
    AgentCapability,
    TransformMessages,
)
"""Objects that belong to the team wherever they are found, be it in a tool's closure."""

_FRESH: dict[str, Callable[[], Any]] = {
    "_oai_messages": partial(defaultdict, list),
    "_consecutive_auto_reply_counter": partial(defaultdict, int),
    "reply_at_receive": partial(defaultdict, bool),
    "_human_input": list,
}
_EMPTIED = frozenset(
    {"run_executor", "client_cache", "_last_speaker", "_group_next_target", "_tool_call_originator"},
)
_DROPPED = frozenset({"previous_cache", "_finished_chats", "_next_target_force"})
_HELD = frozenset({"hook_lists", "_function_map", "_tools", "_ui_tools", "llm_config", "client"})
_SHARED = frozenset({"_is_termination_msg", "_get_display_name"})
_GROUP_CHAT_LEVELS = {
    "speaker_selection_method": Level.SHARED,
    "select_speaker_auto_model_client_cls": Level.SHARED,
    "select_speaker_auto_llm_config": Level.HELD,
}
_PATTERN_LEVELS = {"group_manager_args": Level.HELD, "summary_method": Level.SHARED}

_STATELESS_CLIENTS = frozenset(
    {
        "OpenAIClient",
        "OpenAICompletionsClient",
        "GroqClient",
        "MistralAIClient",
        "TogetherClient",
        "CerebrasClient",
        "PlaceHolderClient",
    }
)
_CLIENT_STATE: dict[str, dict[str, Any]] = {
    "OpenAIResponsesClient": {"previous_response_id": None, "image_costs": 0},
    "OpenAIResponsesV2Client": {
        "_previous_response_id": None,
        "_image_costs": 0.0,
        "_token_costs": 0.0,
        "_total_prompt_tokens": 0,
        "_total_completion_tokens": 0,
        "_shell_executor": None,
    },
    "GeminiClient": {"tool_call_function_map": {}, "tool_call_thought_signatures": {}},
    "AnthropicClient": {"_last_tooluse_status": {}},
}
_REFUSED = {
    "DockerCommandLineCodeExecutor": "runs code in one container, which copies would share",
    "JupyterCodeExecutor": "runs code in one kernel, which copies would share",
    "EmbeddedIPythonCodeExecutor": "runs code in one kernel, which copies would share",
    "DaytonaCodeExecutor": "runs code in one sandbox, which copies would share",
    "RemyxCodeExecutor": "runs code in one container, which copies would share",
    "YepCodeCodeExecutor": "runs code through one connection, which copies would share",
    "Teachability": "keeps what it learns in one database, which copies would share",
    "MemoStore": "keeps what it learns in one database, which copies would share",
}


def dissect(obj: Any, level: Level) -> Anatomy:
    """Take any object apart, AG2's own by their meaning and others by their type."""
    cls: type[object] = type(obj)
    rule = _rule(cls)  # type: ignore[arg-type]  # mypy takes the hash of the instances
    if rule is not None:
        return rule(obj, level)
    if level is Level.OWNED and (reason := _refusal(cls)):  # type: ignore[arg-type]  # likewise
        return Anatomy(Kind.OPAQUE, copied=True, refusal=reason)
    return take_apart(obj, level)


@cache
def _rule(cls: type) -> Callable[[Any, Level], Anatomy] | None:
    return next((rule for kind, rule in _RULES if issubclass(cls, kind)), None)


@cache
def _refusal(cls: type) -> str | None:
    names = [base.__name__ for base in cls.__mro__ if base.__module__.startswith("autogen.")]
    return next((_REFUSED[name] for name in names if name in _REFUSED), None)


def _agent(obj: ConversableAgent, _: Level) -> Anatomy:
    def part_of(name: str, value: Any) -> Part:
        place = Place("attr", name)
        if name in _FRESH:
            return Part(place, Fresh(_FRESH[name]), Level.OWNED, name, _fresh)
        if name == "_reply_func_list":
            return Part(place, value, Level.OWNED, name, _replies)
        if name == "_max_consecutive_auto_reply_dict":
            return Part(place, value, Level.OWNED, name, _limits_per_sender)
        if name == "_group_manager":
            return Part(place, value, Level.OWNED, name, weak=True)
        level = Level.HELD if name in _HELD else Level.SHARED if name in _SHARED else Level.OWNED
        return Part(place, value, level, name)

    made = instance(obj, part_of, copied=True)
    attributes = {
        name: None if name in _EMPTIED else value
        for name, value in made.snapshot.attributes.items()
        if name not in _DROPPED and name != "_group_manager"
    }
    left_out = _EMPTIED | _DROPPED
    parts = [part for part in made.parts if part.place.key not in left_out]
    return made._replace(snapshot=Body(type(obj), attributes, made.snapshot.slots), parts=parts)


def _replies(obj: list[dict[str, Any]], _: Level) -> Anatomy:
    parts = [
        Part(Place("item", i), entry, Level.OWNED, f", reply {_name(entry['reply_func'])}", _reply)
        for i, entry in enumerate(obj)
    ]
    return Anatomy(Kind.LIST, copied=True, snapshot=list(obj), parts=parts)


def _reply(obj: dict[str, Any], _: Level) -> Anatomy:
    levels = {"trigger": Level.HELD, "reply_func": Level.SHARED, "reset_config": Level.SHARED}
    parts = [
        Part(Place("item", name), value, levels.get(name, Level.OWNED), f", {name}")
        for name, value in obj.items()
        if not is_leaf(value) and not (name == "trigger" and _names_agents_by_kind(value))
    ]
    return Anatomy(Kind.DICT, copied=True, snapshot=dict(obj), parts=parts)


def _names_agents_by_kind(trigger: Any) -> bool:
    """Whether a trigger leads to no agent, as nearly all do: AG2 replaces triggers and never changes them, so copies share it."""
    return isinstance(trigger, list) and all(map(is_leaf, trigger))


def _limits_per_sender(obj: Any, _: Level) -> Anatomy:
    """Limits set for agents of the team; former partners are not followed."""
    kept = defaultdict(None, {sender: limit for sender, limit in obj.items() if is_leaf(sender)})
    parts = [
        Part(Place("entry", limit), sender, Level.SHARED, "", weak=True)
        for sender, limit in obj.items()
        if not is_leaf(sender)
    ]
    if (factory := getattr(obj, "default_factory", None)) is not None:
        parts.append(Part(Place("attr", "default_factory"), factory, Level.SHARED, ".default_factory"))
    return Anatomy(Kind.DICT, copied=True, snapshot=kept, parts=parts)


def _group_chat(obj: GroupChat, _: Level) -> Anatomy:
    def part_of(name: str, value: Any) -> Part:
        if name == "messages":
            return Part(Place("attr", name), value, Level.OWNED, name, _emptied)
        return Part(Place("attr", name), value, _GROUP_CHAT_LEVELS.get(name, Level.OWNED), name)

    return instance(obj, part_of, copied=True)


def _emptied(_: list[Any], __: Level) -> Anatomy:
    return Anatomy(Kind.LIST, copied=True, snapshot=[])


def _pattern(obj: Pattern, _: Level) -> Anatomy:
    return instance(
        obj,
        lambda name, value: Part(Place("attr", name), value, _PATTERN_LEVELS.get(name, Level.OWNED), name),
        copied=True,
    )


def _wrapper(obj: OpenAIWrapper, level: Level) -> Anatomy:
    """A new shell around the same clients, with counters of its own."""
    if level is Level.SHARED:
        return Anatomy(Kind.OPAQUE, copied=False)
    size = obj._response_buffer.maxlen  # noqa: SLF001 - the wrapper has no copy of its own
    replaced: dict[str, Any] = {
        "_response_metadata": Fresh(dict),
        "_response_buffer": Fresh(partial(deque, maxlen=size)),
    }
    skipped = {"total_usage_summary", "actual_usage_summary", *replaced}
    made = instance(obj, attribute(Level.HELD), copied=True)
    parts = [
        part._replace(rule=_clients) if part.place.key == "_clients" else part
        for part in made.parts
        if part.place.key not in skipped
    ]
    parts += [Part(Place("attr", name), fresh, Level.OWNED, name, _fresh) for name, fresh in replaced.items()]
    attributes = {name: value for name, value in made.snapshot.attributes.items() if name not in skipped}
    attributes["_round_robin_index"] = 0
    body = Body(type(obj), attributes, made.snapshot.slots, identified_by="wrapper_id")
    return made._replace(snapshot=body, parts=parts)


def _clients(obj: list[Any], _: Level) -> Anatomy:
    """Model clients are shared, save those of AG2's own that remember the conversation."""
    parts = [
        Part(Place("item", i), client, Level.OWNED, f"[{i}]", _stateful_client)
        for i, client in enumerate(obj)
        if type(client).__module__.startswith("autogen.") and type(client).__name__ not in _STATELESS_CLIENTS
    ]
    return Anatomy(Kind.LIST, copied=True, snapshot=list(obj), parts=parts)


def _stateful_client(obj: Any, _: Level) -> Anatomy:
    """A shell with conversation state of its own around the same connection."""
    attributes = {**vars(obj), **_CLIENT_STATE.get(type(obj).__name__, {})}
    parts = [
        Part(Place("attr", name), Fresh(value.copy().copy), Level.OWNED, f".{name}", _fresh)
        for name, value in attributes.items()
        if type(value) in CONTAINERS
    ]
    return Anatomy(Kind.OBJECT, copied=True, snapshot=Body(type(obj), attributes), parts=parts)


def _llm_config(obj: LLMConfig, level: Level) -> Anatomy:
    if level is Level.SHARED:
        return Anatomy(Kind.OPAQUE, copied=False)
    return instance(obj, attribute(Level.HELD), copied=True)


def _tool(obj: Tool, _: Level) -> Anatomy:
    """A tool never changes, so it is shared unless it leads to the team."""
    return instance(obj, attribute(Level.SHARED), copied=False)


def _fresh(obj: Fresh, _: Level) -> Anatomy:
    return Anatomy(Kind.FRESH, copied=True, snapshot=obj.factory)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


_RULES: tuple[tuple[type, Callable[[Any, Level], Anatomy]], ...] = (
    (ConversableAgent, _agent),
    (GroupChat, _group_chat),
    (Pattern, _pattern),
    (OpenAIWrapper, _wrapper),
    (LLMConfig, _llm_config),
    (ApplicationConfig, _llm_config),
    (Tool, _tool),
)
"""What is taken apart by its meaning; the first that fits."""


def _owner(obj: Any) -> str:
    if isinstance(obj, ConversableAgent):
        return f"agent {obj.name!r}"
    if isinstance(obj, GroupChat | Pattern):
        return f"{type(obj).__name__} of {', '.join(repr(getattr(agent, 'name', '?')) for agent in obj.agents[:4])}"
    return "the agents" if isinstance(obj, list | tuple) else f"the {type(obj).__name__}"


RULES = TeamRules(members=TEAM_TYPES, owners=(ConversableAgent, GroupChat, Pattern), owner=_owner, dissect=dissect)
"""What AG2 Classic calls a team."""
