"""Budgets and the breaker in the schedule."""

from schedule_script import BAD_KEY, BROKEN, Script, settled, skipped, started, succeeded, task, thrice

from ag2_parallel.core.commands import Ended, Finish, Recovered, Retry, Stop, Stopping, Tripped
from ag2_parallel.policies import Breaker
from ag2_parallel.results import TaskError, TaskStatus

SPENT = TaskError(type="TaskStopped", message="spent", kind="budget", retryable=False)


def of(kind, commands):
    return [command for command in commands if isinstance(command, kind)]


class TestCutOff:
    def test_the_attempt_is_stopped_and_its_task_fails_without_a_retry(self):
        run = Script()
        run.add(task(0, retry=thrice()), task(1))
        commands = run.schedule.cut_off(0, 1, SPENT, run.now)
        stop, settle, start = commands
        assert stop == Stop(0, 1, "budget")
        assert (settle.status, settle.stop_reason, settle.error) == (TaskStatus.FAILED, "budget", SPENT)
        assert started([start]) == [1], "its slot is free at once"

    def test_a_configuration_error_is_an_error(self):
        run = Script()
        run.add(task(0))
        error = TaskError(type="ConfigurationError", message="no price", kind="configuration")
        assert settled(run.schedule.cut_off(0, 1, error, run.now))[0].stop_reason == "error"

    def test_one_that_was_stopped_or_has_ended_is_left_alone(self):
        run = Script()
        run.add(task(0, timeout=1.0))
        run.at(1.0)
        assert run.schedule.cut_off(0, 1, SPENT, run.now) == []
        assert of(Ended, run.unwinds(0))
        assert run.schedule.cut_off(0, 1, SPENT, run.now) == []

    def test_one_that_unwinds_before_a_retry_is_left_alone(self):
        run = Script()
        run.add(task(0, attempt_timeout=1.0, retry=thrice()))
        assert of(Retry, run.at(1.0))
        assert run.schedule.cut_off(0, 1, SPENT, run.now) == []

    def test_with_fail_fast_it_stops_the_run(self):
        run = Script(handle_errors="fail_fast", max_workers=2)
        run.add(task(0), task(1))
        assert of(Stopping, run.schedule.cut_off(0, 1, SPENT, run.now)) == [Stopping("fail_fast", True)]


class TestExhausted:
    def test_a_run_in_which_nothing_waits_finishes_as_ever(self):
        run = Script(max_workers=2)
        run.add(task(0), task(1))
        assert run.schedule.exhaust("budget", run.now) == []
        run.succeeds(0)
        run.succeeds(1)
        assert run.close() == [Finish(None)]

    def test_a_task_that_waits_is_skipped_and_the_run_says_why(self):
        run = Script()
        run.add(task(0), task(1), task(2, 1))
        commands = run.schedule.exhaust("budget", run.now)
        assert commands == [Stopping("budget", False), skipped(1, "budget"), skipped(2, "budget")]
        assert succeeded(0) in run.succeeds(0), "what runs keeps what it had"
        assert run.close() == [Finish("budget")]

    def test_so_is_one_that_comes_later(self):
        run = Script(max_workers=4)
        run.add(task(0))
        run.schedule.exhaust("budget", run.now)
        assert Stopping("budget", False) in run.add(task(1))


class TestBreaker:
    def test_it_stops_before_the_next_start(self):
        run = Script(breaker=Breaker(2))
        run.add(*(task(n) for n in range(5)))
        assert started(run.fails(0, error=BAD_KEY)) == [1]
        commands = run.fails(1, error=BAD_KEY)
        assert started(commands) == []
        assert of(Tripped, commands)[0].waiting == 3
        assert "wrong key" in of(Tripped, commands)[0].cause
        assert [c.stop_reason for c in settled(commands)] == ["error", "breaker", "breaker", "breaker"]
        assert run.close() == [Finish("breaker")]

    def test_retries_count_once_settled(self):
        run = Script(breaker=Breaker(1), max_workers=2)
        run.add(task(0, retry=thrice()), task(1))
        assert not of(Tripped, run.fails(0))
        run.at(1.0)
        assert not of(Tripped, run.fails(0, 2))
        run.at(3.0)
        assert of(Tripped, run.fails(0, 3))

    def test_a_time_limit_counts_and_a_task_that_never_started_does_not(self):
        run = Script(breaker=Breaker(2))
        run.add(task(0, timeout=1.0), task(1, timeout=1.0), task(2, problem=BROKEN), task(3, problem=BROKEN), task(4))
        assert not of(Tripped, run.at(1.0))
        assert of(Tripped, run.at(2.0))

    def test_a_pause_lets_one_through_and_goes_on_when_that_succeeds(self):
        run = Script(max_workers=2, breaker=Breaker(2, "pause", 10.0))
        run.add(*(task(n) for n in range(6)))
        run.fails(0)
        commands = run.fails(1)
        assert started(commands) == []
        assert of(Tripped, commands)[0].pause == 10.0
        assert run.succeeds(2)[-1] == succeeded(2), "one that ran before starts nothing"
        assert run.at(9.9) == []
        assert started(run.at(10.0)) == [3]
        commands = run.fails(3)
        assert of(Tripped, commands)[0].pause == 20.0
        assert started(run.at(29.0)) == []
        assert started(run.at(30.0)) == [4]
        commands = run.succeeds(4)
        assert of(Recovered, commands)
        assert started(commands) == [5]

    def test_a_probe_that_is_tried_again_waits_for_the_next_pause(self):
        run = Script(breaker=Breaker(1, "pause", 10.0))
        run.add(task(0), task(1, retry=thrice()), task(2))
        run.fails(0)
        assert started(run.at(10.0)) == [1]
        commands = run.fails(1)
        assert of(Retry, commands)
        assert of(Tripped, commands)[0].pause == 20.0
        assert started(run.at(12.0)) == []
        assert started(run.at(30.0)) == [1]

    def test_a_probe_without_a_thread_is_let_through_again(self):
        run = Script(breaker=Breaker(1, "pause", 10.0))
        run.add(task(0), task(1))
        run.fails(0)
        run.at(10.0)
        run.refused(1)
        assert started(run.at(11.0)) == [1]
