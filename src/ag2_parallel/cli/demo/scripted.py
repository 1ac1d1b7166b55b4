"""The scripted model: each agent's answer from a file, after as many seconds as its share of the team's minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ag2_parallel.testing import Reply

if TYPE_CHECKING:
    from ag2_parallel.cli.demo.teams import Case
    from ag2_parallel.testing import ChatRequest

LABEL: Final = "[scripted answer]"
"""What every scripted answer begins with."""

SECONDS_A_MINUTE: Final = 0.25
"""Seconds of the demonstration for a minute of such a team's work."""

_SHARES: Final = {"coordinator": 0.15, "specialist": 0.45, "reviewer": 0.25, "supervisor": 0.15}
"""Parts of a team's time that its agents take."""


class ScriptedAnswers:
    """Answers the agents of a case; an agent is known by its instructions.

    Args:
        case: The case.
        speed: Divides the seconds of every answer; above 0.
    """

    def __init__(self, case: Case, speed: float = 1.0) -> None:
        second = SECONDS_A_MINUTE / speed
        self._replies = {
            case.system_message(team, role): Reply(
                f"{LABEL} {answer.strip()}", latency=team.minutes * _SHARES[role] * second
            )
            for team in case.teams
            for role, answer in team.answers.items()
        }
        self._replies[case.assessor_message] = Reply(
            f"{LABEL} {case.assessment_answer.strip()}", latency=case.assessment_minutes * second
        )

    async def answer(self, request: ChatRequest) -> Reply:
        """The answer to one request."""
        return self._replies.get(request.system_text, Reply(f"{LABEL} No answer is written for this agent."))
