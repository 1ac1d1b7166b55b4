"""Journals in the hands of everybody: what must stay resumable, and what must not be lost or let out."""

import asyncio
import base64
import contextlib
import queue
import sqlite3
import threading
from urllib.parse import quote

import pytest

from ag2_parallel import (
    ConfigurationError,
    Journal,
    JournalError,
    ParallelAgentRunner,
    ParallelTask,
    RunFailedError,
    once,
)

pytestmark = [pytest.mark.timeout(40), pytest.mark.usefixtures("no_threads_left")]

ran = []


@pytest.fixture(autouse=True)
def _afresh():
    ran.clear()


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "runs.db"


def work(ctx):
    ran.append(ctx.name)
    return f"{ctx.name}: {ctx.prompt}"


def tasks(names="abcdef", prompt="p", **fields):
    return [ParallelTask(name, prompt, run=work, **fields) for name in names]


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "max_workers": 2, **options})


def broken(text):
    raise ZeroDivisionError


def leaving(text):
    raise SystemExit


class TestRedact:
    """Whatever `redact` does, a run can be gone on with."""

    @pytest.mark.parametrize(
        "redact", [broken, leaving, lambda text: "", lambda text: text.replace("a", "#").replace("succeeded", "")]
    )
    def test_results_stand(self, journal, redact):
        given = [ParallelTask("anna", "p", run=work, group="girls"), *tasks("b", depends_on=["anna"])]
        runner(journal=journal, redact=redact).run(given, run_id="ada")
        results = runner(redact=redact).resume(journal, given)
        assert ran == ["anna", "b"]
        assert [(name, result.name, result.status) for name, result in results.items()] == [
            ("anna", "anna", "succeeded"),
            ("b", "b", "succeeded"),
        ]
        assert "p" not in str(results["anna"].output) or redact("p") == "p"

    def test_also_where_a_name_looks_like_a_key(self, journal):
        name = "sk-learn-0123456789"
        runner(journal=journal).run([ParallelTask(name, run=work)], run_id="one")
        assert list(runner().resume(journal, [ParallelTask(name, run=work)])) == [name]
        assert ran == [name]

    def test_one_that_interrupts_on_the_journals_thread_stops_the_run(self, journal):
        def interrupts(text):
            if threading.current_thread().name == "ag2-parallel-journal":
                raise KeyboardInterrupt
            return text

        with pytest.raises(RunFailedError, match="KeyboardInterrupt"):
            runner(journal=journal, redact=interrupts).run(tasks("ab"), run_id="one")


class TestValues:
    def test_a_value_that_cannot_say_what_it_is(self, journal):
        class Wordless:
            def __str__(self):
                raise SystemExit

        given = [ParallelTask("w", run=lambda ctx: Wordless()), *tasks("a")]
        assert runner(journal=journal).run(given, run_id="one").ok
        results = runner().resume(journal, given)
        assert results.ok
        assert "could not be stored: SystemExit" in results["w"].output


class TestNothingIsLost:
    def test_results_of_tasks_that_did_not_start_again_stay(self, journal):
        """Resumed with prompts changed by mistake, and stopped: the paid results are there for the right prompts."""
        runner(journal=journal).run(tasks(), run_id="one")
        started = threading.Event()

        def waits(ctx):
            started.set()
            while True:
                ctx.check()

        first = ParallelTask("first", run=waits, priority=1)
        handle = runner(journal=journal, max_workers=1).start([first, *tasks(prompt="wrong")], run_id="one")
        started.wait(10)
        handle.cancel()
        assert len(handle.results().skipped) == 6
        ran.clear()
        results = runner(journal=journal).run(tasks(), run_id="one")
        assert ran == []
        assert results["a"].output == "a: p"

    def test_but_not_of_those_that_depend_on_others(self, journal):
        """Their upstream may have another result by now."""
        pair = [*tasks("a"), *tasks("b", depends_on=["a"])]
        runner(journal=journal).run(pair, run_id="one")

        def stops(ctx):
            handle.cancel()
            return "another"

        handle = runner(journal=journal, max_workers=1).start(run_id="one")
        with handle:
            handle.submit(ParallelTask("a", "changed", run=stops))
            handle.submit(pair[1])
        ran.clear()
        runner(journal=journal).run([ParallelTask("a", "changed", run=stops), pair[1]], run_id="one")
        assert "b" in ran

    def test_an_async_source_gets_every_result_that_stands(self, journal):
        async def source():
            for task in tasks():
                yield task

        async def both():
            lists = [list(await runner(journal=journal).arun(source(), run_id="one")) for _ in range(2)]
            return [*lists, [result.name async for result in runner(journal=journal).astream(source(), run_id="one")]]

        assert list(map(sorted, asyncio.run(both()))) == [list("abcdef")] * 3
        assert len(ran) == 6

    def test_results_that_stand_do_not_wait_for_the_next_task(self, journal):
        """A source may make the next task from the result before."""

        def chained(answers):
            for task in tasks():
                yield task
                answers.get(timeout=10)

        for _ in range(2):
            answers = queue.SimpleQueue()
            seen = []
            for result in runner(journal=journal).stream(chained(answers), run_id="one"):
                seen.append(result.name)
                answers.put(result)
            assert seen == list("abcdef")
        assert len(ran) == 6


