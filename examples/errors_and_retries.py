"""What goes wrong is a value: a failure, a time limit and a retry, and none of them harms another task."""

import time

from example_model import model_config

from ag2_parallel import ParallelTask, RetryPolicy, RunFailedError, run_agents_parallel


def broken(_ctx):
    raise ValueError("no such record")


def flaky(ctx):
    if ctx.attempt < 3:
        raise ConnectionError("the archive does not answer")
    return "found in the archive"


def slow(ctx):
    while True:
        ctx.check()  # a stop is raised here
        time.sleep(0.01)


def main():
    with model_config("[scripted] all is well") as llm_config:
        tasks = [
            ParallelTask("answered", "How are things?"),
            ParallelTask("broken", run=broken),
            ParallelTask("flaky", run=flaky, retry=RetryPolicy(3, initial=0.05)),
            ParallelTask("slow", run=slow, timeout=0.5),
            ParallelTask("after broken", "Summarise.", depends_on=["broken"]),
        ]
        results = run_agents_parallel(tasks, timeout=60, llm_config=llm_config)
        for result in results.values():
            print(f"{result.name}: {result.status} after {result.attempts} attempts, {result.stop_reason}")
        for name, error in results.errors.items():
            print(f"  {name}: {error.kind}: {error}")
        print(f"{len(results.succeeded)} succeeded, {len(results.errors)} did not")

        try:
            run_agents_parallel(tasks[:2], timeout=60, handle_errors="fail_fast", llm_config=llm_config)
        except RunFailedError as error:
            print(f"fail_fast: {error.results!r}")


if __name__ == "__main__":
    main()
