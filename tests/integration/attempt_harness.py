"""One attempt as a run makes it, with a tape and receipts of the test's own."""

import contextvars
import itertools
import tempfile
from pathlib import Path

from gate_harness import FAST, GateHarness

from ag2_parallel.core.clock import SystemClock
from ag2_parallel.events import Event
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.frameworks.registry import Frameworks
from ag2_parallel.journal.memory import MemoryRun
from ag2_parallel.ports import AttemptOrder
from ag2_parallel.redaction import Redactor
from ag2_parallel.tasks import ParallelTask
from ag2_parallel.workers.attempt import Attempt
from ag2_parallel.workers.claims import Claims
from ag2_parallel.workers.daemon_threads import DaemonThreads
from ag2_parallel.workers.questions import Questions
from ag2_parallel.workers.run_services import RunServices


class Attempts:
    """Makes attempts on one gate."""

    def __init__(self, llm_config=None):
        self.engine = GateHarness()
        self.events: list[Event] = []
        self._threads = DaemonThreads("attempts")
        self._folder = tempfile.TemporaryDirectory()
        self._frameworks = Frameworks(llm_config)
        self._indexes = itertools.count()
        self.redactor = Redactor()

    def run(self, *, tape=None, receipts=None, name="t", **fields):
        """Run one attempt of a task to its end; its outcome, and the attempt."""
        attempt = self.made(tape=tape, receipts=receipts, name=name, **fields)
        attempt.run()
        return attempt.listener.outcome, attempt

    def made(self, *, tape=None, receipts=None, name="t", **fields):
        """An attempt that does not run yet."""
        task = ParallelTask(name, **fields)
        self._frameworks.warm_up_for(task)
        order = AttemptOrder(index=next(self._indexes), attempt=1, task=task, upstream={}, deadline=None)
        listener = Listener()
        attempt = Attempt(order, self._services(tape, receipts), listener)
        attempt.listener = listener
        return attempt

    def _services(self, tape, receipts):
        return RunServices(
            run_id="r",
            directory=Path(self._folder.name),
            context=contextvars.copy_context(),
            frameworks=self._frameworks,
            resources={},
            questions=Questions(None),
            claims=Claims(),
            redactor=self.redactor,
            threads=self._threads,
            clock=SystemClock(),
            task_error=task_error,
            emit=lambda event, **fields: self.events.append(event(run_id="r", **fields)),
            observed=lambda _kind=None: True,
            console=lambda _name: [],
            open_gate=self._gate,
            tape=lambda _order: tape,
            receipts=MemoryRun().receipts if receipts is None else lambda _name: receipts,
        )

    def _gate(self, index, own):
        assert index >= 0
        return self.engine.gate.open_attempt(retry=FAST, redactor=self.redactor, **own())

    def close(self):
        self.engine.close()
        self._threads.close()
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Listener:
    """`ports.BackendListener`: what an attempt came to."""

    outcome = None

    def attempt_ended(self, index, attempt, outcome):
        self.outcome = outcome

    def attempt_cut_off(self, index, attempt, error):
        raise AssertionError(error)

    def attempt_alive(self, index, attempt):
        """Nobody waits for it."""

    def attempt_waiting(self, index, attempt, *, waiting, on_person):
        """No limit of time runs."""
