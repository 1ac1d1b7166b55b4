"""Teams at once: a group chat each, made anew for every attempt."""

from autogen import ConversableAgent, GroupChat
from example_model import model_config

from ag2_parallel import ParallelTask, run_agents_parallel


def scripted(request):
    return f"[scripted] {request.system_text.removeprefix('You are the ').rstrip('.')} has spoken"


def main():
    with model_config(scripted) as llm_config:

        def team(ctx):
            config = ctx.llm_config(llm_config)
            members = [
                ConversableAgent(role, system_message=f"You are the {role}.", llm_config=config)
                for role in ("planner", "writer", "critic")
            ]
            return GroupChat(agents=members, messages=[], max_round=4, speaker_selection_method="round_robin")

        topics = ("tides", "volcanoes", "glaciers")
        results = run_agents_parallel(
            [ParallelTask(topic, f"Write a paragraph about {topic}.", agent=team) for topic in topics], timeout=120
        )

    for result in results.values():
        print(f"{result.name}: {result.status}, {result.stop_reason}")
        for message in result.chat_history:
            print(f"    {message['name']}: {message['content']}")


if __name__ == "__main__":
    main()
