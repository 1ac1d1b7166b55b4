"""A fake clock moves only when told to."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ag2_parallel.testing import FakeClock


def test_time_stands_still_until_it_is_advanced():
    clock = FakeClock()
    began, stamp = clock.monotonic(), clock.now()
    assert (clock.monotonic(), clock.now()) == (began, stamp)
    clock.advance(2.5)
    assert clock.monotonic() == began + 2.5
    assert clock.now() == stamp + timedelta(seconds=2.5)


def test_the_wall_time_jumps_alone():
    clock = FakeClock(10.0)
    stamp = clock.now()
    clock.jump_wall(-3600)
    assert clock.monotonic() == 10.0
    assert clock.now() == stamp - timedelta(hours=1)


def test_the_wall_time_is_aware_and_in_utc():
    assert FakeClock().now().tzinfo is UTC
    east = datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert FakeClock(now=east).now().isoformat() == "2026-05-01T10:00:00+00:00"
    with pytest.raises(ValueError, match="aware"):
        FakeClock(now=datetime(2026, 5, 1))  # noqa: DTZ001 - the naive time is the point


def test_time_does_not_go_back():
    with pytest.raises(ValueError, match="cannot advance"):
        FakeClock().advance(-1)
