"""M8: a sample runs, its forecast holds what the run then takes, and nothing is paid for twice."""

import random
import time

import pytest

from ag2_parallel import Budget, ConfigurationError, ParallelAgentRunner, ParallelTask, RateLimit, tasks_from_rows
from ag2_parallel.testing import Fault, ModelServer, Reply

pytestmark = pytest.mark.usefixtures("no_threads_left")

PRICE = [1.0, 2.0]
COUNT = 48


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "max_workers": 6, "model_retry": 1, **options})


def chats(count=COUNT, **fields):
    return [ParallelTask(f"t{n}", f"case {n}", **fields) for n in range(count)]


def slow_and_quick():
    """Answers a case after 0.5 to 1.1 seconds, with 50 to 100 tokens."""

    def answer(request):
        case = random.Random(request.last_text)
        time.sleep(case.uniform(0.5, 1.1))
        return Reply("done", usage=(case.randrange(40, 80), case.randrange(10, 20)))

    return answer


def holds(interval, value, spare=1.0):
    return interval.low / spare <= value <= interval.high * spare


def test_the_intervals_hold_what_the_run_then_takes():
    with ModelServer(slow_and_quick()) as server:
        with runner(llm_config=server.llm_config(price=PRICE)) as warm:
            forecast = warm.forecast(chats(), sample=10)
            assert server.ledger.count == 10
            results = warm.run(chats(), known=forecast.results)
        asked = [request.body["messages"][-1]["content"] for request in server.ledger.requests]
    assert results.ok
    assert sorted(asked) == sorted(f"case {n}" for n in range(COUNT))
    assert (forecast.tasks, forecast.sampled, forecast.failed, forecast.left) == (COUNT, 10, 0, COUNT - 10)
    assert holds(forecast.tokens, results.usage.total_tokens), (forecast.tokens, results.usage)
    assert holds(forecast.cost, results.usage.cost), (forecast.cost, results.usage)
    # A machine that other work slows down during the sample alone is no matter of the forecast.
    assert holds(forecast.wall_left, results.metrics["wall"], spare=1.25), (forecast.wall_left, results.metrics)
    assert 6 < forecast.knee <= COUNT - 10
    assert [result.index for result in results.values()] == list(range(COUNT))
    assert f"forecast for {COUNT} tasks, 6 at once, from a sample of 10" in str(forecast)


def test_a_rate_limit_is_a_bound_that_more_workers_do_not_break():
    with ModelServer(Reply("x", usage=(6, 4)), latency=0.02) as server:
        limited = runner(llm_config=server.llm_config(), rate_limits=[RateLimit(requests=20, per=1)])
        forecast = limited.forecast(chats(), sample=5)
    assert forecast.wall_left.low >= (COUNT - 5) / 20
    assert forecast.knee < 20


def test_a_price_that_is_not_known_is_said():
    with ModelServer("x") as server:
        forecast = runner(llm_config=server.llm_config()).forecast(chats(8), sample=2)
    assert forecast.cost is None
    assert "cost    not known: there is no price for scripted" in str(forecast)
    assert forecast.to_dict()["cost"] is None


@pytest.mark.parametrize("again", [True, False], ids=["the runner's rule", "a journal"])
def test_a_sample_that_failed_is_not_paid_for_twice_either(tmp_path, again):
    options = {} if again else {"journal": tmp_path / "runs.db"}
    with ModelServer("x") as server:
        server.fail_next(Fault.status(400, message="no"), times=2)
        asking = runner(llm_config=server.llm_config(), **options)
        forecast = asking.forecast(chats(10), sample=4, run_id="mine")
        results = asking.run(chats(10), run_id="mine", known=forecast.results)
        assert server.ledger.count == 10
    assert (forecast.failed, len(results.failed), len(results.succeeded)) == (2, 2, 8)
    assert {result.name for result in results.failed} <= set(forecast.results)


def test_a_source_that_can_be_read_again_is_counted(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("text\n" + "".join(f"case {n}\n" for n in range(200)))
    with ModelServer("x") as server:
        mapped = tasks_from_rows({"llm_config": server.llm_config()}, path, "About {{ text }}")
        forecast = runner().forecast(mapped, sample=6)
        results = runner(max_workers=16).run(mapped, known=forecast.results)
        assert server.ledger.count == 200
    assert (forecast.tasks, forecast.sampled) == (200, 6)
    assert results.ok
    with pytest.raises(ConfigurationError, match="an iterator is read once only"):
        runner().forecast(iter(chats(3)))
    with pytest.raises(ConfigurationError, match="sample: 0 is not a whole number from 1"):
        runner().forecast(chats(3), sample=0)


def test_what_the_sample_used_counts_in_the_budget():
    with ModelServer(Reply("x", usage=(60, 40))) as server:
        limited = runner(llm_config=server.llm_config(), budget=Budget(max_tokens=1000), max_workers=1)
        forecast = limited.forecast(chats(40), sample=4)
        results = limited.run(chats(40), known=forecast.results)
        assert server.ledger.count == 10
    assert results.stop_reason == "budget"
    assert results.usage.total_tokens == 1000


def test_dependants_get_the_results_that_are_known():
    tasks = [
        ParallelTask("a", run=lambda ctx: 1),
        ParallelTask("b", run=lambda ctx: ctx.upstream["a"].output + 1, depends_on=["a"]),
    ]
    forecast = runner().forecast(tasks, sample=1)
    assert list(forecast.results) == ["a"]
    assert runner().run(tasks, known=forecast.results)["b"].output == 2


def test_where_no_task_of_the_sample_ran_nothing_is_forecast():
    with pytest.raises(ConfigurationError, match="no task of the sample ran: there are no tasks"):
        runner().forecast([])
