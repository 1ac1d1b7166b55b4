"""Counting and pricing."""

import threading

import pytest

from ag2_parallel.gate.meter import UNNAMED_MODEL, Meter
from ag2_parallel.gate.prices import PriceTable, fixed_price
from ag2_parallel.usage import Usage

TWO_FOUR = fixed_price((2.0, 4.0))


def two_four(_model, _endpoint):
    return TWO_FOUR


def unknown(_model, _endpoint):
    return None


def never(*_):
    raise AssertionError("nothing to estimate")


def test_the_usage_blocks_of_both_protocols():
    meter = Meter()
    meter.open("a", two_four).answer(
        {"prompt_tokens": 1000, "completion_tokens": 500, "prompt_tokens_details": {"cached_tokens": 100}}, never
    )
    meter.open("a", two_four).answer(
        {"input_tokens": 1000, "output_tokens": 500, "input_tokens_details": {"cached_tokens": 10}}, never
    )
    usage = meter.usage()
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (2000, 1000, 110)
    assert (usage.calls, usage.unreported_calls) == (2, 0)
    assert usage.cost == pytest.approx(8.0)


def test_usage_is_filed_by_model_and_adds_up():
    meter = Meter()
    for model in ("a", "b", "a", None):
        meter.open(model, two_four).answer({"prompt_tokens": 10}, never)
    usage = meter.usage()
    assert {model: part.prompt_tokens for model, part in usage.by_model.items()} == {
        "a": 20,
        "b": 10,
        UNNAMED_MODEL: 10,
    }
    assert Usage.total(usage.by_model.values()).prompt_tokens == usage.prompt_tokens == 40


def test_an_unknown_price_is_none_and_never_nothing():
    meter = Meter()
    meter.open("a", two_four).answer({"prompt_tokens": 10}, never)
    assert meter.usage().cost is not None
    meter.open("b", unknown).answer({"prompt_tokens": 10}, never)
    assert meter.usage().cost is None
    assert meter.usage().by_model["a"].cost == pytest.approx(0.02)
    assert meter.usage().by_model["b"].cost is None


def test_calls_that_never_came_to_anything_cost_nothing():
    meter = Meter()
    meter.open("b", unknown).retried += 3
    assert (meter.usage().cost, meter.usage().retried_calls) == (0.0, 3)
    assert Meter().usage() == Usage()


def test_calls_without_a_usage_block_are_counted_apart():
    meter = Meter()
    meter.open("a", two_four).answer(None, lambda: 25)
    cut = meter.open("a", two_four)
    cut.unreport(5)
    usage = meter.usage()
    assert (usage.calls, usage.unreported_calls, usage.estimated_tokens, usage.total_tokens) == (1, 2, 30, 0)


@pytest.mark.parametrize("block", [{}, {"prompt_tokens": None}, {"prompt_tokens": "9"}, {"prompt_tokens": True}])
def test_numbers_that_are_none_count_nothing(block):
    meter = Meter()
    meter.open("a", unknown).answer({**block, "prompt_tokens_details": None}, never)
    assert meter.usage().total_tokens == 0


def test_a_known_model_has_its_makers_price():
    table = PriceTable()
    price = table("gpt-4o-mini", "https://api.openai.com")
    assert price(1_000_000, 0, 1_000_000) == pytest.approx(0.75)
    assert price(1_000_000, 1_000_000, 0) == pytest.approx(0.075)
    assert table("gpt-4o-mini", "http://127.0.0.1:8000")(1_000_000, 0, 0) == pytest.approx(0.15)
    assert table("gpt-4o-mini", "https://api.openai.com") is price


def test_a_price_with_tiers_depends_on_the_call():
    price = PriceTable()("gemini-2.5-pro", "https://generativelanguage.googleapis.com")
    assert price(500_000, 0, 0) > 5 * price(100_000, 0, 0) * 1.5


def test_a_model_that_nobody_knows_has_no_price():
    assert PriceTable()("no-such-model-at-all", "http://127.0.0.1:8000") is None


def test_the_table_is_loaded_once_and_beside():
    done = threading.Event()
    started = []

    def spawn(work):
        started.append(work)
        threading.Thread(target=lambda: (work(), done.set()), daemon=True).start()

    table = PriceTable()
    table.load(spawn)
    table.load(spawn)
    assert done.wait(30)
    assert len(started) == 1


@pytest.mark.parametrize("number", [float("inf"), float("nan"), -5, True, "7"])
def test_what_is_no_number_of_tokens_counts_as_none(number):
    meter = Meter()
    meter.open("a", two_four).answer({"prompt_tokens": number, "completion_tokens": 3}, never)
    assert (meter.usage().prompt_tokens, meter.usage().completion_tokens) == (0, 3)
