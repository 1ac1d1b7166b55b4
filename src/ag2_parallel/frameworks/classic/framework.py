"""AG2 Classic: from a task to its answer, on the attempt's own thread.

task ──team──► agents of this attempt ──govern, adopt──► chat ──ask──► answer ──validate──► output
      built, copied                     model calls and                 again, if it
      or fresh                          tools are the attempt's         does not fit
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import UnsupportedAgentError
from ag2_parallel.events import RunHint
from ag2_parallel.frameworks import output_types
from ag2_parallel.frameworks.classic import problems as found_problems
from ag2_parallel.frameworks.classic import teams, warm_up
from ag2_parallel.frameworks.classic.async_tools import adopt
from ag2_parallel.frameworks.classic.build import agent_name
from ag2_parallel.frameworks.classic.chat import Chat, lone_chat
from ag2_parallel.frameworks.classic.govern import Governor, SeenBefore
from ag2_parallel.frameworks.classic.instances import let_go, match_quickly
from ag2_parallel.frameworks.classic.kinds import Kind, is_manager, kind_of
from ag2_parallel.frameworks.classic.members import Members, members_of
from ag2_parallel.frameworks.classic.model_configs import is_routed
from ag2_parallel.frameworks.classic.named_models import named_models
from ag2_parallel.frameworks.classic.stream import TaskStream
from ag2_parallel.frameworks.classic.templates import Templates
from ag2_parallel.frameworks.failures import ContentFilteredError, InvalidAnswerError
from ag2_parallel.ports import Answer
from ag2_parallel.prompt_hints import prompt_hint

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope, Work
    from ag2_parallel.tasks import ParallelTask


_OWN_CLIENT = (
    'the factory of task "{task}" makes agents with connections of their own, which costs tens of milliseconds of '
    "processor time an agent; take the TaskContext and pass llm_config=ctx.llm_config(your_config)"
)

_ENDLESS = (
    'the pair of task "{task}" are two agents with models and no max_turns: they answer each other until a termination '
    "rule of theirs, a limit of the task, or AG2's limit of 100 replies of each ends it"
)


class ClassicFramework:
    """Runs AG2 Classic agents and teams.

    Args:
        llm_config: For tasks whose `agent_config` has none, and for tasks without any agent.
        keyless: Whether no call leaves the process, so that configurations need no key.
        foreign: The runner's model configuration where it is of AG2 1.x, for messages.
    """

    name = "classic"

    def __init__(self, llm_config: Any = None, *, keyless: bool = False, foreign: Any = None) -> None:
        self._llm_config = llm_config
        self._foreign = foreign
        self._templates = Templates(llm_config, keyless=keyless)
        self._seen = SeenBefore(keyless=keyless)

    def recognises(self, agent: object) -> bool:
        """Whether `agent` is an AG2 Classic agent, team or Pattern. Never imports AG2."""
        return kind_of(agent) is not None

    def problems(self, task: ParallelTask, agent: object) -> list[str]:
        """What stands against running the task, before anything starts."""
        found = found_problems.task_problems(task)
        kind = kind_of(agent)
        if kind is not None:
            team = found_problems.team_problems(task, agent, kind, self._llm_config)
            return found + (team or self._templates.refusals(task.name, agent))
        if task.agent is None and task.run is None:
            found += found_problems.config_task_problems(task, self._llm_config, self._foreign)
        return found

    def models(self, task: ParallelTask, agent: object) -> list[tuple[str, str, bool]]:
        """The models that the task's configuration, or its agents', name."""
        return named_models(task, agent, self._llm_config)

    def warm_up(self) -> None:
        """Import AG2 and run one chat against a made-up server inside this process. Once a process."""
        warm_up.warm_up()

    def routed(self, config: Any, scope: AttemptScope) -> Any:
        """A copy of a model configuration, in any form AG2 takes, whose calls go through the attempt's gate."""
        return Governor(scope, "", self._seen).config(config, on_its_own=True)

    def run(self, work: Work) -> Answer:
        """Run the task's chat to its end."""
        return _Run(work, self._templates, self._llm_config, self._seen).answer()


