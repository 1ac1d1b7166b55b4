"""Every agent that can be at work in an attempt: the agent asked, and those behind its tools."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks.ag2.kinds import is_agent, is_team
from ag2_parallel.frameworks.cloning.references import named_globals

if TYPE_CHECKING:
    from collections.abc import Iterator


def members_of(root: Any) -> list[Any]:
    """The agents of an `ag2.Agent` or a `WorkflowTeam`, each once, in the order found."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = list(root.agents) if is_team(root) else [root]
    while waiting:
        agent = waiting.pop(0)
        if id(agent) in seen:
            continue
        seen.add(id(agent))
        found.append(agent)
        for tool in tools_of(agent):
            waiting += _agents_behind(tool)
    return found


def tools_of(agent: Any) -> Iterator[Any]:
    """The tools of an agent, members of toolkits and of its sub-tasks included."""
    config = agent.tasks
    extra = config.extra_tools if config is not None and isinstance(config.extra_tools, list | tuple) else ()
    waiting = [*agent.tools, *agent._additional_tools, *extra]  # noqa: SLF001 - no public name has them
    while waiting:
        tool = waiting.pop(0)
        yield tool
        members = getattr(tool, "tools", ())
        waiting += members if isinstance(members, tuple) else ()


def function_of(tool: Any) -> Any:
    """The user's function behind a tool, or None where there is none."""
    bare = callable(tool) and not hasattr(tool, "schema")
    call: Any = tool if bare else getattr(getattr(tool, "model", None), "call", None)
    while hasattr(call, "__wrapped__"):
        call = call.__wrapped__
    return call


def _agents_behind(tool: Any) -> list[Any]:
    function = function_of(tool)
    direct = getattr(tool, "agent", None)
    return [agent for agent in (direct, *_reached(function, depth=3)) if is_agent(agent)]


def _reached(function: Any, depth: int) -> Iterator[Any]:
    """What a function's code holds: closure, defaults, bound object, arguments of a partial, named globals."""
    held: list[Any] = []
    if isinstance(function, functools.partial):
        held = [function.func, *function.args, *function.keywords.values()]
    elif isinstance(function, types.MethodType):
        held = [function.__func__, *getattr(function.__self__, "__dict__", {}).values()]
    elif isinstance(function, types.FunctionType):
        held = [*_contents(function.__closure__ or ()), *(function.__defaults__ or ())]
        held += [value for _, value in named_globals(function)]
    for value in held:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list | tuple):
            yield from value
        elif depth and isinstance(value, types.FunctionType | types.MethodType | functools.partial):
            yield from _reached(value, depth - 1)
        else:
            yield value


def _contents(cells: tuple[types.CellType, ...]) -> Iterator[Any]:
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
