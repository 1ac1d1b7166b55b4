"""The journal of one run, from its opening to its close: what stands of earlier lives, and what is written down."""

from __future__ import annotations

import logging
import os
import shlex
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.core.durations import Durations
from ag2_parallel.core.known import Known
from ag2_parallel.core.resuming import ResumePolicy, Resumption
from ag2_parallel.core.run_header import run_header
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.events import RunHint
from ag2_parallel.fingerprint import fingerprint
from ag2_parallel.frameworks.output_types import validated_value
from ag2_parallel.policies import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ag2_parallel.core.entries import NewTask
    from ag2_parallel.machinery import Machinery
    from ag2_parallel.options import Options
    from ag2_parallel.records import RunHeader, RunJournal, RunStore
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.results import ParallelTaskResult

_UNHURRIED: Final = 5.0
_HURRIED: Final = 0.15
"""Seconds that the end of a run waits for what is not written yet, such as when another program has the file."""

_log = logging.getLogger("ag2_parallel")


class RunRecord:
    """Opens a run in a store and decides what stands; without a store it does nothing.

    Attributes:
        journal: The run, once it is open.
        known: Results that the caller has already.
    """

    def __init__(
        self,
        store: RunStore | None,
        policy: ResumePolicy | None,
        redactor: Redactor,
        known: Mapping[str, ParallelTaskResult] | None = None,
    ) -> None:
        """Nothing is opened yet; `redactor` masks what is written down, `known` has results that stand."""
        self.known = Known(known or {})
        self.journal: RunJournal | None = None
        self._store = store
        self._policy = policy or ResumePolicy()
        self._redactor = redactor
        self._resumption: Resumption | None = None
        self._durations: Durations | None = None
        self._closed = False

    def open(
        self,
        run_id: str,
        options: Options,
        machinery: Machinery,
        *,
        listed: Sequence[NewTask] | None,
        source: Mapping[str, Any] | None,
        failed: Callable[[Exception], None],
    ) -> list[NewTask] | None:
        """Take the run for this process, and decide for a list of tasks. Blocking.

        Raises:
            JournalError: It cannot be opened, or another process holds the run.
            ConfigurationError: A task would do something else than before, and that is to be an error.
        """
        if self._store is None:
            return None if listed is None else [self.known.kept(new) for new in listed]
        total = None if listed is None else len(listed)
        header = run_header(run_id, machinery.clock.now(), options, total=total, source=source)
        self.journal = self._store.open_run(
            header,
            post=machinery.engine.post,
            failed=failed,
            uncertain=self._policy.uncertain,
            mask=self._redactor.text,
        )
        try:
            self._resumption = Resumption(
                self.journal,
                self._policy,
                partial(fingerprint, llm_config=options.llm_config, salt=run_id),
                _restored,
                self.known.has,
            )
            if options.order == "longest_first":
                self._durations = Durations.remembered(self._store.durations())
            return None if listed is None else [self._placed(new) for new in self._resumption.whole(listed)]
        except BaseException:
            self.close(None)
            raise

    @property
    def goes_on(self) -> bool:
        """Whether the run had earlier lives."""
        return self._resumption is not None and not self._resumption.is_first_life

    def tell(self, run_id: str, emit: Callable[..., None], *, whole: bool) -> None:
        """Say what is kept and what runs again, before anything starts; nothing in a first life."""
        if self._resumption is not None and self.goes_on:
            message = self._resumption.told(whole=whole)
            _log.info("run %s %s", run_id, message)
            emit(RunHint, message=message)

    def decide(self, new: NewTask) -> NewTask:
        """Decide for a task of a source, as it is read. Blocking."""
        return self.known.kept(new) if self._resumption is None else self._placed(self._resumption.one(new))

    def _placed(self, new: NewTask) -> NewTask:
        new = self.known.kept(new)
        return new if self._durations is None else self._durations.in_order(new)

    @property
    def metrics(self) -> dict[str, Any]:
        """What stood and what ran again, for a run that had earlier lives."""
        resumption = self._resumption
        return {} if resumption is None or resumption.is_first_life else {"resumed": resumption.to_dict()}

    def how_to_resume(self, run_id: str, found_by: Mapping[str, Any] | None) -> str | None:
        """What a user types to go on with the run; None where nothing was written down."""
        if self.journal is None:
            return None
        path = os.fspath(self._store.path) if self._store is not None else ""
        if found_by is not None and "file" in found_by:
            return shlex.join(["ag2-parallel", "resume", path, run_id])
        if found_by is not None and "pipe" in found_by:
            return f"the same command with --run-id {shlex.quote(run_id)}"
        tasks = "" if found_by is not None and "attribute" in found_by else "tasks, "
        return f"runner.resume({path!r}, {tasks}run_id={run_id!r})"

    def close(self, stop_reason: str | None, *, hurried: bool = False) -> None:
        """Write down that the run ended, and let go of it. Blocking; where somebody waits to get out, not for long."""
        if self.journal is not None and not self._closed:
            self._closed = True
            self.journal.close(stop_reason, wait=_HURRIED if hurried else _UNHURRIED, read_on=True)

    def let_go(self) -> None:
        """Nobody reads results any more; what is open is closed. Blocking."""
        self.close(None)
        if self.journal is not None:
            self.journal.stop_reading()


def store_of(journal: Journal | str | os.PathLike[str] | None) -> RunStore | None:
    """The store that an option names; nothing is opened yet."""
    if journal is None:
        return None
    from ag2_parallel.journal.sqlite import SqliteJournal  # with the first run that has one

    told = journal if isinstance(journal, Journal) else Journal(journal)
    return SqliteJournal(told.path, told.keep, calls=told.calls)


def as_before(
    journal: Journal | str | os.PathLike[str], own: Journal | str | os.PathLike[str] | None, header: RunHeader
) -> Journal:
    """The journal of a run that goes on, keeping no more than was wanted.

    Args:
        journal: What the caller names; a `Journal` is taken as it is.
        own: The runner's option.
        header: Of the life before.
    """
    if isinstance(journal, Journal):
        return journal
    if isinstance(own, Journal):
        return replace(own, path=journal)
    before = header.options.get("journal")
    told = before if isinstance(before, dict) else {}
    return Journal(journal, **{name: told[name] for name in ("keep", "calls") if name in told})


def resumable(journal: Journal | str | os.PathLike[str], run_id: str | None) -> RunHeader:
    """What explains the last life of the run that is meant. Blocking.

    Raises:
        JournalError: The journal cannot be read.
        ConfigurationError: It has no such run.
    """
    store = store_of(journal)
    header = None if store is None else store.header(run_id)
    if header is None:
        what = "no runs" if run_id is None else f"no run {run_id!r}"
        path = journal.path if isinstance(journal, Journal) else journal
        raise ConfigurationError(f"journal {path}: there is {what} in it to resume")
    return header


def _restored(output_type: Any, output: Any) -> Any:
    """A stored output as what the task's `output_type` makes of it."""
    return validated_value(output_type, output)
