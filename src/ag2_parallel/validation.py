"""Checks of tasks before anything starts: every problem of every task at once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from ag2_parallel.errors import (
    ConfigurationError,
    DuplicateTaskError,
    UnknownDependencyError,
    UnsupportedAgentError,
)
from ag2_parallel.policies import retry_problem, seconds_problem
from ag2_parallel.tasks import TASK_FIELDS, ParallelTask, RefusedTask, Template

_UNSEEN = frozenset({"Cf", "Mn", "Me"})
"""Categories of characters that show nothing by themselves, such as zero-width spaces."""


class Problem(NamedTuple):
    """What is wrong with a task, and the error that says so where it is the only kind."""

    text: str
    error: type[ConfigurationError] = ConfigurationError


_UPSTREAM: Final = re.compile(r"""\bupstream\s*(?:\.\s*(\w+)|\[\s*(?:"([^"]*)"|'([^']*)')\s*\])""")
"""What looks like a name that is read from `upstream`."""

_OF_MAPPINGS: Final = ("get", "items", "keys", "values")
"""What `upstream` has beside the names of tasks."""

AgentProblems = Callable[[ParallelTask], Iterable[Problem]]
"""Looks at a task's agent; the frameworks know what can be run and copied."""


def raise_for(problems: Sequence[Problem]) -> None:
    """Raise all problems together, as the most specific error that fits them all."""
    if problems:
        kinds = {problem.error for problem in problems}
        raise (kinds.pop() if len(kinds) == 1 else ConfigurationError)([problem.text for problem in problems])


def name_key(name: str) -> str:
    """What must be unique: the name after NFC, case folding and stripping."""
    folded = name if name.isascii() else unicodedata.normalize("NFC", name)
    key = folded.casefold()
    key = (key if name.isascii() else unicodedata.normalize("NFC", key)).strip()
    return name if key == name else key  # the same object where it can be: a run keeps every key


def as_task(given: object, position: int) -> tuple[ParallelTask | None, list[Problem]]:
    """A task, or a dict that stands for one, as a task; or what is wrong with it."""
    if isinstance(given, ParallelTask):
        return given, []
    if isinstance(given, RefusedTask):
        return None, [Problem(given.problem)]
    where = f"task number {position + 1}"
    if not isinstance(given, Mapping):
        return None, [Problem(f"{where}: {type(given).__name__} is neither a ParallelTask nor a dict")]
    if isinstance(name := given.get("name"), str):
        where = f'task "{name}"'
    problems = [Problem(f"{where}: {_unknown_key(key)}") for key in given if key not in TASK_FIELDS]
    named = [key for key in ("agent", "agent_config", "run") if key in given]
    if named and all(given[key] is None for key in named):
        problems.append(Problem(f"{where}: {' and '.join(named)} is None; did a function forget to return it?"))
    if "name" not in given:
        problems.append(Problem(f"{where}: it has no name"))
    return (None, problems) if problems else (ParallelTask(**given), [])


def task_problems(task: ParallelTask, position: int, *, has_llm_config: bool, agents: AgentProblems) -> list[Problem]:
    """What is wrong with a task by itself."""
    bad_name = name_problem(task.name)
    where = f"task number {position + 1}" if bad_name else f'task "{task.name}"'
    texts = [bad_name] if bad_name else []
    texts += _prompt_problems(task)
    texts += _agent_choice_problems(task, has_llm_config=has_llm_config)
    texts += _value_problems(task)
    problems = [Problem(f"{where}: {text}") for text in texts]
    return problems or list(agents(task))


def upstream_problems(
    task: ParallelTask, depends_on: Sequence[str], is_task: Callable[[str], bool], key: Callable[[str], str] = str
) -> list[Problem]:
    """Names of `upstream` that a task's template cannot do without, and that are none of its dependencies.

    Args:
        task: Its template is looked at, where it has one.
        depends_on: Names of the tasks it depends on.
        is_task: Whether a name is that of a task that it could depend on.
        key: Makes of a name what is compared.
    """
    if not isinstance(task.prompt, Template) or "upstream" not in task.prompt.text:
        return []
    known = {key(name) for name in (*depends_on, *_OF_MAPPINGS)}
    if all(key("".join(found)) in known for found in _UPSTREAM.findall(task.prompt.text)):
        return []
    from ag2_parallel.surely_read import surely_read

    missing = sorted(name for name in surely_read(task.prompt.text, "upstream") if key(name) not in known)
    return [
        Problem(f'task "{task.name}": {_no_upstream(name, depends_on, is_task)}', UnknownDependencyError)
        for name in missing
    ]


