"""A schedule told what happens step by step, with a time of its own."""

import random

from ag2_parallel.core.commands import Finish, Settle, Start
from ag2_parallel.core.schedule import Schedule, ScheduledTask, SchedulePolicy
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.results import TaskError, TaskStatus

BROKEN = TaskError(type="ValueError", message="it broke")
BAD_KEY = TaskError(type="AuthenticationError", message="wrong key", kind="authentication")
MISSING = TaskError(type="ConfigurationError", message="no such agent", kind="configuration")


def thrice(initial=1.0, **fields):
    """Three attempts, steady waits of 1, 2, ... seconds."""
    return RetryPolicy(3, initial=initial, jitter=False, **fields)


def task(index, *depends_on, **fields):
    return ScheduledTask(index, depends_on=depends_on, **fields)


def skipped(index, stop_reason, because=None):
    return Settle(index, 0, TaskStatus.SKIPPED, stop_reason, None, None, because)


def succeeded(index, attempts=1):
    return Settle(index, attempts, TaskStatus.SUCCEEDED, None, None, "returned", None)


def failed(index, error=BROKEN, attempts=1, ended="returned"):
    return Settle(index, attempts, TaskStatus.FAILED, "error", error, ended, None)


def timed_out(index, reason="deadline", attempts=1, ended="stopping"):
    return Settle(index, attempts, TaskStatus.TIMED_OUT, reason, None, ended, None)


def cancelled(index, reason="cancelled", attempts=1):
    return Settle(index, attempts, TaskStatus.CANCELLED, reason, None, "stopping", None)


class Script:
    """Says things to a schedule at the time `now`; each returns the commands."""

    def __init__(self, max_workers=1, **policy):
        self.now = 0.0
        self.schedule = Schedule(SchedulePolicy(max_workers=max_workers, **policy), self.now, random.Random(0))

    def add(self, *tasks):
        return self.schedule.add(tasks, self.now)

    def succeeds(self, index, attempt=1):
        return self.schedule.ended(index, attempt, ok=True, error=None, how="returned", now=self.now)

    def fails(self, index, attempt=1, error=BROKEN):
        return self.schedule.ended(index, attempt, ok=False, error=error, how="returned", now=self.now)

    def unwinds(self, index, attempt=1):
        return self.schedule.ended(index, attempt, ok=False, error=BROKEN, how="unwound", now=self.now)

    def at(self, now):
        """Go to that time and tick."""
        self.now = now
        return self.schedule.tick(now)

    def refused(self, index, attempt=1):
        return self.schedule.refused(index, attempt, self.now)

    def alive(self, index, attempt=1):
        self.schedule.alive(index, attempt, self.now)

    def waiting(self, index, flag, attempt=1, *, on_person=False):
        self.schedule.waiting(index, attempt, flag, self.now, on_person=on_person)

    def stop(self, reason="interrupted", *, stop_running):
        return self.schedule.stop(reason, stop_running=stop_running, now=self.now)

    def close(self, stop_reason=None):
        return self.schedule.close(self.now, stop_reason)


def started(commands):
    """Which tasks the commands start, in order."""
    return [command.index for command in commands if isinstance(command, Start)]


def settled(commands):
    """What the commands settle."""
    return [command for command in commands if isinstance(command, Settle)]


def finish(commands):
    """The last command, which must be `Finish`."""
    assert isinstance(commands[-1], Finish)
    return commands[-1]
