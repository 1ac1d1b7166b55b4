"""A million tasks through the schedule, lazily fed, in simulated time.

Durations, failures, priorities, limits, retries and dependencies are drawn at random. Run it with the
number of tasks as its argument; it says how long it took and by how much memory grew.
"""

import heapq
import random
import resource
import sys
import time
from collections import Counter, deque

from ag2_parallel.core.commands import Ended, Finish, Insist, Retry, Returned, Settle, Start, Stop, Stopping
from ag2_parallel.core.schedule import Schedule, ScheduledTask, SchedulePolicy
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.results import TaskError, TaskStatus

RETRY = RetryPolicy(3, initial=0.5)
PLAIN = RetryPolicy(1)
BROKEN = TaskError(type="ValueError", message="it broke")
BAD_KEY = TaskError(type="AuthenticationError", message="wrong key", kind="authentication")


class World:
    """Carries out what the schedule says, in a time of its own."""

    def __init__(self, tasks, *, seed=0, max_workers=64):
        self.rng = random.Random(seed)
        self.total = tasks
        self.now = 0.0
        self.schedule = Schedule(SchedulePolicy(max_workers=max_workers, grace=1.0), 0.0, self.rng)
        self.max_workers = max_workers
        self.fed = 0
        self.endings = []  # (time, index, attempt, how)
        self.statuses = Counter()
        self.seen = Counter()
        self.stopped = set()
        self.finished = False
        self.largest = 0

    def new_task(self):
        rng, index = self.rng, self.fed
        self.fed += 1
        draw = rng.random()
        return ScheduledTask(
            index,
            depends_on=(rng.randrange(index),) if index and draw < 0.1 else (),
            priority=rng.randrange(3),
            timeout=3600.0 if draw < 0.5 else 8.0,
            attempt_timeout=4.0 if draw > 0.8 else None,
            idle_timeout=3.0 if 0.4 < draw < 0.6 else None,
            retry=RETRY if draw < 0.3 else PLAIN,
        )

    def room(self):
        """Read ahead as the feeder does: twice as many tasks as may run."""
        return 2 * self.max_workers - (self.schedule.added - self.schedule.settled)

    def feed(self):
        while self.fed < self.total and (room := min(self.room(), self.total - self.fed)):
            self.obey(self.schedule.add([self.new_task() for _ in range(room)], self.now))
            if self.fed == self.total:
                self.obey(self.schedule.close(self.now))

    def obey(self, commands):
        queue = deque(commands)
        while queue:
            command = queue.popleft()
            kind = type(command)
            self.seen[kind] += 1
            if kind is Start:
                if self.rng.random() < 0.00001:
                    queue.extend(self.schedule.refused(command.index, command.attempt, self.now))
                    queue.extend(self.schedule.set_max_workers(self.max_workers, self.now))
                    continue
                takes = self.rng.expovariate(1.0)
                heapq.heappush(self.endings, (self.now + takes, command.index, command.attempt))
            elif kind is Settle:
                self.statuses[command.status] += 1
            elif kind is Finish:
                self.finished = True

    def run(self):
        self.feed()
        while not self.finished:
            wake = self.schedule.next_wake()
            ending = self.endings[0][0] if self.endings else None
            if ending is not None and (wake is None or ending <= wake):
                self.now, index, attempt = heapq.heappop(self.endings)
                self.obey(self.end(index, attempt))
            else:
                assert wake is not None, "nothing runs and nothing is timed, but the run is not finished"
                self.now = max(self.now, wake)
                self.obey(self.schedule.tick(self.now))
            self.largest = max(self.largest, len(self.schedule._backlog.records) + self.schedule._timers.held)
            self.feed()
        return self

    def end(self, index, attempt):
        draw = self.rng.random()
        if draw < 0.3:
            self.schedule.alive(index, attempt, self.now)
        error = None if draw < 0.85 else BROKEN if draw < 0.98 else BAD_KEY
        return self.schedule.ended(index, attempt, ok=error is None, error=error, how="returned", now=self.now)


def check(world):
    """What must hold at the end of every run."""
    assert sum(world.statuses.values()) == world.total == world.schedule.settled
    assert world.schedule.peak_running <= world.max_workers
    assert world.seen[Finish] == 1
    assert set(world.seen) <= {Start, Stop, Insist, Ended, Returned, Retry, Settle, Stopping, Finish}
    assert all(world.statuses[status] for status in (TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.SKIPPED))


def main(tasks):
    """Run it and say what it cost."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    world = World(tasks).run()
    took = time.perf_counter() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    check(world)
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(world.statuses.items()))
    sys.stdout.write(
        f"{tasks:,} tasks in {took:.1f} s ({took / tasks * 1e6:.1f} microseconds each), memory grew by {grown:.1f} MB,"
        f" at most {world.largest:,} records and alarms held\n{counts}\n"
        f"{world.now:,.0f} simulated seconds, {world.seen[Retry]:,} retries, {world.seen[Stop]:,} stops,"
        f" {world.seen[Returned]:,} came back after they were abandoned\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
