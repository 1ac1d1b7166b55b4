"""The five diagnostic teams and the final assessment, as tasks."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ag2_parallel.tasks import ParallelTask, Template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ag2_parallel.cli.demo.lines import Agents

ASSESSMENT: Final = "assessment"
"""Name of the task that depends on all teams."""

DISCLAIMER: Final = "The patient is invented, and nothing here is medical advice."

ROLES: Final = {
    "coordinator": "You are the coordinator of the {title} team. Say what has to be found out and in which order.",
    "specialist": "You are {specialist} in the {title} team. Answer the team's question from the case.",
    "reviewer": "You are the clinical reviewer of the {title} team. Check what was said for errors and gaps.",
    "supervisor": "You are the supervisor of the {title} team. Close with the team's conclusion and how sure it is.",
}
"""The agents of every team, in the order in which they speak, and their instructions."""

_FOLDER = Path(__file__).parent

_ASSESSOR = "You are the senior physician. Join the conclusions of the teams into one assessment with the next steps."

_ASSESSMENT_PROMPT = """The teams' conclusions:
{% for name, result in upstream.items() %}
{{ name }}: {{ result.summary }}
{% endfor %}
Write the final assessment."""


@dataclass(frozen=True, slots=True)
class Team:
    """A diagnostic team.

    Attributes:
        name: Of its task and of its report's file.
        title: As people read it.
        specialist: Who its specialist is.
        question: What the team is asked.
        minutes: How long such a team takes.
        answers: What the scripted model says, by role.
    """

    name: str
    title: str
    specialist: str
    question: str
    minutes: float
    answers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked, about whom, and of which teams.

    Attributes:
        text: The patient's case: Markdown, whole.
        told: As much of it as the agents are given.
        teams: The teams.
        assessment_minutes: How long the final assessment takes.
        assessment_answer: What the scripted model says in it.
    """

    text: str
    told: str
    teams: Sequence[Team]
    assessment_minutes: float
    assessment_answer: str

    def system_message(self, team: Team, role: str) -> str:
        """An agent's instructions. The case comes first: what all agents share is then worked out once by a model server."""
        return f"{self.told}\n\n{ROLES[role].format(title=team.title, specialist=team.specialist)} Be brief."

    @property
    def assessor_message(self) -> str:
        """The instructions of the final assessment's agent."""
        return f"{self.told}\n\n{_ASSESSOR} Be brief."

    def titles(self) -> dict[str, str]:
        """Titles of all tasks by their names, in their order."""
        return {team.name: team.title for team in self.teams} | {ASSESSMENT: "Final assessment"}

    def tasks(self, agents: Agents) -> list[ParallelTask]:
        """One task for each team, and the assessment that depends on all of them."""
        tasks = [
            ParallelTask(team.name, team.question, agent=agents.of_team(self._members(team))) for team in self.teams
        ]
        assessment = ParallelTask(
            ASSESSMENT,
            Template(_ASSESSMENT_PROMPT),
            agent=agents.of_one("senior_physician", self.assessor_message),
            depends_on=[team.name for team in self.teams],
        )
        return [*tasks, assessment]

    def _members(self, team: Team) -> dict[str, str]:
        """A team's agents in the order in which they speak: name and instructions."""
        return {f"{team.name}_{role}": self.system_message(team, role) for role in ROLES}


def read_case(*, brief: bool) -> Case:
    """Read the patient's case and the teams from their files.

    Args:
        brief: Whether the agents are given the case's first section alone, for models with little room.
    """
    text = (_FOLDER / "case.md").read_text(encoding="utf-8")
    data = tomllib.loads((_FOLDER / "teams.toml").read_text(encoding="utf-8"))
    return Case(
        text=text,
        told=text.split("## In brief")[1].split("##")[0].strip() if brief else text.strip(),
        teams=[Team(**team) for team in data["team"]],
        assessment_minutes=data["assessment"]["minutes"],
        assessment_answer=data["assessment"]["answer"],
    )
