"""Tasks that are rough with their worker process, or give back what can hardly be sent. See `rough_work`."""

import subprocess
import sys
import textwrap

import pytest
import rough_work

from ag2_parallel import ParallelAgentRunner, ParallelTask, ProcessBackend
from ag2_parallel.testing import ModelServer

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("no_threads_left")]


def task(name, work, prompt="", **fields):
    return ParallelTask(name, prompt, run=f"rough_work:{work}", **fields)


def run(*tasks, workers=1, **options):
    backend = ProcessBackend(workers=workers)
    return ParallelAgentRunner(4, backend=backend, progress=False, **options).run(tasks)


class TestWhatComesBack:
    @pytest.mark.parametrize("kind", ["ends", "wordless", "shows nothing", "empty cell", "ends when read"])
    def test_an_output_that_cannot_be_sent_fails_its_task_alone(self, kind):
        results = run(task("rough", "gives", kind), task("other", "naps", "0.3"))
        rough, other = results["rough"], results["other"]
        assert (rough.error.kind, rough.attempts) == ("not_serializable", 1)
        assert rough.error.message.startswith('task "rough": its output')
        assert (other.output, other.attempts) == ("other", 1)

    def test_a_context_that_cannot_be_shown(self):
        result = run(task("rough", "keeps_what_cannot_be_shown"))["rough"]
        assert (str(result.status), result.output, result.context) == ("succeeded", "done", {})


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ("closes_all_files", "ended with exit code 1"),
        ("becomes_another_program", "hung up"),
        ("touches_nothing", "SIGSEGV"),
    ],
)
def test_who_ruins_its_process_is_named_and_the_others_run_again(work, words):
    results = run(task("rough", work), task("other", "naps", "0.5"))
    assert results["rough"].error.kind == "worker_crashed"
    assert words in results["rough"].error.message
    assert (results["other"].output, results["other"].attempts) == ("other", 2)


def test_a_signal_to_the_group_hits_one_process():
    results = run(task("other", "naps", "1.5"), task("rough", "signals_its_group"), workers=2)
    assert "SIGTERM" in results["rough"].error.message
    assert (results["other"].output, results["other"].attempts) == ("other", 1)


def test_members_of_enumerations_as_groups_and_priorities():
    group, priority = rough_work.Group.FIRST, rough_work.Urgency.HIGH
    with ModelServer("hi") as server:
        config = {"llm_config": server.llm_config()}
        made = ParallelTask(group, "hello", agent_config=config, group=group, priority=priority, timeout=20)
        result = run(made)[0]
    assert (result.output, result.attempts, result.group) == ("hi", 1, group)


def test_a_record_with_the_wrong_arguments_does_not_fail_its_task(capfd):
    result = run(task("rough", "logs_nonsense"))["rough"]
    assert result.output == "logged"
    assert "%d apples" in capfd.readouterr().err


def output_of(program):
    """What a program of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=False, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_classes_of_main_come_back_and_stay_as_they_were():
    program = """
        from ag2_parallel import ParallelAgentRunner, ParallelTask

        class Basket:
            made = []
            kinds = []
            def __init_subclass__(cls):
                Basket.kinds.append(cls.__name__)
            def total(self):
                return rate

        class Full(Basket):
            pass

        rate = 1

        def work(ctx):
            Basket.made.append(ctx.name)
            return Full()

        before = Basket.total
        results = ParallelAgentRunner(2, backend="process", progress=False).run([ParallelTask("t", run=work)])
        rate = 2
        basket = results["t"].output
        print(type(basket) is Full, Basket.total is before, basket.total(), Basket.made, Basket.kinds)
        """
    assert output_of(program) == ["True", "True", "2", "[]", "['Full']"]


def test_an_import_path_with_what_python_passes_over():
    program = """
        import pathlib, sys
        sys.path[:0] = [pathlib.Path("/nowhere"), b"/nowhere", None]
        from ag2_parallel import ParallelAgentRunner, ParallelTask
        runner = ParallelAgentRunner(2, backend="process", progress=False)
        print(runner.run([ParallelTask("t", run=lambda ctx: "fine")])["t"].output)
        """
    assert output_of(program) == ["fine"]


def test_a_dataclass_of_main_is_what_an_answer_is_validated_into():
    program = """
        from dataclasses import dataclass, field
        from ag2_parallel import ParallelAgentRunner, ParallelTask

        @dataclass
        class Bill:
            total: int
            lines: list[str] = field(default_factory=list)

        task = ParallelTask("t", run=lambda ctx: {"total": 3}, output_type=Bill)
        print(ParallelAgentRunner(2, backend="process", progress=False).run([task])["t"].output == Bill(3))
        """
    assert output_of(program) == ["True"]


def test_a_tool_of_main_whose_effect_happens_once():
    program = """
        import os
        from dataclasses import dataclass
        from ag2_parallel import ParallelAgentRunner, ParallelTask, once

        @dataclass
        class Receipt:
            amount: int

        @once
        def pay(amount: int) -> Receipt:
            os.write(2, b"paid ")
            return Receipt(amount)

        def work(ctx):
            receipt = pay(7)
            if ctx.attempt == 1:
                os._exit(1)
            return receipt

        print(pay(7).amount)
        print(ParallelAgentRunner(2, backend="process", progress=False).run([ParallelTask("t", run=work)])["t"].output)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=False, capture_output=True, text=True, timeout=50
    )
    assert done.stdout.split() == ["7", "Receipt(amount=7)"]
    assert done.stderr.split() == ["paid", "paid"]  # here, and in one of two processes