@dataclass(slots=True)
class _Team:
    """What an attempt runs: all of it the attempt's own."""

    root: Any
    kind: Kind
    members: Members


class _Run:
    """One attempt's chat."""

    def __init__(self, work: Work, templates: Templates, llm_config: Any, seen: SeenBefore) -> None:
        self._work = work
        self._task = work.task
        self._scope = work.scope
        self._templates = templates
        self._llm_config = llm_config
        self._seen = seen
        self._governor = Governor(work.scope, work.task.name, seen)
        self._stream = TaskStream(work.scope, work.task.name)

    def answer(self) -> Answer:
        from autogen.io.base import IOStream

        self._scope.check()
        with IOStream.set_default(self._stream):
            team = self._team()
            self._give_hints(team)
            self._govern(team)
            chat = self._chat(team)
            for agent in chat.members:
                if not any(
                    agent is each for each in team.members.agents
                ):  # what AG2 or the runner made beside the team
                    self._governor.agent(agent)
                    adopt(agent, self._scope, self._task.name)
                    match_quickly(agent)
            self._governor.all_routed()
            self._stream.listen_to({agent.name for agent in chat.members})
            draft = self._scope.draft
            draft.chat_history = chat.messages
            try:
                return self._validated(chat)
            finally:
                draft.chat_history = [dict(message) for message in chat.messages]
                draft.context = teams.final_context([*team.members.agents, *chat.members]) or self._work.ctx.context
                draft.last_speaker = _last_speaker(draft.chat_history) or draft.last_speaker
                self._work.at_the_end.append(partial(self._part, chat))

    def _part(self, chat: Chat) -> None:
        for agent in chat.members:
            let_go(agent, copied=not self._work.fresh or agent is chat.user)
        chat.part()

    def _give_hints(self, team: _Team) -> None:
        """What is allowed and seldom meant, said once a run."""
        hint = prompt_hint(self._task, self._work.ctx.prompt)
        if hint is not None and self._seen.first_time(hint.kind):
            self._scope.emit(RunHint, message=hint.text)
        endless = team.kind is Kind.PAIR and self._task.max_turns is None and all(each.client for each in team.root)
        if endless and self._seen.first_time("endless pair"):
            self._scope.emit(RunHint, message=_ENDLESS.format(task=self._task.name))

    # ---- the team

    def _team(self) -> _Team:
        task, root = self._task, self._work.agent
        if root is None:
            copied = self._templates.built(task)
            self._governor.copied(copied)
            copied.root._name = (task.agent_config or {}).get("name") or agent_name(task.name)  # noqa: SLF001 - the copy's own
            return _Team(copied.root, Kind.AGENT, Members(copied.agents, copied.group_chats))
        kind = kind_of(root)
        if kind is None:
            raise UnsupportedAgentError(f'task "{task.name}": a {type(root).__name__} is no AG2 Classic agent or team')
        if self._work.fresh:
            return self._claimed(root, kind)
        copied = self._templates.copied(task.name, root)
        self._governor.copied(copied)
        return _Team(copied.root, kind, Members(copied.agents, copied.group_chats))

    def _claimed(self, root: Any, kind: Kind) -> _Team:
        """What a factory made, taken for this attempt alone."""
        members = members_of(root)
        made = (*members.agents, *members.group_chats)
        for thing in made if isinstance(root, list | tuple) else (root, *made):  # a pair or a list is its members
            self._scope.claim(thing)
        if any(_has_own_client(agent) for agent in members.agents) and self._seen.first_time("own client"):
            self._scope.emit(RunHint, message=_OWN_CLIENT.format(task=self._task.name))
        for agent in members.agents:
            for tool in agent.tools:
                self._scope.hold(tool, f'tool object "{tool.name}"')
            self._scope.hold(agent.context_variables, "ContextVariables object")
        return _Team(root, kind, members)

    def _govern(self, team: _Team) -> None:
        task, output_type = self._task, self._task.output_type
        response_format = output_type if output_type is not None and output_types.is_model(output_type) else None
        answering = {Kind.AGENT: team.root, Kind.PAIR: team.root[1] if team.kind is Kind.PAIR else None}.get(team.kind)
        teams.give_selection_models(team.root, team.members.agents, self._llm_config)
        for agent in team.members.agents:
            self._governor.agent(agent, response_format=response_format if agent is answering else None)
            adopt(agent, self._scope, task.name)
            match_quickly(agent)
            self._give_folder(agent)
        for group_chat in team.members.group_chats:
            self._governor.group_chat(group_chat)
        if team.kind is Kind.PATTERN:
            self._governor.pattern(team.root)
            if task.context is not None:
                team.root.context_variables = teams.share_context([team.root], self._work.ctx.context)
        elif task.context is not None:
            teams.share_context(team.members.agents, self._work.ctx.context)

    def _give_folder(self, agent: Any) -> None:
        """Code that an agent executes runs in the task's own folder, unless its user chose another."""
        code = agent._code_execution_config  # noqa: SLF001
        if isinstance(code, dict) and code.get("executor") is None and not code.get("work_dir"):
            agent._code_execution_config = {**code, "work_dir": str(self._work.ctx.directory)}  # noqa: SLF001

    # ---- the chat

    def _chat(self, team: _Team) -> Chat:
        task, root = self._task, team.root
        reflects = task.summary_method == "reflection_with_llm"
        if team.kind is Kind.AGENT:
            chat = lone_chat(root, task.max_turns)
        elif team.kind is Kind.PAIR:
            members = [*root, *(root[1].groupchat.agents if is_manager(root[1]) else ())]
            chat = Chat(root[0], root[1], members, max_turns=task.max_turns)
        elif team.kind is Kind.MANAGER:
            chat = teams.manager_chat(root, task.max_turns)
        elif team.kind is Kind.PATTERN:
            chat = teams.pattern_chat(root, _last(self._work.ctx.prompt), task.max_turns)
        else:
            group = teams.round_robin(root) if team.kind is Kind.AGENTS else root
            config = self._governor.config(self._llm_config)
            chat = teams.managed_chat(group, task.max_turns, llm_config=config, reflects=reflects)
        if task.summary_method != "last_msg" or team.kind is not Kind.PATTERN:
            chat.summary_method = task.summary_method
        return chat

    def _validated(self, chat: Chat) -> Answer:
        task, draft = self._task, self._scope.draft
        prompt, retries = self._work.ctx.prompt, task.output_retries
        while True:
            try:
                summary, reason = chat.ask(prompt, task, self._stream)
            except InvalidAnswerError as empty:
                if not self._scope.gate.filtered:
                    raise
                raise ContentFilteredError(f"{empty}: the provider's content filter left nothing of it") from empty
            draft.summary = summary
            if task.output_type is None:
                return Answer(output=summary, summary=summary, stop_reason=reason)
            try:
                output = output_types.validated(task.output_type, summary or "")
            except InvalidAnswerError as invalid:
                if retries == 0:
                    raise
                retries -= 1
                prompt = output_types.asked_again(invalid)
            else:
                return Answer(output=output, summary=summary, stop_reason=reason)


def _has_own_client(agent: Any) -> bool:
    return bool(agent.llm_config) and any(is_routed(e) and e.http_client is None for e in agent.llm_config.config_list)


def _last(prompt: Any) -> Any:
    return prompt[-1] if isinstance(prompt, list) and prompt else prompt


def _last_speaker(messages: list[dict[str, Any]]) -> str | None:
    return next((str(message["name"]) for message in reversed(messages) if message.get("name")), None)
