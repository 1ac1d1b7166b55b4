"""What the journal's tests share: runs opened in a file, results, and what was called back."""

import threading
from datetime import UTC, datetime

from ag2_parallel import ParallelTaskResult, TaskStatus
from ag2_parallel.journal.sqlite import SqliteJournal
from ag2_parallel.records import CallRecord, RunHeader

STARTED = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def header(run_id="r", **more):
    return RunHeader(run_id=run_id, started_at=STARTED, **more)


def result(name, index=0, status=TaskStatus.SUCCEEDED, **more):
    return ParallelTaskResult(name=name, index=index, status=status, **more)


def call(digest, text="answer", **more):
    return CallRecord(digest=digest, body=text.encode("utf-8", "surrogatepass"), **more)


class Opened:
    """A run held by this test; `failures` is what was told to `failed`."""

    def __init__(self, path, run_id="r", *, uncertain="fail", head=None, **options):
        self.failures = []
        self.store = SqliteJournal(path, **options)
        self.failed = threading.Event()
        more = {"uncertain": uncertain}
        self.run = self.store.open_run(head or header(run_id), post=lambda f: f(), failed=self._fail, **more)

    def _fail(self, error):
        self.failures.append(error)
        self.failed.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run.close(None)

    def __getattr__(self, name):
        return getattr(self.run, name)

    def settle(self, settled, fingerprint="f", *, cut=False):
        """Blocking until it is published."""
        done = threading.Event()
        self.run.settle(settled, fingerprint, cut=cut, published=done.set)
        assert done.wait(20)

    def settle_later(self, settled, published):
        self.run.settle(settled, "f", cut=False, published=published)

    def attempt(self, name, index=0, number=1, fingerprint="f"):
        self.run.attempt_started(index, name, fingerprint, number)
        return self.run.tape(index, name, number)

    def keep(self, tape, record):
        """Blocking until it is kept."""
        done = threading.Event()
        tape.keep(record, done.set)
        assert done.wait(20)

    def die(self):
        """End as a process that is killed does: nothing more is written, and the lock is gone.

        The writer's connection is closed without a word, so the run's life has no end.
        """
        self.run._writer._refused = RuntimeError("dead")
        self.run.close(None)