def _no_upstream(name: str, depends_on: Sequence[str], is_task: Callable[[str], bool]) -> str:
    needed = f"its prompt needs {_in_template(name)}"
    if is_task(name):
        return f'{needed}, and depends_on does not name "{name}"; add it there'
    there = f"it depends on {', '.join(depends_on)}" if depends_on else "it depends on no task; name them in depends_on"
    near = get_close_matches(name, depends_on, n=1)
    return f"{needed}, and {there}" + (f"; did you mean {_in_template(near[0])}?" if near else "")


def _in_template(name: str) -> str:
    return f"upstream.{name}" if name.isidentifier() else f'upstream["{name}"]'


def duplicate_problem(name: str, position: int, seen: dict[str, int]) -> Problem | None:
    """A name that is there already; `seen`, from `name_key` to position, is kept up."""
    first = seen.setdefault(name_key(name), position)
    if first == position:
        return None
    text = (
        f'task name "{name}" is used twice, at positions {first + 1} and {position + 1} '
        "(names are compared after NFC, case folding and stripping); give each task a name of its own"
    )
    return Problem(text, DuplicateTaskError)


def name_problem(name: object) -> str | None:
    """What is wrong with a task's name, or None."""
    if not isinstance(name, str):
        return f"its name {name!r} is not text"
    if name.isascii() and name.isprintable() and 0 < len(name) <= 200 and not name.isspace():
        return None  # as almost all are
    if all(c.isspace() or unicodedata.category(c) in _UNSEEN for c in name):
        return "its name is blank"
    if len(name) > 200:
        return f"its name has {len(name)} characters, and 200 are the most: {name[:40]!r}…"
    bad = next((c for c in name if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}), None)
    return f"its name {name!a} has the control character or lone surrogate {bad!a}" if bad else None


def _prompt_problems(task: ParallelTask) -> list[str]:
    prompt: Any = task.prompt
    if isinstance(prompt, str | Template | Mapping) or callable(prompt):
        return []
    if isinstance(prompt, Sequence) and prompt and all(isinstance(message, Mapping) for message in prompt):
        return []
    return [
        (
            f"prompt: a {type(prompt).__name__} is none of text, a Template, a message (a dict), a list of messages, "
            "a function of the TaskContext"
        )
    ]


def _agent_choice_problems(task: ParallelTask, *, has_llm_config: bool) -> list[str]:
    given = [name for name in ("agent_config", "agent", "run") if getattr(task, name) is not None]
    if len(given) > 1:
        return [f"it has {' and '.join(given)}; give exactly one of agent_config, agent and run"]
    if not given and not has_llm_config:
        return [_nobody(task)]
    problems = []
    if task.agent_config is not None and not isinstance(task.agent_config, Mapping):
        kind = type(task.agent_config).__name__
        problems.append(f"agent_config: {kind} is not a dict; give an agent, a team or a factory as agent=")
    if task.run is not None and not callable(task.run) and not isinstance(task.run, str):
        problems.append(f'run: a {type(task.run).__name__} is neither a function nor "module:attribute"')
    problems += [
        f'{name}: "{path}" is not of the form "module:attribute"'
        for name in ("agent", "run")
        if isinstance(path := getattr(task, name), str) and not all(path.partition(":"))
    ]
    return problems


def _value_problems(task: ParallelTask) -> list[str]:
    limits = ("timeout", "attempt_timeout", "idle_timeout")
    problems = [f"{name}: {problem}" for name in limits if (problem := seconds_problem(getattr(task, name)))]
    if task.retry is not None and (problem := retry_problem(task.retry)):
        problems.append(f"retry: {problem}")
    if task.max_turns is not None and not _whole(task.max_turns, 1):
        problems.append(f"max_turns: {task.max_turns!r} is not a whole number from 1")
    if not _whole(task.output_retries, 0):
        problems.append(f"output_retries: {task.output_retries!r} is not a whole number from 0")
    if not _whole(task.priority, -(10**9)):
        problems.append(f"priority: {task.priority!r} is not a whole number")
    return problems + _object_problems(task)


