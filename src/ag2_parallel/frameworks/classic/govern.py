"""Routes the model calls of one attempt's agents through its gate.

AG2 makes agents of its own while a chat runs: speaker selection, tool executors, clients rebuilt
after a tool was registered. All of them are built from an `llm_config` found somewhere in the team,
so both the configurations and the clients made from them are routed. Nothing shared is changed:
configurations, wrappers and model clients are replaced by copies.
"""

from __future__ import annotations

import copy
import logging
import threading
import weakref
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.events import RunWarning
from ag2_parallel.frameworks.classic.build import fingerprint
from ag2_parallel.frameworks.classic.direct_door import Completions, DirectClient
from ag2_parallel.frameworks.classic.governed_client import (
    GovernedClient,
    has_other_clients,
    is_model_client,
    keep_registered,
)
from ag2_parallel.frameworks.classic.kinds import is_group_chat
from ag2_parallel.frameworks.classic.model_configs import (
    DIRECT,
    Route,
    as_llm_config,
    give_keys,
    ignored_client_problem,
    is_routed,
    known_route,
    price_of,
    remember_route,
    route_of,
)
from ag2_parallel.frameworks.classic.request_forms import RequestForms

if TYPE_CHECKING:
    import httpx

    from ag2_parallel.ports import AttemptScope
    from ag2_parallel.redaction import Redactor

_log: Final = logging.getLogger("ag2_parallel")

_JSON_SCHEMA_API_TYPES: Final = frozenset({"openai", "azure", "openai_v2"})
"""Providers that can be asked for an answer of a given JSON schema."""

_NOT_SECRET: Final = frozenset({"http_client", "response_format"})

_MOST_LEARNT: Final = 10_000
"""Configurations that are remembered as learnt; beyond that learning is repeated."""


class SeenBefore:
    """What a run's attempts have come across: providers that were warned of, and configurations whose keys are known.

    Safe from any thread.

    Attributes:
        forms: The requests of the SDK clients that were met.
        keyless: Whether no call leaves the process, so that configurations need no key.
    """

    def __init__(self, *, keyless: bool = False) -> None:
        """Nothing yet."""
        self.keyless = keyless
        self.forms = RequestForms()
        self._lock = threading.Lock()
        self._providers: set[str] = set()
        self._said: set[str] = set()
        self._learnt: weakref.WeakKeyDictionary[Redactor, set[Any]] = weakref.WeakKeyDictionary()
        self._templates: weakref.WeakKeyDictionary[Redactor, weakref.WeakSet[Any]] = weakref.WeakKeyDictionary()

    def new_provider(self, name: str) -> bool:
        """Whether the provider comes up for the first time."""
        with self._lock:
            new = name not in self._providers
            self._providers.add(name)
            return new

    def first_time(self, what: str) -> bool:
        """Whether something that is said once a run comes up for the first time."""
        with self._lock:
            first = what not in self._said
            self._said.add(what)
            return first

    def learn(self, redactor: Redactor, entries: list[Any]) -> None:
        """Tell the redactor of the secrets in configuration entries, once."""
        dumped = [entry.model_dump(exclude=_NOT_SECRET) for entry in entries]
        key = fingerprint(dumped)
        with self._lock:
            known = key in self._learnt.get(redactor, ())
        if not known:
            redactor.learn(dumped)
            with self._lock:
                learnt = self._learnt.setdefault(redactor, set())
                if len(learnt) < _MOST_LEARNT:
                    learnt.add(key)

    def knows(self, redactor: Redactor, template: Any) -> bool:
        """Whether the redactor was told of all secrets in the copies of a template."""
        with self._lock:
            return template in self._templates.get(redactor, ())

    def note(self, redactor: Redactor, template: Any) -> None:
        """The redactor has been told of them."""
        with self._lock:
            self._templates.setdefault(redactor, weakref.WeakSet()).add(template)


