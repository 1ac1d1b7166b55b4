"""Five diagnostic teams on one invented case, at once and one after another, then a final assessment.

Stands alone; `ag2-parallel demo` is the long form of it. Nothing here is medical advice. Asks the model of
OPENAI_MODEL (with OPENAI_BASE_URL and OPENAI_API_KEY) where that is set, else an embedded scripted one.
"""

import os
from contextlib import contextmanager

from autogen import ConversableAgent, GroupChat

from ag2_parallel import ParallelAgentRunner, ParallelTask, Template
from ag2_parallel.testing import ModelServer, Reply

CASE = (
    "Invented patient: woman, 71, on simvastatin, warfarin and amlodipine, given clarithromycin six days ago. "
    "Painful thighs, dark urine, confusion. Creatine kinase 24,300 U/l, creatinine 262 µmol/l, INR 6.4."
)
TEAMS = {  # the question, and the scripted seconds of one answer
    "symptoms": ("What explains the symptoms?", 0.25),
    "literature": ("What is known about this in the literature?", 0.30),
    "drug interactions": ("Which medicines interact?", 0.22),
    "imaging": ("Which images are needed?", 0.27),
    "treatment": ("What has to be done in the first six hours?", 0.25),
}
ROLES = ("coordinator", "specialist", "reviewer", "supervisor")


async def scripted(request):
    """Say who would speak, after as long as this team's model takes."""
    team = next((name for name in TEAMS if f"{name} team" in request.system_text), None)
    seconds = TEAMS[team][1] if team else 0.15
    return Reply(f"[scripted answer] {request.system_text.rpartition('. ')[2]}", latency=seconds)


@contextmanager
def model_config():
    """Yours, or the scripted one."""
    if "OPENAI_MODEL" in os.environ:
        entry = {"model": os.environ["OPENAI_MODEL"], "api_key": os.environ.get("OPENAI_API_KEY", "none")}
        if "OPENAI_BASE_URL" in os.environ:
            entry["base_url"] = os.environ["OPENAI_BASE_URL"]
        yield {"config_list": [entry]}
    else:
        with ModelServer(scripted) as server:
            yield server.llm_config()


def tasks(llm_config):
    """One group chat for each team, and the assessment that needs all of them."""

    def team(ctx):
        config = ctx.llm_config(llm_config)
        members = [
            ConversableAgent(role, system_message=f"{CASE} The {role} of the {ctx.name} team speaks", llm_config=config)
            for role in ROLES
        ]
        return GroupChat(agents=members, messages=[], max_round=5, speaker_selection_method="round_robin")

    return [
        *(ParallelTask(name, question, agent=team) for name, (question, _) in TEAMS.items()),
        ParallelTask(
            "assessment",
            Template("{% for name in upstream %}{{ name }}: {{ upstream[name].summary }}\n{% endfor %}Assess."),
            agent_config={"system_message": f"{CASE} The senior physician decides", "llm_config": llm_config},
            depends_on=list(TEAMS),
        ),
    ]


def seconds(results):
    """From the start of the first task to the end of the last."""
    first = min(result.started_at for result in results.values())
    return (max(result.finished_at for result in results.values()) - first).total_seconds()


def main():
    with model_config() as llm_config:
        parallel = ParallelAgentRunner(timeout=600).run(tasks(llm_config))
        one_by_one = ParallelAgentRunner(max_workers=1, timeout=600).run(tasks(llm_config))

    for result in parallel.values():
        print(f"{result.name}: {result.status}, {result.duration:.1f} s, {result.usage.calls} calls: {result.summary}")
    longest = max(parallel.values(), key=lambda result: result.duration)
    reduction = 100 * (1 - seconds(parallel) / seconds(one_by_one))
    print(
        f"one after another {seconds(one_by_one):.1f} s, in parallel {seconds(parallel):.1f} s: {reduction:.0f} % less"
    )
    print(f"longest: {longest.name}, {longest.duration:.1f} s")


if __name__ == "__main__":
    main()
