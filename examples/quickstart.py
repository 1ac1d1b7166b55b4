"""Three agents from configuration dicts, at once."""

from example_model import model_config

from ag2_parallel import ParallelAgentRunner


def main():
    with model_config(lambda request: f"[scripted] {request.system_text} {request.last_text}") as llm_config:
        tasks = [
            {
                "name": name,
                "agent_config": {"system_message": f"You are an expert for {name}.", "llm_config": llm_config},
                "prompt": "What is new this year?",
            }
            for name in ("databases", "compilers", "networks")
        ]
        runner = ParallelAgentRunner(max_workers=3, timeout=60, handle_errors="collect")
        results = runner.run(tasks)

    for name, result in results.items():
        print(f"{name}: {result.status} in {result.duration:.1f} s: {result.summary}")
    print(f"{results.usage.calls} model calls, {results.metrics['task_seconds']:.1f} s of work")


if __name__ == "__main__":
    main()
