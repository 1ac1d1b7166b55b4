"""The schedule against a plain model of what must hold, whatever happens in whatever order."""

import random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from schedule_model import INSIST_FOR, ROUNDING, ScheduleModel

from ag2_parallel.core.schedule import Schedule, ScheduledTask, SchedulePolicy
from ag2_parallel.policies import Breaker, RetryPolicy
from ag2_parallel.results import TaskError, TaskStatus

PATIENCE = 20.0
PROBLEM = TaskError(type="ConfigurationError", message="no such agent", kind="configuration")
ERRORS = {
    kind: TaskError(type="SomeError", message=kind, kind=kind, retryable=kind != "tool", retry_after=after)
    for kind, after in {"agent": None, "rate_limit": 2.0, "authentication": None, "tool": None}.items()
}

SPENT = TaskError(type="TaskStopped", message="spent", kind="budget", retryable=False)

limits = st.sampled_from([None, None, 0.5, 1.0, 3.0])
specs = st.fixed_dictionaries({
    "priority": st.integers(-1, 1),
    "timeout": limits,
    "attempt_timeout": limits,
    "idle_timeout": limits,
    "attempts": st.integers(1, 3),
    "problem": st.integers(0, 19).map(lambda n: PROBLEM if n == 0 else None),
})  # fmt: skip