class Governor:
    """Routes what belongs to one attempt."""

    def __init__(self, scope: AttemptScope, task_name: str, seen: SeenBefore) -> None:
        """Clients of the gate are made as they are needed, one for each kind of entry."""
        self._scope = scope
        self._task_name = task_name
        self._seen = seen
        self._clients: dict[Any, httpx.Client] = {}
        self._done: dict[int, Any] = {}
        self._template: Any = None
        self._known = False
        self._own: dict[int, Any] = {}

    def copied(self, clone: Any) -> None:
        """What follows is a copy of a template: its secrets need not be looked for each time."""
        self._template = clone.template
        self._known = self._seen.knows(self._scope.redactor, clone.template)
        self._own = {id(config): config for config in clone.llm_configs}

    def all_routed(self) -> None:
        """Everything of the copy was routed."""
        if self._template is not None and not self._known:
            self._seen.note(self._scope.redactor, self._template)

    def config(self, config: Any, *, response_format: Any = None, on_its_own: bool = False) -> Any:
        """A copy of a model configuration whose calls go through the gate; False and None stay what they are.

        Args:
            config: Any form that AG2 takes.
            response_format: A pydantic model that answers are to have the form of, where the provider can be told.
            on_its_own: Whether agents will be made from it that are not governed by `agent`.
        """
        if not config:
            return config
        own = id(config) in self._own and response_format is None  # the form is one agent's, the object several's
        routed = config if own else as_llm_config(config)
        if (problem := ignored_client_problem(routed)) is not None:
            raise ConfigurationError(f'task "{self._task_name}": llm_config {problem}')
        entries = routed.config_list
        if not self._known:
            self._seen.learn(self._scope.redactor, entries)
        entries = routed.config_list = [self._own_entry(entry, last=entry is entries[-1]) for entry in entries]
        if self._seen.keyless:
            give_keys(routed)
        for entry in entries:
            if on_its_own and not is_routed(entry):
                self._warn(entry.model_client_cls or entry.api_type)
            if (
                response_format is not None
                and entry.api_type in _JSON_SCHEMA_API_TYPES
                and entry.response_format is None
            ):
                entry.response_format = response_format
        return routed

    def agent(self, agent: Any, *, response_format: Any = None) -> None:
        """Route an agent of this attempt: its configuration, its client and its guardrails."""
        if id(agent) in self._done:
            return
        self._done[id(agent)] = agent
        if agent.llm_config:
            agent.llm_config = self.config(agent.llm_config, response_format=response_format)
        if agent.client is not None and hasattr(agent.client, "_clients"):
            agent.client = self._wrapper(agent.client, agent.llm_config)
            self._govern_rebuilt_clients(agent)
        if agent.input_guardrails or agent.output_guardrails:
            agent.input_guardrails = [self._guardrail(each) for each in agent.input_guardrails]
            agent.output_guardrails = [self._guardrail(each) for each in agent.output_guardrails]
        for entry in agent._reply_func_list:  # noqa: SLF001 - a manager runs on copies of its GroupChat that it keeps there
            if entry["config"] is not None and is_group_chat(entry["config"]):
                self.group_chat(entry["config"])

    def group_chat(self, group_chat: Any) -> None:
        """Route what a group chat selects its speakers with."""
        if id(group_chat) in self._done:
            return
        self._done[id(group_chat)] = group_chat
        config = group_chat.select_speaker_auto_llm_config
        if config:
            group_chat.select_speaker_auto_llm_config = self.config(config)
        group_chat._create_internal_agents = partial(self._internal_agents, group_chat)  # noqa: SLF001 - this object's alone

    def _internal_agents(self, group_chat: Any, *args: Any, **options: Any) -> Any:
        """What AG2 selects a speaker with: routed by its configuration, or governed now."""
        agents = type(group_chat)._create_internal_agents(group_chat, *args, **options)  # noqa: SLF001
        for agent in agents:
            if has_other_clients(agent):
                self.agent(agent)
        return agents

    def _govern_rebuilt_clients(self, agent: Any) -> None:
        """AG2 makes an agent's clients anew when its tools change: routed by the configuration, or governed then."""
        if not has_other_clients(agent):
            return

        def governed(update: Any, *args: Any, **options: Any) -> None:
            before = agent.client
            update(*args, **options)
            agent.client = self._wrapper(agent.client, agent.llm_config)
            keep_registered(before, agent.client)

        for name in ("update_tool_signature", "update_function_signature"):
            setattr(agent, name, partial(governed, getattr(agent, name)))

    def pattern(self, pattern: Any) -> None:
        """Route the configuration that a pattern's manager will be built with, so that it makes no TLS set-up."""
        arguments = dict(pattern.group_manager_args)
        if arguments.get("llm_config"):
            pattern.group_manager_args = {**arguments, "llm_config": self.config(arguments["llm_config"])}

    # ---- entries and clients

    def _own_entry(self, entry: Any, *, last: bool) -> Any:
        """A copy of a configuration's entry, routed where it can be; AG2's copy of a configuration validates all of it anew."""
        if not is_routed(entry):
            return entry.model_copy()
        route = route_of(entry)
        price = list(route.price) if route.price else _listed_price(entry.model)
        own = entry.model_copy(
            update={"http_client": self._client(route, last=last), "max_retries": 0, "price": price}  # the gate retries
        )
        if DIRECT in (own.model_extra or ()):
            delattr(own, DIRECT)  # AG2 would send it to the server
        return own

    def _client(self, route: Route, *, last: bool) -> httpx.Client:
        key = (last, route.price, route.direct, id(route.through))
        client = self._clients.get(key)
        if client is None:
            client = self._scope.gate.http_client(last_entry=last, price=route.price, through=route.through)
            remember_route(client, route)
            self._clients[key] = client  # it keeps `through`, whose id so stays its own
        return client

    def _wrapper(self, wrapper: Any, config: Any) -> Any:
        """A copy of an agent's `OpenAIWrapper` whose SDK clients go through the gate."""
        entries = config.config_list if config else []
        routed = copy.copy(wrapper)
        routed.wrapper_id = id(routed)
        routed._config_list = [dict(each) for each in wrapper._config_list]  # noqa: SLF001
        routed._response_metadata = {}  # noqa: SLF001
        routed._response_buffer = deque(maxlen=wrapper._response_buffer.maxlen)  # noqa: SLF001
        clients = list(wrapper._clients)  # noqa: SLF001
        for place, client in enumerate(clients):
            entry = entries[place] if len(entries) == len(clients) else None
            clients[place] = self._model_client(client, entry, last=place == len(clients) - 1)
            params = routed._config_list[place]  # noqa: SLF001
            params.pop(DIRECT, None)
            if entry is not None:
                if is_routed(entry):
                    params["price"] = entry.price
                if entry.response_format is not None:
                    params.setdefault("response_format", entry.response_format)
        routed._clients = clients  # noqa: SLF001
        return routed

    def _model_client(self, client: Any, entry: Any, *, last: bool) -> Any:
        """A copy of one of AG2's model clients around a way through the gate; others are governed from outside."""
        for name, value in vars(client).items() if type(client).__module__.startswith("autogen.") else ():
            if _is_sdk_client(value):
                if not self._known:
                    self._scope.redactor.learn({"api_key": value.api_key})
                http = entry.http_client if entry is not None and is_routed(entry) else None
                if http is None:
                    http = self._client(Route(price=price_of(entry)), last=last)
                routed = copy.copy(client)
                setattr(routed, name, self._sdk_client(client, value, http, last=last))
                return routed
        if not is_model_client(client):
            return client
        return GovernedClient(client, self._scope, entry)

    def _sdk_client(self, client: Any, sdk: Any, http: httpx.Client, *, last: bool) -> Any:
        """What stands for a model client's SDK client: the direct door where it fits, else a copy with our HTTP client."""
        from autogen.oai.client import OpenAIClient

        route = known_route(http)
        if type(client) is OpenAIClient and route is not None and route.direct and route.through is None:
            gate, forms = self._scope.gate, self._seen.forms
            return DirectClient(Completions(sdk, gate, http, forms, route=route, last=last))
        return sdk.with_options(http_client=http, max_retries=0)

    def _guardrail(self, guardrail: Any) -> Any:
        if id(guardrail) in self._done:
            return self._done[id(guardrail)]
        routed = guardrail
        if hasattr(guardrail, "client") and hasattr(guardrail, "llm_config"):
            routed = copy.copy(guardrail)
            routed.llm_config = self.config(guardrail.llm_config)
            routed.client = self._wrapper(guardrail.client, routed.llm_config)
            self._done[id(routed)] = routed
        self._done[id(guardrail)] = routed
        return routed

    def _warn(self, provider: str) -> None:
        if self._seen.new_provider(provider):
            message = (
                f'task "{self._task_name}": model calls of agents made with ctx.llm_config(...) for "{provider}" do '
                "not pass the runner's gate, because its client takes no HTTP client: they are neither counted nor retried "
                "by the runner; give such an agent as agent= or agent_config=, where they are"
            )
            _log.warning("%s", message)
            self._scope.emit(RunWarning, message=message)


def _is_sdk_client(value: Any) -> bool:
    """Whether it is a client of the OpenAI SDK, Azure's included."""
    return hasattr(value, "with_options") and any(cls.__module__.startswith("openai") for cls in type(value).__mro__)


def _listed_price(model: str) -> list[float]:
    """AG2's own price of the model, 0 where it knows none: without a price in the entry it prints a warning a call.

    The runner's own costs are not made from it.
    """
    from autogen.oai.openai_utils import OAI_PRICE1K

    price = OAI_PRICE1K.get(model, 0.0)
    return [float(price), float(price)] if isinstance(price, int | float) else [float(each) for each in price[:2]]
