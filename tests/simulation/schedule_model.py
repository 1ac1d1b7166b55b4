"""What a run must look like from outside, kept beside a schedule and checked with every command."""

from ag2_parallel.core.commands import Returned
from ag2_parallel.results import TaskStatus

INSIST_FOR = 0.25
STOP_REASONS = {"deadline", "attempt_deadline", "idle", "run_deadline", "cancelled", "fail_fast", "budget"}


ROUNDING = 1e-9
"""Seconds by which sums of times that were added up in another order may differ."""


class ScheduleModel:
    """Carries out commands and refuses those that break a rule."""

    def forget_everything(self):
        self.tasks, self.settled, self.started, self.first_start = {}, {}, {}, {}
        self.open = {}  # (index, attempt) -> running, stopping, insisted
        self.abandoned = set()
        self.over = {}  # (index, attempt) -> how it ended
        self.since = {}  # when it started or was stopped
        self.alive_at, self.waits = {}, {}
        self.still, self.still_since = {}, {}  # waits that do not count, and since when
        self.left_out, self.left_out_of_attempt = {}, {}  # seconds of them that are over
        self.not_before, self.stages = {}, []
        self.paused = self.closed = self.finished = False
        self.hold = self.reason = None
        self.held, self.probe, self.probe_at = False, None, 0.0
        self.row = []  # causes of the tasks that failed last, one after another
        self.exhausted = False

    # ---- carrying out commands, with what must hold for each

    def obey(self, commands):
        for command in commands:
            if self.finished:
                assert isinstance(command, Returned), "nothing comes after Finish"
            getattr(self, f"on_{type(command).__name__.lower()}")(command)

    def on_start(self, c):
        task, key = self.tasks[c.index], (c.index, c.attempt)
        assert not self.stages
        assert not self.paused
        if self.held:
            assert self.now >= self.probe_at - ROUNDING
            assert self.probe is None, "one at a time is let through"
            self.probe = c.index
        assert c.index not in self.settled
        assert self.running() < self.workers
        assert len(self.abandoned) < self.cap
        assert c.attempt == self.started.get(c.index, 0) + 1 <= task.retry.max_attempts
        assert c.index not in {index for index, _ in self.open}, "the attempt before still runs"
        assert all(self.settled[d].status is TaskStatus.SUCCEEDED for d in task.depends_on)
        assert self.now >= self.not_before.get(c.index, 0.0) - ROUNDING
        assert c.index == min(self.ready(), key=lambda i: (-self.tasks[i].priority, i)), "another one was first"
        self.started[c.index] = c.attempt
        self.first_start.setdefault(c.index, self.now)
        self.open[key], self.since[key], self.alive_at[key], self.waits[key] = "running", self.now, self.now, 0
        ends = [limit for limit in (self.task_limit(c.index), self.attempt_limit(key), self.run_timeout) if limit]
        assert (c.deadline is None) == (not ends)
        assert not ends or abs(c.deadline - min(ends)) < ROUNDING

    def on_stop(self, c):
        assert self.open[c.index, c.attempt] == "running"
        assert c.reason in STOP_REASONS
        self.check_that_time_is_up(c.index, (c.index, c.attempt), c.reason)
        self.stands_still((c.index, c.attempt), begins=None)
        self.open[c.index, c.attempt] = "stopping"
        self.since[c.index, c.attempt] = self.now

    def check_that_time_is_up(self, index, key, reason):
        task = self.tasks[index]
        match reason:
            case "deadline":
                assert self.now >= self.task_limit(index) - ROUNDING
            case "attempt_deadline":
                assert self.now >= self.since[key] + task.attempt_timeout - ROUNDING
            case "idle":
                assert not self.waits[key]
                assert self.now >= self.alive_at[key] + task.idle_timeout - ROUNDING
            case "run_deadline":
                assert self.now >= self.run_timeout - ROUNDING

    def on_insist(self, c):
        assert self.open[c.index, c.attempt] == "stopping"
        assert self.now >= self.since[c.index, c.attempt] + self.grace - ROUNDING
        self.open[c.index, c.attempt] = "insisted"
        self.since[c.index, c.attempt] = self.now

    def on_ended(self, c):
        key = (c.index, c.attempt)
        assert key not in self.over, "an attempt ends once"
        self.stands_still(key, begins=None)
        state = self.open.pop(key)
        self.over[key] = c.how
        if c.how == "abandoned":
            assert state == "insisted"
            assert self.now >= self.since[key] + INSIST_FOR - ROUNDING
            self.abandoned.add(key)

    def on_returned(self, c):
        self.abandoned.remove((c.index, c.attempt))

    def on_retry(self, c):
        assert not self.stages
        assert c.index not in self.settled
        assert c.attempt == self.started[c.index] < self.tasks[c.index].retry.max_attempts
        assert c.error.kind in {"agent", "rate_limit", "timeout"}
        assert c.delay >= (c.error.retry_after or 0.0)
        self.not_before[c.index] = self.now + c.delay
        if not self.count_waiting:
            self.left_out[c.index] = self.left_out.get(c.index, 0.0) + c.delay
        limit = self.task_limit(c.index)
        assert limit is None or self.now + c.delay < limit + ROUNDING

    def on_settle(self, c):
        assert c.index not in self.settled, "a task settles once"
        assert c.index in self.tasks
        key = (c.index, c.attempts)
        assert c.attempts == self.started.get(c.index, 0)
        state = self.open.get(key)
        assert state != "running", "its attempt is stopped or has ended before"
        assert c.ended == (self.over.get(key, "stopping") if c.attempts else None)
        assert (c.error is not None) == (c.status is TaskStatus.FAILED)
        assert (c.because is not None) == (c.stop_reason == "dependency")
        if c.because is not None:
            assert c.because in self.tasks[c.index].depends_on
            assert self.settled[c.because].status is not TaskStatus.SUCCEEDED
        match c.status:
            case TaskStatus.SKIPPED:
                assert c.attempts == 0
            case TaskStatus.CANCELLED:
                assert self.stages[-1] is True
            case TaskStatus.TIMED_OUT:
                assert c.stop_reason in {"deadline", "attempt_deadline", "idle"}
                assert c.stop_reason != "deadline" or self.now >= self.task_limit(c.index) - ROUNDING
            case TaskStatus.SUCCEEDED:
                assert c.stop_reason is None
        self.settled[c.index] = c
        if c.attempts and not self.stages and not self.held:
            cause = c.error.kind if c.error else c.stop_reason
            self.row = [] if cause is None else [*self.row, cause] if self.row[-1:] == [cause] else [cause]

    def on_tripped(self, c):
        assert not self.stages
        assert c.waiting == sum(not self.started.get(index) for index in self.tasks.keys() - self.settled.keys())
        if self.held:
            assert self.probe is not None
            assert c.pause == min(2 * self.pause_length, 600.0)
        else:
            assert c.failures == len(self.row) == self.breaker.same_failures
            assert c.pause == (None if self.breaker.action == "stop" else self.breaker.probe_after)
        self.held, self.probe, self.row, self.pause_length = True, None, [], c.pause
        self.probe_at = float("inf") if c.pause is None else self.now + c.pause

    def on_recovered(self, c):
        assert self.held
        assert self.settled[self.probe].status is TaskStatus.SUCCEEDED
        self.held, self.probe = False, None

    def on_stopping(self, c):
        assert self.stages in ([], [False])
        assert c.stop_running or not self.stages
        self.stages.append(c.stop_running)
        self.reason = self.reason or c.reason
        assert (c.reason == "breaker") <= self.held

    def on_finish(self, c):
        assert self.closed
        assert not self.open
        assert len(self.settled) == len(self.tasks), "nothing is lost"
        assert c.stop_reason == self.reason
        self.finished = True

    # ---- the model

    def running(self):
        return sum(state == "running" for state in self.open.values())

    def ready(self):
        busy = {index for index, _ in self.open}
        return [
            index
            for index, task in self.tasks.items()
            if index not in self.settled
            and index not in busy
            and self.not_before.get(index, 0.0) <= self.now
            and all(d in self.settled and self.settled[d].status is TaskStatus.SUCCEEDED for d in task.depends_on)
        ]

    def task_limit(self, index):
        timeout = self.tasks[index].timeout
        if timeout is None or index not in self.first_start:
            return None
        return self.first_start[index] + timeout + self.left_out.get(index, 0.0)

    def attempt_limit(self, key):
        timeout = self.tasks[key[0]].attempt_timeout
        return None if timeout is None else self.since[key] + timeout + self.left_out_of_attempt.get(key, 0.0)

    def stands_still(self, key, *, begins):
        """A wait that does not count begins, ends, or (None) ends with its attempt."""
        if begins:
            if not self.still.get(key):
                self.still_since[key] = self.now
            self.still[key] = self.still.get(key, 0) + 1
        elif self.still.get(key):
            self.still[key] = self.still[key] - 1 if begins is False else 0
            if not self.still[key]:
                waited = self.now - self.still_since[key]
                self.left_out[key[0]] = self.left_out.get(key[0], 0.0) + waited
                self.left_out_of_attempt[key] = self.left_out_of_attempt.get(key, 0.0) + waited

    def alarms(self):
        """Every moment at which the schedule has to do something by itself."""
        for key, state in self.open.items():
            if state == "running":
                yield None if self.still.get(key) else self.attempt_limit(key)
                idle = self.tasks[key[0]].idle_timeout
                yield None if idle is None or self.waits[key] else self.alive_at[key] + idle
            else:
                yield self.since[key] + (self.grace if state == "stopping" else INSIST_FOR)
        for index in self.first_start.keys() - self.settled.keys():
            yield None if any(self.still.get(key) for key in self.open if key[0] == index) else self.task_limit(index)
            if index not in {i for i, _ in self.open} and self.not_before.get(index, 0.0) > self.now:
                yield self.not_before[index]
        if not self.finished:
            all_decided = self.closed and len(self.settled) == len(self.tasks)
            yield self.run_timeout if not (self.stages and self.stages[-1]) and not all_decided else None
            yield self.hold
            yield self.probe_at if self.held and not self.stages and self.probe_at > self.now else None
