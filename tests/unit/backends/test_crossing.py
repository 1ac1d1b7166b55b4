"""What cannot be sent to another process is named: the task, the field, and the way to the obstacle."""

import functools
import threading
from dataclasses import dataclass

import pytest

from ag2_parallel import NotSerializableError, ParallelTask
from ag2_parallel.backends.crossing import Left, loaded, packed_answer, packed_left, packed_task, problem, unpacked_left
from ag2_parallel.ports import Answer

LOCK = threading.Lock()


def closing_over(thing):
    return lambda ctx: thing


class Client:
    def __init__(self):
        self.pool = {"lock": threading.Lock()}

    def ask(self, ctx):
        return ctx


def uses_a_global(ctx):
    return LOCK.locked()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"run": closing_over(LOCK)}, ["run", "thing"]),
        ({"run": functools.partial(max, LOCK)}, ["run.args[0]"]),
        ({"run": Client().ask}, ["run.__self__.pool['lock']"]),
        ({"run": print, "context": {"db": LOCK}}, ["context['db']"]),
        ({"run": print, "metadata": [1, {"x": LOCK}]}, ["metadata[1]['x']"]),
        ({"run": print, "accept": closing_over(Client())}, ["accept > thing.pool['lock']"]),
        ({"agent_config": {"name": "a", "hook": LOCK}}, ["agent_config['hook']"]),
    ],
)
def test_the_obstacle_is_named(fields, words):
    text = problem(ParallelTask("t1", **fields))
    assert text.startswith('task "t1": ')
    assert all(word in text for word in words), text
    assert "_thread.lock" in text


def test_what_can_be_sent_has_no_problem():
    assert problem(ParallelTask("t1", run=closing_over({"a": [1, 2]}), context={"x": 1})) is None
    assert problem(ParallelTask("t1", run="module:function")) is None


def test_a_live_agent_is_refused_even_where_it_could_be_sent():
    text = problem(ParallelTask("t1", agent=Client()), live=True)
    assert "live Client" in text
    assert "pass a factory" in text
    assert "agent.pool['lock']" in text
    assert "pass a factory" in problem(ParallelTask("t1", agent=3), live=True)


def test_a_task_comes_back_as_it_was():
    task, upstream = loaded(packed_task(ParallelTask("t1", run=closing_over(7), metadata=("a",)), {}))
    assert (task.name, task.run(None), task.metadata, upstream) == ("t1", 7, ("a",), {})


def test_a_result_before_it_that_cannot_be_sent():
    with pytest.raises(NotSerializableError, match='task "t1": a result it depends on'):
        packed_task(ParallelTask("t1", run=print), {"before": LOCK})


@dataclass
class Verdict:
    score: int


def test_answers_keep_their_types():
    assert loaded(packed_answer("t", Answer(output=Verdict(3)))).output == Verdict(3)


def test_an_answer_that_cannot_be_sent_says_what_it_is():
    with pytest.raises(NotSerializableError, match=r'task "t": its output, of type dict.*output\[\'x\'\]'):
        packed_answer("t", Answer(output={"x": LOCK}))


def test_what_is_left_is_sent_as_plain_data_where_it_must():
    left = Left([{"content": "hi", "raw": LOCK}], ["text"], {"db": LOCK}, "a", None, "a", None)
    back = unpacked_left(packed_left(left))
    assert back.chat_history[0]["content"] == "hi"
    assert "lock" in back.chat_history[0]["raw"]
    assert back.console == ["text"]


def test_an_answer_that_is_too_large_is_refused_and_not_put_on_the_wire():
    with pytest.raises(NotSerializableError, match='task "t": its output has 2 MB, and 1 MB are the most'):
        packed_answer("t", Answer(output=bytes(2_000_000)), largest=1_000_000)
