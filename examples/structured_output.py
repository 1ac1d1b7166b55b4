"""Answers validated into a pydantic model. One that does not fit is asked for again."""

import json

from example_model import model_config
from pydantic import BaseModel, Field

from ag2_parallel import ParallelTask, run_agents_parallel


class Review(BaseModel):
    """What is read out of a customer's letter."""

    product: str
    stars: int = Field(ge=1, le=5)


def scripted(request):
    asked_again = "stars" in request.last_text
    product = next(word for word in ("kettle", "lamp") if word in json.dumps(request.messages))
    return json.dumps({"product": product, "stars": 4 if asked_again or product == "lamp" else 11})


def main():
    letters = {"letter 1": "The kettle is very good.", "letter 2": "I like the lamp."}
    with model_config(scripted) as llm_config:
        tasks = [
            ParallelTask(name, f"Read this letter: {text}", output_type=Review, output_retries=2)
            for name, text in letters.items()
        ]
        results = run_agents_parallel(tasks, timeout=60, llm_config=llm_config)

    for result in results.values():
        print(f"{result.name}: {result.output!r} after {result.usage.calls} model calls")


if __name__ == "__main__":
    main()