class TestKeep:
    def test_a_run_that_goes_on_keeps_no_more_than_before(self, journal):
        """`resume` is given the path alone."""

        def fails(ctx):
            raise ValueError

        runner(journal=Journal(journal, keep="none")).run(
            [*tasks("a", "hidden-word"), ParallelTask("b", "hidden-word", run=fails)], run_id="one"
        )
        runner().resume(journal, tasks("ab", "hidden-word"))
        runner(journal=Journal(journal, keep="none")).resume(journal, tasks("abc", "hidden-word"))
        blob = b"".join(path.read_bytes() for path in journal.parent.iterdir())
        assert b"hidden-word" not in blob


class TestPlaces:
    @pytest.mark.parametrize("name", ["x" * 300, "\ud83d.db"])
    def test_a_file_that_cannot_be(self, tmp_path, name):
        with pytest.raises(JournalError, match="there can be no such file"):
            runner(journal=tmp_path / name).run(tasks("a"))
        with pytest.raises(JournalError, match="there can be no such file"):
            runner().resume(tmp_path / name, tasks("a"))

    def test_no_file(self):
        with pytest.raises(ConfigurationError, match="names no file"):
            runner(journal=":memory:").run(tasks("a"))

    def test_a_file_with_a_name_that_sqlite_takes_for_a_command(self, tmp_path):
        with contextlib.chdir(tmp_path):
            assert runner(journal="file:x?mode=memory").run(tasks("a"), run_id="one").ok
            assert runner().resume("file:x?mode=memory", tasks("a")).ok
        assert ran == ["a"]
        with contextlib.closing(sqlite3.connect(tmp_path / "file:x?mode=memory")) as db:
            assert db.execute("SELECT count(*) FROM tasks").fetchone() == (1,)

    @pytest.mark.parametrize("run_id", ["-x", "--help", ".hidden"])
    def test_a_run_that_the_command_line_cannot_name(self, journal, run_id):
        with pytest.raises(ConfigurationError, match="the first no dot or dash"):
            runner(journal=journal).run(tasks("a"), run_id=run_id)


KEY = "sk-live-0123456789abcdefgh"


class TestSecrets:
    def test_in_the_value_of_an_effect(self, journal):
        """The file has it masked; the other attempts of this life have it whole."""
        made = []

        @once
        def token() -> str:
            made.append(1)
            return f"token {KEY}"

        broken_again = [True]

        def uses(ctx):
            told = token()
            if ctx.attempt == 1 or broken_again[0]:
                raise ValueError("once more")
            return told.startswith("token sk-live")

        given = [ParallelTask("t", run=uses)]
        assert runner(journal=journal, retry=2).run(given, run_id="one")["t"].attempts == 2
        assert KEY.encode() not in b"".join(path.read_bytes() for path in journal.parent.iterdir())
        broken_again[0] = False
        results = runner(retry=2).resume(journal, given)
        assert (made, results["t"].output) == ([1], False)

    @pytest.mark.parametrize("before", ["", "u:", "user:", "some:"])
    @pytest.mark.parametrize("behind", ["", "\n", "!!"])
    def test_in_the_middle_of_base64(self, journal, before, behind):
        """As the header of a basic authentication has it."""
        key = "a+plain/secret=value"
        config = {"config_list": [{"model": "m", "api_key": key, "base_url": "http://127.0.0.1:1"}]}
        told = base64.b64encode(f"{before}{key}{behind}".encode()).decode()
        given = [ParallelTask("t", run=lambda ctx: f"Basic {told} https://host/?k={quote(key, safe='')}")]
        runner(journal=journal, llm_config=config).run(given, run_id="one")
        blob = b"".join(path.read_bytes() for path in journal.parent.iterdir()).decode("latin1")
        assert quote(key, safe="") not in blob
        hidden = [told[i : i + 12] for i in range(len(told) - 12)]
        assert sum(part in blob for part in hidden[4:-4]) == 0


class TestEffects:
    def test_an_argument_that_can_be_read_once_is_refused_and_not_read(self):
        @once
        def send(lines):
            return len(list(lines))

        given = (line for line in "abc")
        result = runner().run([ParallelTask("t", run=lambda ctx: send(given))])["t"]
        assert (result.error.kind, list(given)) == ("configuration", ["a", "b", "c"])
