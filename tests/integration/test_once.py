"""`@once`: an effect happens once in a task, over attempts and lives."""

import asyncio
import dataclasses
import threading
from datetime import date
from pathlib import Path

import pytest
from once_tools import happened, keys_of, send, send_async, stopped
from pydantic import BaseModel

from ag2_parallel import ParallelAgentRunner, ParallelTask, once
from ag2_parallel.journal.memory import MemoryReceipts


@pytest.fixture(autouse=True)
def nothing_sent():
    happened.clear()


class Ticket(BaseModel):
    number: int
    due: date


@dataclasses.dataclass
class Place:
    row: int
    seats: tuple[int, ...]


class Office:
    @once
    def book(self, row: int) -> Place:
        happened.append(row)
        return Place(row, (1, 2))

    @staticmethod
    @once
    def call(number: str) -> None:
        happened.append(number)

    @classmethod
    @once
    def close(cls, day: date) -> Ticket:
        happened.append(day)
        return Ticket(number=len(happened), due=day)


def run(function, *, retry=3, **options):
    return ParallelAgentRunner(progress=False, retry=retry, **options).run([ParallelTask("t", run=function)])["t"]


def failing_first(work, times=2):
    """A task that does `work` in each attempt, and fails after it in the first ones."""

    def attempt(ctx):
        value = work(ctx)
        if ctx.attempt <= times:
            raise ConnectionError("later")
        return value

    return attempt


# ---- what a user sees


def test_outside_a_run_it_is_the_plain_function():
    assert [send("a"), send("a"), asyncio.run(send_async("b"))] == ["sent 1", "sent 2", "sent 3"]
    assert Office().book(3) == Office().book(3)
    assert happened[3:] == [3, 3]


def test_it_happens_once_over_all_attempts_and_returns_what_it_returned():
    result = run(failing_first(lambda _ctx: send("a")))
    assert (result.output, result.attempts, happened) == ("sent 1", 3, [("a", "hi")])


def test_async_tools_too():
    async def attempt(ctx):
        value = await send_async("a")
        if ctx.attempt == 1:
            raise ConnectionError("later")
        return value

    assert run(attempt).output == "sent 1"
    assert happened == ["a"]


def test_the_same_call_again_in_one_attempt_is_another_effect():
    result = run(failing_first(lambda _ctx: [send("a"), send("b"), send("a")]))
    assert result.output == ["sent 1", "sent 2", "sent 3"]
    assert len(happened) == 3


def test_arguments_count_as_the_function_takes_them():
    run(failing_first(lambda ctx: send("a") if ctx.attempt == 1 else send(text="hi", to="a")))
    assert happened == [("a", "hi")]


def test_each_task_has_effects_of_its_own():
    tasks = [ParallelTask(f"t{i}", run=lambda _ctx: send("a")) for i in range(5)]
    ParallelAgentRunner(progress=False).run(tasks)
    assert len(happened) == 5


def test_methods_do_not_count_their_object():
    def work(_ctx):
        Office().call("112")
        return Office().book(4), Office.close(date(2026, 1, 2))

    result = run(failing_first(work))
    assert result.output == (Place(4, (1, 2)), Ticket(number=3, due=date(2026, 1, 2)))
    assert happened == ["112", 4, date(2026, 1, 2)]


def test_a_tool_that_raises_by_itself_may_be_tried_again():
    @once
    def flaky() -> str:
        happened.append("tried")
        if len(happened) < 3:
            raise ConnectionError("busy")
        return "done"

    assert run(lambda _ctx: flaky()).output == "done"
    assert len(happened) == 3


def test_a_tool_that_is_cut_is_uncertain_and_the_task_fails():
    begun = threading.Event()

    @once
    def slow() -> str:
        happened.append("begun")
        begun.set()
        threading.Event().wait(30)
        return "never"

    result = run(lambda _ctx: slow(), attempt_timeout=0.3, grace=0.2)
    assert (result.error.kind, result.error.type, result.attempts) == ("uncertain", "UncertainEffectError", 2)
    assert happened == ["begun"]
    assert "slow" in result.error.message


def test_code_that_swallows_exceptions_cannot_go_on_after_an_uncertain_effect():
    def attempt(_ctx):
        try:
            return send("a")
        except Exception:
            return "swallowed"

    receipts = MemoryReceipts("t")
    key = keys_of(attempt)[0]
    receipts.begin(key)
    outcome = stopped(attempt, receipts)
    assert (outcome.kind, outcome.retryable) == ("uncertain", False)
    assert happened == [("a", "hi")], "only when the key was found out"


def test_keys_name_the_tool_and_not_its_arguments():
    """They are stored: a secret among the arguments is not in them."""
    keys = keys_of(lambda _ctx: [send("sk-live-0123456789abcdef"), send("b"), send("b")])
    assert [key.split()[0] for key in keys] == ["once_tools.send"] * 3
    assert [key.split()[2] for key in keys] == ["#1", "#1", "#2"]
    assert not any("sk-live" in key for key in keys)


@pytest.mark.parametrize("text", ["\ud83d", "a\udc97b", "\U0001f378", "e\u0301", "\x00", "\u2028", "x" * 1_000_000])
def test_text_of_any_kind_survives(text):
    """F26."""

    @once
    def echo(said: str) -> str:
        happened.append(said)
        return said

    assert run(failing_first(lambda _ctx: echo(text) == text)).output is True
    assert len(happened) == 1


@pytest.mark.parametrize(
    "value", [{"a": [1, 2.5, None, True]}, "text", None, [], Path("/x"), {1, 2}, (1, "a"), b"\xff", date(2026, 1, 2)]
)
def test_arguments_of_many_kinds_are_known_again(value):
    @once
    def take(thing, *more: int, **named: object) -> int:
        happened.append((thing, more, named))
        return len(happened)

    assert run(failing_first(lambda _ctx: take(value, 1, 2, more=value))).output == 1


# ---- what is refused


def test_an_argument_that_cannot_be_known_again_is_refused_before_the_tool_is_called():
    @once
    def store(connection, row: int) -> None:
        happened.append(row)

    result = run(lambda _ctx: store(object(), 1))
    assert (result.error.kind, result.attempts, happened) == ("configuration", 1, [])
    assert 'ignore=["connection"]' in result.error.message
    assert "store" in result.error.message


def test_an_argument_may_be_left_out_of_account():
    @once(ignore=["connection"])
    def store(connection, row: int) -> int:
        happened.append(row)
        return row

    assert run(failing_first(lambda _ctx: store(object(), 7))).output == 7
    assert happened == [7]


def test_a_return_type_that_cannot_be_stored_is_refused_before_the_tool_is_called():
    @once
    def connect() -> threading.Event:
        happened.append("called")
        return threading.Event()

    result = run(lambda _ctx: connect())
    assert (result.error.kind, happened) == ("configuration", [])
    assert "connect" in result.error.message


def test_a_value_that_cannot_be_stored_fails_the_task_and_the_effect_is_on_record():
    @once
    def connect():
        happened.append("called")
        return threading.Event()

    receipts = MemoryReceipts("t")
    for _ in range(2):
        error = stopped(lambda _ctx: connect(), receipts)
        assert error.kind == "configuration"
        assert "its effect is written down and is not repeated" in error.message
    assert happened == ["called"]


def test_only_functions_can_be_decorated():
    with pytest.raises(TypeError, match="generator"):

        @once
        def many():
            yield 1

    with pytest.raises(TypeError, match="below @staticmethod"):
        once(staticmethod(len))
    with pytest.raises(TypeError, match="no parameter nothing"):
        once(ignore=["nothing"])(lambda: None)
