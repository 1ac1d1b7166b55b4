"""S10, F06: bad input is refused before anything starts, every problem at once."""

import pytest

from ag2_parallel import (
    ConfigurationError,
    DependencyCycleError,
    DuplicateTaskError,
    ParallelAgentRunner,
    ParallelTask,
    ProcessBackend,
    Replay,
    UnknownDependencyError,
    UnsupportedAgentError,
)
from ag2_parallel.testing import ModelServer

pytestmark = pytest.mark.usefixtures("no_threads_left")


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, **options})


def ok(ctx):
    return f"done {ctx.name}"


def named(*names, run=ok, **fields):
    return [ParallelTask(name, run=run, **fields) for name in names]


class TestValidation:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"max_worker": 3}, "did you mean 'max_workers'"),
            ({"max_workers": 0}, "max_workers: 0"),
            ({"max_workers": True}, "max_workers: True"),
            ({"max_workers": 10_001}, "max_workers"),
            ({"timeout": 0}, "timeout: 0"),
            ({"timeout": -1}, "timeout: -1"),
            ({"timeout": float("nan")}, "timeout: nan"),
            ({"timeout": True}, "timeout: True"),
            ({"timeout": 31_536_001}, "timeout"),
            ({"handle_errors": "raise"}, '"collect", "fail_fast", "ignore"'),
            ({"cassette": "x"}, "neither Record"),
            ({"cassette": Replay("x"), "backend": "process"}, 'with backend="local" alone'),
            ({"rate_limits": [3]}, "rate_limits: 3"),
            ({"rate_limits": "fast"}, "rate_limits"),
            ({"hedge_after": "p50"}, "p95"),
            ({"adaptive": 1}, "adaptive"),
            ({"count_waiting": "no"}, "count_waiting"),
            ({"backend": "processes"}, 'none of "local", "process"'),
            ({"backend": ProcessBackend(workers=2, threads=2), "max_workers": 5}, "4 places"),
            ({"retry": 0}, "retry: 0"),
            ({"max_workers": 3, "max_concurrency": 4}, "mean the same and differ"),
            ({"observers": [3]}, "cannot be called"),
            ({"console": "loud"}, "console"),
            ({"progress": "yes"}, "progress"),
            ({"grace": -1}, "grace"),
            ({"resources": {"db": 3}}, "resources"),
            ({"human_input": "ask"}, "human_input"),
            ({"directory": 3}, "directory"),
            ({"redact": 3}, "redact"),
            ({"max_abandoned": 0}, "max_abandoned"),
            ({"llm_config": ModelServer("x").llm_config}, "llm_config is a function; give what it returns"),
        ],
    )
    def test_bad_options(self, options, words):
        with pytest.raises(ConfigurationError) as caught:
            ParallelAgentRunner(**options)
        assert words in str(caught.value)

    def test_max_concurrency_is_max_workers(self):
        assert "max_workers=3" in repr(ParallelAgentRunner(max_concurrency=3))

    def test_all_problems_at_once(self):
        tasks = [
            {"name": "a", "prompts": "x", "run": ok},
            {"run": ok},
            {"name": "b", "run": ok, "timeout": float("nan"), "retry": 0},
            {"name": "c", "agent": object(), "agent_config": {}},
            {"name": "d"},
            {"name": " "},
            {"name": "e\x00", "run": ok},
            {"name": "f", "run": ok, "depends_on": "a"},
            3,
        ]
        with pytest.raises(ConfigurationError) as caught:
            runner().run(tasks)
        text = str(caught.value)
        for words in (
            "unknown key 'prompts'; did you mean 'prompt'",
            "it has no name",
            "timeout: nan",
            "retry: 0",
            "exactly one of",
            "has none of agent_config, agent and run",
            "is blank",
            "control character",
            "depends_on: 'a' is not a list",
            "int is neither",
        ):
            assert words in text

    def test_a_task_that_is_only_a_name_is_told_all_it_lacks(self):
        for task in (ParallelTask("x"), {"name": "x"}):
            with pytest.raises(ConfigurationError) as caught:
                runner().run([task])
            assert str(caught.value) == (
                'task "x": it has no prompt, and it has none of agent_config, agent and run, and the runner has no '
                'llm_config; write ParallelTask("x", "Summarise the case.", agent=your_agent)'
            )
        with pytest.raises(ConfigurationError) as caught:
            runner().run([ParallelTask("x", "Hello")])
        assert "prompt" not in str(caught.value)
        with pytest.raises(ConfigurationError) as caught:
            runner().map(None, [{"a": "b"}].__iter__(), "{{ a }}")
        assert "prompt" not in str(caught.value)

    @pytest.mark.parametrize("name", ["", " ", "\u200b", "\u200b\u2060 \ufeff", "\ufe0f"])
    def test_a_name_that_nobody_can_see_is_blank(self, name):
        with pytest.raises(ConfigurationError, match="blank"):
            runner().run(named(name))

    def test_duplicates_unknown_dependencies_and_circles(self):
        with pytest.raises(DuplicateTaskError, match="positions 1 and 3"):
            runner().run(named("a", "b", " A"))
        with pytest.raises(UnknownDependencyError, match="other"):
            runner().run([*named("one"), *named("b", depends_on=["other"])])
        with pytest.raises(DependencyCycleError):
            runner().run([*named("a", depends_on=["b"]), *named("b", depends_on=["a"])])

    def test_what_is_no_agent(self):
        with pytest.raises(UnsupportedAgentError, match="int is no kind of agent"):
            runner().run([ParallelTask("a", agent=3)])

    @pytest.mark.parametrize("tasks", ["abc", 5, None, {"name": "a"}, ParallelTask("a", run=ok)])
    def test_what_is_no_list(self, tasks):
        with pytest.raises(ConfigurationError, match="tasks"):
            runner().run(tasks)

    def test_a_factory_that_returns_no_agent_is_a_failed_result(self):
        result = runner().run([ParallelTask("a", agent=lambda: 3)])["a"]
        assert result.status == "failed"
        assert "of type int, which cannot be run" in result.error.message

    def test_a_factory_that_forgets_to_return(self):
        result = runner(retry=3).run([ParallelTask("a", agent=lambda: None)])["a"]
        assert (result.status, result.error.kind, result.attempts) == ("failed", "configuration", 1)
        assert 'forget "return"' in result.error.message

    def test_a_class_in_place_of_an_agent(self):
        import autogen

        with pytest.raises(UnsupportedAgentError, match="agent is the class AssistantAgent; pass an instance"):
            runner().run([ParallelTask("a", agent=autogen.AssistantAgent)])

    @pytest.mark.parametrize(
        ("agent", "words"), [([], "empty"), (["x", "y"], "not every member"), ((1, 2, 3), "a pair has two")]
    )
    def test_lists_that_are_no_team(self, agent, words):
        with pytest.raises(UnsupportedAgentError, match=words):
            runner().run([ParallelTask("a", agent=agent)])

    def test_words_of_other_libraries(self):
        with pytest.raises(ConfigurationError, match="did you mean 'prompt'"):
            runner().run([{"name": "a", "message": "hi", "run": ok}])
        with pytest.raises(ConfigurationError, match="run is None"):
            runner().run([{"name": "a", "run": None}])
        with pytest.raises(ConfigurationError, match="a dict of tasks"):
            runner().run({"a": {"run": ok}})
        with pytest.raises(ConfigurationError, match="a dict of tasks"):
            runner().run({"a": "Hello", "b": "Hello"})
        with pytest.raises(ConfigurationError, match=r"one task must be put in a list"):
            runner().run({"name": "a", "run": ok})
        with pytest.raises(
            ConfigurationError, match=r"agent_config: function is not a dict; give an agent, .* as agent="
        ):
            runner().run([ParallelTask("a", "Hello", ok)])

    def test_import_paths(self):
        results = runner().run(
            [
                ParallelTask("good", run="json:dumps"),
                ParallelTask("bad", run="json:dumpz"),
                ParallelTask("x", run="nomod:f"),
            ]
        )
        assert "did you mean" in results["bad"].error.message
        assert results["bad"].error.kind == "configuration"
        assert "cannot be imported" in results["x"].error.message