def _object_problems(task: ParallelTask) -> list[str]:
    problems = [
        f"{name}: a {type(value).__name__} is not a mapping"
        for name in ("context", "summary_args")
        if (value := getattr(task, name)) is not None and not isinstance(value, Mapping)
    ]
    if task.group is not None and not isinstance(task.group, str):
        problems.append(f"group: {task.group!r} is not text")
    depends: Any = task.depends_on
    if isinstance(depends, str) or not isinstance(depends, Sequence) or not all(isinstance(d, str) for d in depends):
        problems.append(f"depends_on: {depends!r} is not a list of task names")
    if task.accept is not None and not callable(task.accept):
        problems.append(f"accept: {task.accept!r} is not a function of the result")
    return problems


def _nobody(task: ParallelTask) -> str:
    """What a task lacks that nobody would answer."""
    lacking = "it has none of agent_config, agent and run, and the runner has no llm_config"
    if task.prompt:
        return lacking
    return (
        f'it has no prompt, and {lacking}; write ParallelTask("{task.name}", "Summarise the case.", agent=your_agent)'
    )


def agent_class(task: ParallelTask) -> Problem:
    """The problem of a class that was passed in place of an agent."""
    name = task.agent.__name__
    text = (
        f'task "{task.name}": agent is the class {name}; pass an instance of it, a function that returns one, or '
        f'agent_config={{"type": "{_type_name(task.agent)}", ...}}'
    )
    return Problem(text, UnsupportedAgentError)


def _type_name(cls: type) -> str:
    return f"ag2.{cls.__name__}" if cls.__module__.partition(".")[0] == "ag2" else cls.__name__


LIST_OF_AG2_1: Final = (
    "a list or pair of ag2.Agent objects is no team; use WorkflowTeam([...]) from ag2_parallel.teams, in which they speak "
    "one after another"
)


def unsupported(task: ParallelTask) -> Problem:
    """The problem of an agent that no framework knows."""
    agent = task.agent
    if isinstance(agent, list | tuple):
        return Problem(f'task "{task.name}": agent: {_list_problem(agent)}', UnsupportedAgentError)
    text = (
        f'task "{task.name}": agent: {type(agent).__name__} is no kind of agent; pass an AG2 agent, a pair, a list of '
        'agents, a GroupChat or a Pattern, a function that returns one, or the text "module:attribute"'
    )
    return Problem(text, UnsupportedAgentError)


def has_served(task: str, agent: str) -> str:
    """The problem of a live agent that a factory made for another task."""
    return (
        f'task "{task}": agent "{agent}" was made by a factory for another task and is tied to it; give the task the factory '
        "itself, or an agent that has served no task"
    )


def unrunnable(agent: object) -> str:
    """Why what a factory returned cannot be run."""
    if isinstance(agent, list | tuple):
        return _list_problem(agent)
    return (
        f"its agent is of type {type(agent).__name__}, which cannot be run; "
        "return an AG2 agent, a team of a kind that the documentation lists, or a pair or list of agents"
    )


def _is_of_ag2_1(agent: object) -> bool:
    return any((cls.__module__, cls.__name__) == ("ag2.agent", "Agent") for cls in type(agent).__mro__)


def _list_problem(agents: Sequence[Any]) -> str:
    if not agents:
        return "the list is empty; a group needs two agents"
    if all(map(_is_of_ag2_1, agents)):
        return LIST_OF_AG2_1
    if isinstance(agents, tuple) and len(agents) != 2:
        return (
            f"the tuple has {len(agents)} members, and a pair has two: (initiator, recipient); for a group pass a list"
        )
    kinds = ", ".join(type(each).__name__ for each in agents[:10])
    return f"not every member is an AG2 agent: {kinds}"


_OTHER_WORDS = {"message": "prompt", "messages": "prompt", "task": "prompt", "input": "prompt", "id": "name"}
"""What other libraries call a task's fields."""


def _unknown_key(key: object) -> str:
    if key in _OTHER_WORDS:
        return f"unknown key {key!r}; did you mean {_OTHER_WORDS[str(key)]!r}?"
    near = get_close_matches(str(key), TASK_FIELDS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(TASK_FIELDS)}"
    return f"unknown key {key!r}; {hint}"


def _whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low