class Machine(ScheduleModel, RuleBasedStateMachine):
    @initialize(
        workers=st.integers(1, 3),
        strategy=st.sampled_from(["collect", "fail_fast", "ignore"]),
        grace=st.sampled_from([0.0, 0.5]),
        cap=st.sampled_from([None, 1, 2]),
        run_timeout=st.sampled_from([None, None, 6.0]),
        breaker=st.sampled_from([None, None, Breaker(2), Breaker(2, "pause", 2.0), Breaker(1, "pause", 500.0)]),
        count_waiting=st.booleans(),
        starts_at_once=st.sampled_from([None, 1, 2]),
        seed=st.integers(0, 100),
    )
    def begin(self, workers, strategy, grace, cap, run_timeout, breaker, count_waiting, starts_at_once, seed):
        self.now = 0.0
        self.workers, self.grace, self.run_timeout = workers, grace, run_timeout
        self.count_waiting = count_waiting
        self.cap = max(8, workers) if cap is None else cap
        self.breaker = breaker
        self.fail_fast = strategy == "fail_fast"
        policy = SchedulePolicy(
            max_workers=workers, handle_errors=strategy, grace=grace, max_abandoned=cap, run_timeout=run_timeout,
            abandoned_patience=PATIENCE, insist_for=INSIST_FOR, breaker=breaker, count_waiting=count_waiting,
            starts_at_once=starts_at_once,
        )  # fmt: skip
        self.schedule = Schedule(policy, 0.0, random.Random(seed))
        self.forget_everything()

    # ---- what happens

    @precondition(lambda self: not self.closed)
    @rule(batch=st.lists(specs, max_size=5), data=st.data())
    def add(self, batch, data):
        first = max(self.tasks, default=-1) + 1 + data.draw(st.integers(0, 1), label="gap")
        order = data.draw(st.permutations(range(len(batch))), label="order")
        new = []
        for position, spec in enumerate(batch):
            before = [*self.tasks, *(first + n for n in range(len(batch)) if order[n] < order[position])]
            chosen = st.lists(st.sampled_from(before), max_size=2) if before else st.just([])
            retry = RetryPolicy(spec["attempts"], initial=0.5)
            fields = {
                name: spec[name] for name in ("priority", "timeout", "attempt_timeout", "idle_timeout", "problem")
            }
            depends_on = tuple(data.draw(chosen, label="depends_on"))
            new.append(ScheduledTask(first + position, depends_on=depends_on, retry=retry, **fields))
        self.tasks.update((task.index, task) for task in new)
        self.obey(self.schedule.add(new, self.now))
        assert all(task.index in self.settled for task in new if task.problem or self.stages)

    @precondition(lambda self: self.open or self.abandoned)
    @rule(data=st.data(), kind=st.sampled_from([None, None, *ERRORS]))
    def end(self, data, kind):
        key = data.draw(st.sampled_from(sorted({**self.open, **dict.fromkeys(self.abandoned)})), label="attempt")
        state = self.open.get(key)
        was = self.settled.get(key[0])
        error = None if kind is None else ERRORS[kind]
        ok, how = error is None, "returned" if state == "running" else "unwound"
        self.obey(self.schedule.ended(*key, ok=ok, error=error, how=how, now=self.now))
        if state == "running" and ok:
            assert self.settled[key[0]].status is TaskStatus.SUCCEEDED
        elif state == "running" and kind in {"authentication", "tool"}:
            assert self.settled[key[0]].status is TaskStatus.FAILED
        elif was is not None:
            assert self.settled[key[0]] is was, "a late answer changes nothing"

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def refuse(self, data):
        key = data.draw(st.sampled_from([key for key, state in self.open.items() if state == "running"]))
        del self.open[key]
        self.started[key[0]] -= 1
        if not self.started[key[0]]:
            del self.first_start[key[0]], self.started[key[0]]
        self.workers = max(1, self.running())
        if not self.running() and not self.stages and self.hold is None:
            self.hold = self.now + 1.0
        if self.probe == key[0]:
            self.probe = None
        self.obey(self.schedule.refused(*key, self.now))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cut_off(self, data):
        key = data.draw(st.sampled_from(sorted(self.open)))
        ran = self.open[key] == "running"
        was = self.settled.get(key[0])
        self.obey(self.schedule.cut_off(*key, SPENT, self.now))
        settle = self.settled.get(key[0])
        assert (settle.status, settle.stop_reason) == (TaskStatus.FAILED, "budget") if ran else settle is was

    @rule()
    def exhaust(self):
        self.exhausted = True
        self.obey(self.schedule.exhaust("budget", self.now))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), waits=st.sampled_from([None, True, False]), on_person=st.booleans())
    def alive_or_waiting(self, data, waits, on_person):
        key = data.draw(st.sampled_from(sorted(self.open)))
        if waits is None:
            self.alive_at[key] = self.now
            self.schedule.alive(*key, self.now)
            return
        if waits:
            self.waits[key] += 1
        else:
            self.waits[key] = max(0, self.waits[key] - 1)
            self.alive_at[key] = self.now
        if not self.count_waiting and not on_person and self.open[key] == "running":
            self.stands_still(key, begins=waits)
        self.schedule.waiting(*key, waits, self.now, on_person=on_person)

    @rule(seconds=st.sampled_from([0.0, 0.25, 1.0, 5.0]))
    def time_passes(self, seconds):
        self.advance_to(self.now + seconds)

    @precondition(lambda self: self.schedule.next_wake() is not None)
    @rule()
    def until_next_wake(self):
        self.advance_to(max(self.now, self.schedule.next_wake()))

    def advance_to(self, now):
        self.now = now
        if self.hold is not None and now >= self.hold:
            self.hold = None
        self.obey(self.schedule.tick(now))
        due = [when for when in self.alarms() if when is not None and when <= now]
        assert all(0 < now - when < ROUNDING for when in due), "what was due is done"

    @rule(stop_running=st.booleans())
    @precondition(lambda self: self.tasks)
    def stop(self, stop_running):
        self.obey(self.schedule.stop("interrupted", stop_running=stop_running, now=self.now))
        if not self.finished:
            assert self.stages
            assert not stop_running or not self.running()
            assert len(self.settled) == len(self.tasks) - self.running()

    @rule(flag=st.booleans())
    def pause_or_resume(self, flag):
        self.paused = flag
        self.obey(self.schedule.pause(self.now) if flag else self.schedule.resume(self.now))

    @rule(count=st.integers(1, 4))
    def set_max_workers(self, count):
        self.workers = count
        self.obey(self.schedule.set_max_workers(count, self.now))

    @precondition(lambda self: not self.closed and len(self.tasks) > 3)
    @rule()
    def close(self):
        self.closed = True
        self.obey(self.schedule.close(self.now))

    # ---- what holds between any two happenings

    @invariant()
    def counts_agree(self):
        schedule = self.schedule
        assert schedule.running == self.running()
        assert schedule.abandoned == len(self.abandoned)
        assert (schedule.added, schedule.settled) == (len(self.tasks), len(self.settled))
        assert schedule.waiting_count == len(self.tasks) - len(self.settled) - self.running()
        assert schedule.finished is self.finished
        assert all(schedule.status_of(i) == (self.settled[i].status if i in self.settled else None) for i in self.tasks)
        assert sum(schedule.counts().values()) == len(self.settled)

    @invariant()
    def no_slot_is_idle(self):
        held = self.held and (self.probe is not None or self.now < self.probe_at)
        free = not held and not self.stages and not self.paused and self.hold is None and len(self.abandoned) < self.cap
        if free and self.running() < self.workers and not (self.run_timeout and self.now >= self.run_timeout):
            assert not self.ready() or self.goes_on_at_once()

    def goes_on_at_once(self):
        return (self.schedule.next_wake() or 0.0) <= self.now

    @invariant()
    def an_exhausted_run_stops_when_a_task_waits(self):
        if self.exhausted and not self.stages:
            assert self.schedule.waiting_count == 0

    @invariant()
    def one_cause_trips_the_breaker(self):
        assert self.breaker is None or self.held or len(self.row) < self.breaker.same_failures or self.stages

    @invariant()
    def wakes_in_time(self):
        wake = self.schedule.next_wake()
        timed = [when for when in self.alarms() if when is not None]
        if timed:
            assert wake is not None
            assert wake <= min(timed) + ROUNDING
        elif not any(self.waits[key] for key in self.open) and len(self.abandoned) < self.cap and not self.stages:
            assert wake is None or self.goes_on_at_once()

    @invariant()
    def a_bad_end_stops_a_fail_fast_run(self):
        if self.fail_fast and {s.status for s in self.settled.values()} & {TaskStatus.FAILED, TaskStatus.TIMED_OUT}:
            assert self.stages

    def teardown(self):
        if not hasattr(self, "schedule"):
            return
        self.pause_or_resume(flag=False)
        if not self.closed:
            self.close()
        for _ in range(1000):
            if self.finished:
                break
            for key in [*self.open, *self.abandoned]:
                if self.open.get(key) == "running" or key in self.abandoned:
                    self.obey(self.schedule.ended(*key, ok=True, error=None, how="returned", now=self.now))
            if self.schedule.next_wake() is not None:
                self.until_next_wake()
        assert self.finished, "a run whose attempts all end comes to its own end"
        assert self.schedule.next_wake() is None
        self.counts_agree()


TestSchedule = Machine.TestCase
TestSchedule.settings = settings(
    max_examples=300, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
