"""One live agent as the template of many tasks: each attempt gets a copy, the original is never touched."""

from autogen import ConversableAgent
from example_model import model_config

from ag2_parallel import ParallelTask, run_agents_parallel
from ag2_parallel.testing import Reply, ToolCall


def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def scripted(request):
    """Call the tool first, then say what it returned."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return f"[scripted] It has {last['content']} words."
    return Reply(tool_calls=[ToolCall("word_count", {"text": request.last_text})])


def main():
    with model_config(scripted) as llm_config:
        counter = ConversableAgent(
            "counter", system_message="Count words with your tool.", llm_config=llm_config, functions=[word_count]
        )
        texts = ["a rose is a rose", "to be or not to be", "so much depends upon"]
        results = run_agents_parallel([ParallelTask(text, text, agent=counter) for text in texts], timeout=60)

        for result in results.values():
            print(f"{result.name}: {result.summary}")
        print(f"the template itself has said {sum(map(len, counter.chat_messages.values()))} messages")


if __name__ == "__main__":
    main()
