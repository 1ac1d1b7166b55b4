"""Tasks are added in the order in which they were read, those whose results stand among them."""

from ag2_parallel import ParallelTask, ParallelTaskResult, TaskStatus
from ag2_parallel.core.entries import Limits, NewTask
from ag2_parallel.core.feeder import Feeder
from ag2_parallel.core.known import Known
from ag2_parallel.core.scheduled import ScheduledTask


class SlowLoop:
    """A run whose loop does nothing until everything was read."""

    def __init__(self):
        self.posted = []

    def add(self, batch):
        self.posted.append(lambda: batch)

    def add_kept(self, batch):
        self.posted.append(batch)

    def close(self):
        pass


class InOrder:
    """An intake of tasks by number; two of three have a result."""

    def next(self, index):
        new = NewTask(ParallelTask(f"t{index}", "x"), ScheduledTask(index, ()), Limits(None, None, None))
        result = ParallelTaskResult(name=f"t{index}", index=index, status=TaskStatus.SUCCEEDED, started_at="then")
        return Known({f"t{index}": result} if index % 3 != 2 else {}).kept(new)


def test_what_stands_is_not_added_ahead_of_what_was_read_before_it():
    run = SlowLoop()
    feeder = Feeder(run, lambda task: None, lambda task: True, 100)
    feeder.feed_source(range(12), InOrder())
    assert feeder.done.wait(10)
    added = [new.scheduled.index for batch in run.posted for new in batch()]
    assert added == list(range(12))
