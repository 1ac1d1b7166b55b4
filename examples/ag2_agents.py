"""AG2 1.x: one agent as the template of many tasks, and a team on a hub.

Asks the model of OPENAI_MODEL (with OPENAI_BASE_URL and OPENAI_API_KEY) where that is set, else a scripted one.
"""

from ag2 import Agent
from ag2.config import OpenAIConfig
from example_model import model_config

from ag2_parallel import ParallelTask, run_agents_parallel
from ag2_parallel.teams import WorkflowTeam
from ag2_parallel.testing import Reply, ToolCall


def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def scripted(request):
    """Call a tool first where there is one, then say what it returned."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return f"[scripted] It has {last['content']} words."
    if request.tools:
        return Reply(tool_calls=[ToolCall("word_count", {"text": request.last_text})])
    return f"[scripted] {request.system_text}"


def main():
    with model_config(scripted) as llm_config:
        config = OpenAIConfig(**llm_config["config_list"][0])
        counter = Agent("counter", "Count words with your tool.", config=config, tools=[word_count])

        def team(ctx):
            own = ctx.llm_config(config)
            return WorkflowTeam(
                [Agent("planner", "The planner plans.", config=own), Agent("writer", "The writer writes.", config=own)]
            )

        texts = ["a rose is a rose", "to be or not to be"]
        tasks = [*(ParallelTask(text, text, agent=counter) for text in texts), ParallelTask("team", "go", agent=team)]
        results = run_agents_parallel(tasks, timeout=60)

        for result in results.values():
            print(f"{result.name}: {result.summary}")
        print("the team:", " > ".join(message["name"] for message in results["team"].chat_history))


if __name__ == "__main__":
    main()
