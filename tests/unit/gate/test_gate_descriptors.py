"""No more calls at once than the process may open files for."""

import pytest

from ag2_parallel.gate.admission import Admission, Route
from ag2_parallel.gate.descriptors import DescriptorLimit, allowed_files, open_files
from ag2_parallel.gate.limits import NOTHING


def granted(limit, calls):
    admission, route = Admission(), Route((limit,))
    tickets = [admission.ask(route, NOTHING, None, 0.0) for _ in range(calls)]
    return admission, tickets, [ticket.state for ticket in tickets].count("granted")


def test_three_quarters_of_the_free_files_are_for_calls():
    limit = DescriptorLimit(lambda: 1024, others=24)
    assert granted(limit, 1000)[2] == 750


def test_others_wait_for_a_file_and_the_run_is_warned_once():
    limit = DescriptorLimit(lambda: 30, others=10)
    run, another = object(), object()
    assert limit.warning(run) is None
    admission, tickets, going = granted(limit, 20)
    assert going == 15
    assert "30 files" in limit.warning(run)
    assert limit.warning(run) is None
    admission.done(tickets[0], None, 1.0)
    assert [ticket.state for ticket in admission.advance(1.0)] == ["granted"]
    admission.advance(1.0)
    assert limit.warning(run) is None
    assert "15 model calls" in limit.warning(another)


def test_a_limit_that_is_raised_lets_more_go():
    allowed = [30]
    limit = DescriptorLimit(lambda: allowed[0], others=10)
    admission, _, going = granted(limit, 40)
    assert going == 15
    allowed[0] = 50
    assert len(admission.advance(1.0)) == 15


@pytest.mark.parametrize("allowed", [None, 1_048_576])
def test_where_there_is_plenty_nothing_waits(allowed):
    limit = DescriptorLimit(lambda: allowed, others=10)
    assert granted(limit, 2000)[2] == 2000
    assert not limit.hit


def test_a_few_calls_go_even_where_nothing_is_left():
    assert granted(DescriptorLimit(lambda: 10, others=500), 20)[2] == 4


def test_the_system_is_asked():
    assert allowed_files() is None or allowed_files() > 0
    before = open_files()
    with open(__file__):
        assert open_files() in {before + 1, 0}
