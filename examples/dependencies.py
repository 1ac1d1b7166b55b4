"""Tasks that need the results of others: each starts as soon as those it names have succeeded."""

from example_model import model_config

from ag2_parallel import ParallelAgentRunner, ParallelTask, Template


def scripted(request):
    return f"[scripted] about {len(request.last_text.split())} words read"


def main():
    with model_config(scripted) as llm_config:
        tasks = [
            ParallelTask("facts", "Collect facts about the harbour."),
            ParallelTask("history", "Tell the history of the harbour."),
            ParallelTask(
                "draft",
                Template("Facts: {{ upstream.facts.summary }}. History: {{ upstream.history.summary }}. Write."),
                depends_on=["facts", "history"],
            ),
            ParallelTask("length", run=lambda ctx: len(ctx.upstream["draft"].summary), depends_on=["draft"]),
        ]
        results = ParallelAgentRunner(timeout=60, llm_config=llm_config).run(tasks)

    for result in results.values():
        print(f"{result.name}: {result.output}")
    started = sorted(results.values(), key=lambda result: result.started_at)
    print("last to start:", started[-1].name)


if __name__ == "__main__":
    main()
