"""A factory makes fresh agents for every attempt. `ctx.llm_config` spares each of them a connection set-up of its own."""

from autogen import AssistantAgent
from example_model import model_config

from ag2_parallel import ParallelTask, run_agents_parallel


def main():
    with model_config(lambda request: f"[scripted] done as told: {request.system_text}") as llm_config:

        def translator(ctx):
            return AssistantAgent(
                ctx.unique_name("translator"),
                system_message=f"Translate into {ctx.context['language']}.",
                llm_config=ctx.llm_config(llm_config),
            )

        tasks = [
            ParallelTask(
                f"into {language}", "Good morning", agent=translator, max_turns=1, context={"language": language}
            )
            for language in ("French", "Hindi", "Swahili", "Polish")
        ]
        results = run_agents_parallel(tasks, max_workers=4, timeout=60)

    for result in results.values():
        print(f"{result.name}: {result.last_speaker} said: {result.summary}")


if __name__ == "__main__":
    main()
