"""Field reports whose tasks can go to another process, once more with worker processes."""

import agents
import pytest
from test_callers import test_an_endless_async_source, test_run_inside_a_running_loop_may_be_repeated_and_mixed
from test_exits_and_limits import (
    test_limits_hold_in_any_thread,
    test_no_limit_is_none,
    test_signals_in_an_agents_code_fail_with_a_hint,
    test_stuck_agents_do_not_keep_the_process,
    test_tool_errors_carry_the_whole_traceback,
)
from test_human_input import (
    test_a_function_that_fails_is_its_tasks_failure,
    test_nobody_reads_standard_input,
    test_the_users_function_is_asked_one_question_at_a_time,
)
from test_limits_of_servers import TestTooMuch as TooMuch
from test_limits_of_servers import (
    test_no_more_calls_than_workers,
    test_waiting_for_a_limit_may_be_left_out_of_the_time,
)
from test_text import test_every_text_that_can_be_sent_arrives_as_it_is, test_half_a_pair_from_a_tool_is_not_sent_again
from test_tools_and_teams import TestTools as Tools

pytestmark = pytest.mark.usefixtures("no_threads_left")

__all__ = [
    "test_a_function_that_fails_is_its_tasks_failure",
    "test_an_endless_async_source",
    "test_every_text_that_can_be_sent_arrives_as_it_is",
    "test_half_a_pair_from_a_tool_is_not_sent_again",
    "test_limits_hold_in_any_thread",
    "test_no_limit_is_none",
    "test_no_more_calls_than_workers",
    "test_nobody_reads_standard_input",
    "test_run_inside_a_running_loop_may_be_repeated_and_mixed",
    "test_signals_in_an_agents_code_fail_with_a_hint",
    "test_stuck_agents_do_not_keep_the_process",
    "test_the_users_function_is_asked_one_question_at_a_time",
    "test_tool_errors_carry_the_whole_traceback",
    "test_waiting_for_a_limit_may_be_left_out_of_the_time",
]


@pytest.fixture(autouse=True)
def in_processes(monkeypatch):
    monkeypatch.setattr(agents, "BACKEND", "process")
    monkeypatch.setenv("AG2_PARALLEL_FIELD_BACKEND", "process")  # for the programs that tests start


@pytest.mark.parametrize("hint", range(2))
def test_all_succeed_without_a_storm(line, hint):
    TooMuch().test_all_succeed_without_a_storm(line, hint, soak=False)


class TestOneTool(Tools):
    test_one_tool_that_raises_beside_good_ones = None  # many forms, which are no matter of where they run
    test_what_is_no_exception_is_the_tasks_failure_and_kills_no_worker = None
