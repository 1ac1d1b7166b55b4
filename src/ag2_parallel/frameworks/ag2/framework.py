"""AG2 1.x: from a task to its answer, on the attempt's own thread and loop.

task ──team──► agents of this attempt ──govern, adopt──► conversation ──► answer
      built, copied                     model calls, tools
      or fresh                          and questions are the attempt's
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import TaskStopped, UnsupportedAgentError
from ag2_parallel.events import RunHint
from ag2_parallel.frameworks.ag2 import problems as found_problems
from ag2_parallel.frameworks.ag2 import warm_up
from ag2_parallel.frameworks.ag2.build import agent_of_spec, build_agent, model_config
from ag2_parallel.frameworks.ag2.configs import (
    Govern,
    configs_of,
    govern_agent,
    governed_by_gate,
    named_model,
    secrets_of,
    without_key,
)
from ag2_parallel.frameworks.ag2.kinds import describes_agent, is_agent, is_model_config, is_spec, is_team
from ag2_parallel.frameworks.ag2.members import function_of, members_of, tools_of
from ag2_parallel.frameworks.ag2.templates import Templates
from ag2_parallel.frameworks.ag2.tools import Breakdown, adopt
from ag2_parallel.prompt_hints import prompt_hint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ag2_parallel.ports import Answer, AttemptScope, Work
    from ag2_parallel.tasks import ParallelTask


class Ag2Framework:
    """Runs AG2 1.x agents and hub teams.

    Args:
        llm_config: A model configuration of AG2 1.x, for tasks and agents that have none; anything else is left to Classic.
        govern: Makes the governed copy of a model configuration.
        keyless: Whether no call leaves the process, so that configurations need no key.
    """

    name = "ag2"

    def __init__(self, llm_config: Any = None, govern: Govern = governed_by_gate, *, keyless: bool = False) -> None:
        self._llm_config = llm_config if is_model_config(llm_config) else None
        self._govern = without_key(govern) if keyless else govern
        self._templates = Templates()
        self._hinted: set[str] = set()

    def recognises(self, agent: object) -> bool:
        """Whether `agent` is an `ag2.Agent`, an `AgentSpec` or a `WorkflowTeam`. Never imports AG2."""
        return is_agent(agent) or is_spec(agent) or is_team(agent)

    def problems(self, task: ParallelTask, agent: object) -> list[str]:
        """What stands against running the task, before anything starts."""
        found = found_problems.task_problems(task, agent)
        if agent is None:
            return found + found_problems.config_task_problems(task, self._llm_config)
        if is_spec(agent):
            return found + found_problems.spec_problems(task, agent, self._llm_config)
        found += found_problems.agent_problems(task, members_of(agent), self._llm_config)
        return found or self._templates.refusals(task.name, agent)

    def models(self, task: ParallelTask, agent: object) -> list[tuple[str, str, bool]]:
        """The models that the task's configuration, or its agents', name."""
        configs: list[Any] = [self._llm_config]
        if agent is None and describes_agent(task.agent_config):
            configs = [model_config((task.agent_config or {}).get("config")) or self._llm_config]
        elif agent is not None and not is_spec(agent):
            configs = [config for each in members_of(agent) for _, _, config in configs_of(each)] or configs
        return list(dict.fromkeys(model for config in configs if (model := named_model(config)) is not None))

    def warm_up(self) -> None:
        """Import AG2 and run one ask inside this process. Once a process."""
        warm_up.warm_up()

    def routed(self, config: Any, scope: AttemptScope) -> Any:
        """A copy of a model configuration whose calls go through the attempt's gate."""
        scope.redactor.learn(secrets_of(config))
        return self._govern(config, scope)

    def run(self, work: Work) -> Answer:
        """Run the task's conversation to its end."""
        from ag2_parallel.frameworks.ag2.conversation import Talk
        from ag2_parallel.frameworks.ag2.questions import route_questions
        from ag2_parallel.frameworks.ag2.workflow import TeamTalk

        scope, draft = work.scope, work.scope.draft
        scope.check()
        root, agents = self._team(work)
        breakdown = Breakdown()
        draft.context = work.ctx.context
        draft.agent = None if is_team(root) else root.name
        for agent in agents:
            govern_agent(agent, scope, self._llm_config, self._govern)
            adopt(agent, scope, breakdown)
        for agent in root.agents if is_team(root) else [root]:
            route_questions(agent, scope, work.task.name)
        self._give_hints(work)
        talk: Any = TeamTalk(root, work) if is_team(root) else Talk(root, work)
        try:
            answer: Answer = scope.run_coroutine(talk.answer())
        except TaskStopped:
            raise
        except BaseException:
            if breakdown.error is None:
                raise
            raise breakdown.take() from None
        finally:
            draft.context = talk.variables or draft.context
        return answer

    def _team(self, work: Work) -> tuple[Any, list[Any]]:
        """What an attempt runs, and all agents of it: all of it the attempt's own."""
        task, root = work.task, work.agent
        if root is None:
            root = build_agent(task.agent_config or {}, task.name, self._llm_config)
            return root, members_of(root)
        if not self.recognises(root):
            raise UnsupportedAgentError(f'task "{task.name}": a {type(root).__name__} is nothing of AG2 1.x')
        if is_spec(root):
            root = agent_of_spec(root, self._llm_config)
            return root, members_of(root)
        if not work.fresh:
            copied = self._templates.copied(task.name, root)
            return copied.root, copied.agents
        agents = members_of(root)
        for made in [root, *agents] if is_team(root) else agents:
            work.scope.claim(made)
        _hold(agents, work.scope)
        return root, agents

    def _give_hints(self, work: Work) -> None:
        """What is allowed and seldom meant, said once a run."""
        hint = prompt_hint(work.task, work.ctx.prompt)
        if hint is not None and hint.kind not in self._hinted:
            self._hinted.add(hint.kind)
            work.scope.emit(RunHint, message=hint.text)


def _hold(agents: Iterable[Any], scope: AttemptScope) -> None:
    """Note what fresh agents bring along that running tasks should not share."""
    for agent in agents:
        for name, value in (*agent.variables.items(), *agent.dependencies.items()):
            if isinstance(value, dict | list | set):
                scope.hold(value, f'{type(value).__name__} "{name}" of agent "{agent.name}"')
        for tool in tools_of(agent):
            bound = getattr(function_of(tool), "__self__", None)
            if bound is not None and not isinstance(bound, type):
                scope.hold(bound, f'tool object "{type(bound).__name__}"')
