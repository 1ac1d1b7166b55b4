"""Which models a task's configurations name, read without building anything and without importing AG2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks.classic.members import members_of
from ag2_parallel.frameworks.named_prices import named_price

if TYPE_CHECKING:
    from ag2_parallel.tasks import ParallelTask


def named_models(task: ParallelTask, agent: Any, llm_config: Any) -> list[tuple[str, str, bool]]:
    """Name, endpoint or "", and whether a price stands there, of each model that is named.

    Args:
        task: The task, whose `agent_config` counts where `agent` is None.
        agent: A live agent or team.
        llm_config: The runner's, for configurations that have none.
    """
    if agent is None:
        own = (task.agent_config or {}).get("llm_config")
        configs = [llm_config if own is None else own]
    else:
        found = members_of(agent)
        configs = [each.llm_config for each in found.agents]
        configs += [each.select_speaker_auto_llm_config for each in found.group_chats]
    return list(dict.fromkeys(each for config in configs for each in _models_of(config)))


def _models_of(config: Any) -> Iterator[tuple[str, str, bool]]:
    for entry in _entries(config):
        model = _field(entry, "model")
        if isinstance(model, str):
            yield model, str(_field(entry, "base_url") or ""), named_price(_field(entry, "price")) is not None


def _entries(config: Any) -> list[Any]:
    if not config:
        return []
    listed = _field(config, "config_list")
    if listed is None:
        listed = config
    return list(listed) if isinstance(listed, list | tuple) else [listed]


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
