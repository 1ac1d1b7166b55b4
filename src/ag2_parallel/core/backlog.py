"""Tasks that are not settled: who waits for whom, and who is next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ag2_parallel.core.lazy_heap import LazyHeap
from ag2_parallel.core.scheduled import ScheduledTask, TaskRecord
from ag2_parallel.core.transitions import IllegalTransitionError, TaskEvent, TaskState
from ag2_parallel.results import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

_STATUSES: Final = (None, *TaskStatus)
_CODES: Final = {status: code for code, status in enumerate(_STATUSES) if status is not None}


class Backlog:
    """The records of unsettled tasks. Of a settled one a single byte stays, its status.

    Attributes:
        records: The unsettled tasks by index.
        added: How many tasks came in.
        settled: How many of them are settled.
    """

    __slots__ = ("_codes", "_dependants", "_ready", "added", "records", "settled")

    def __init__(self) -> None:
        self.records: dict[int, TaskRecord] = {}
        self.added = 0
        self.settled = 0
        self._codes = bytearray()
        self._dependants: dict[int, list[TaskRecord]] = {}
        self._ready = LazyHeap()

    @property
    def ready(self) -> int:
        """How many tasks wait for a slot."""
        return len(self._ready)

    def admit(self, tasks: Iterable[ScheduledTask]) -> list[TaskRecord]:
        """Take tasks in; their dependencies are linked one by one afterwards, as a batch may name them in any order."""
        batch = []
        size = len(self._codes)
        for task in tasks:
            if task.index < size:
                raise IllegalTransitionError(f"task {task.index} was added after task {size - 1}; indexes must rise")
            size = task.index + 1
            batch.append(TaskRecord(task))
        self._codes.extend(bytes(size - len(self._codes)))
        self.records.update((record.task.index, record) for record in batch)
        self.added += len(batch)
        return batch

    def link(self, record: TaskRecord) -> int | None:
        """Make a task wait for its dependencies; the index of one that did not succeed ends that, else None."""
        for index in record.task.depends_on:
            status = self.status_of(index)
            if status is None:
                if index not in self.records:
                    raise IllegalTransitionError(f"task {record.task.index} depends on task {index}, never added")
                record.unmet += 1
                self._dependants.setdefault(index, []).append(record)
            elif status is not TaskStatus.SUCCEEDED:
                return index
        return None

    def queue(self, record: TaskRecord, event: TaskEvent) -> None:
        """Let a task wait for a slot; it has the place that priority, expected length and index give it."""
        record.move(event)
        record.place = self._ready.push(-record.task.priority, -record.task.expected, record.task.index, item=record)

    def take(self) -> TaskRecord:
        """The ready task that is next, taken out of the queue."""
        record: TaskRecord = self._ready.pop()
        return record

    def settle(self, record: TaskRecord, status: TaskStatus) -> list[TaskRecord]:
        """Forget a task but for its status; returns those that wait for it, some perhaps settled themselves."""
        record.move(TaskEvent.DECIDED)
        index = record.task.index
        del self.records[index]
        self._ready.discard(record.place)
        self._codes[index] = _CODES[status]
        self.settled += 1
        return self._dependants.pop(index, [])

    def release(self, waiting: Iterable[TaskRecord]) -> None:
        """A dependency of these tasks succeeded; those that wait for no other one are ready."""
        for record in waiting:
            if record.state is TaskState.BLOCKED:
                record.unmet -= 1
                if not record.unmet:
                    self.queue(record, TaskEvent.RELEASED)

    def status_of(self, index: int) -> TaskStatus | None:
        """The status of a settled task; None for others."""
        return _STATUSES[self._codes[index]] if 0 <= index < len(self._codes) else None

    def counts(self) -> dict[TaskStatus, int]:
        """How many tasks settled with each status."""
        return {status: self._codes.count(code) for status, code in _CODES.items()}
