"""What a RateLimit may be."""

import pytest

from ag2_parallel import ConfigurationError, RateLimit


def test_short_names_are_for_a_minute():
    assert RateLimit(requests_per_minute=60, tokens_per_minute=1000) == RateLimit(60, 1000, 60.0)


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"requests": 0}, {"requests": -1}, {"requests": True}, {"tokens": float("nan")}, {"requests": 1, "per": 0},
        {"concurrent": 0}, {"concurrent": 1.5}, {"requests": 1, "requests_per_minute": 1},
        {"tokens_per_minute": 5, "per": 1}, {"requests": 1, "model": None}, {"requests": "many"},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(fields):
    with pytest.raises(ConfigurationError, match="RateLimit"):
        RateLimit(**fields)


def test_limits_are_values_and_say_where_they_hold():
    limit = RateLimit(concurrent=4, model="gpt-*", group="night")
    assert {limit, RateLimit(concurrent=4, model="gpt-*", group="night")} == {limit}
    assert limit.where() == " (model gpt-*, group night)"
    assert RateLimit(requests=1).where() == ""
