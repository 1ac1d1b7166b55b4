"""What is written down of a run so that nothing is lost or paid for twice, and who writes it.

A `RunStore` keeps runs. A `RunJournal` is one of them, open for writing: the run tells it what happens, and it
answers once that is safe. A `CallTape` has the model calls of one attempt, `Receipts` the effects of one task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ag2_parallel.redaction import masked_text
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from ag2_parallel.events import Event
    from ag2_parallel.results import ParallelTaskResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """A model call and its whole answer, as it is kept for a replay.

    Attributes:
        digest: Names the request by what it asks, whatever changes by nature left out.
        status: HTTP status of the answer.
        headers: Those that say something about the body; no secrets.
        body: The decoded body; of a stream, all its bytes.
        streamed: Whether the body came, and is to be handed over, as a stream of events.
        model: The model asked.
        endpoint: The server's address without credentials, or the provider's name.
        usage: What the call used; `cost` included where the price is known.
        duration: Seconds from the call to the end of its answer.
    """

    digest: str
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    streamed: bool = False
    model: str | None = None
    endpoint: str = ""
    usage: Usage = field(default_factory=Usage)
    duration: float = 0.0


class CallTape(Protocol):
    """The model calls of one attempt: those recorded by an attempt that was cut, and those it makes itself.

    On the engine loop only.
    """

    def find(self, digest: str) -> CallRecord | None:
        """The next record of that request which is not used yet; None: the call goes live, and so does every later one."""

    def keep(self, record: CallRecord, kept: Callable[[], None]) -> None:
        """Write a live call down; `kept` is called on the engine loop when it is safe, and the agent may see the answer."""


@runtime_checkable
class DistantTape(CallTape, Protocol):
    """A tape that is in another process."""

    def fetch(self, digest: str) -> None:
        """Get ready to find that request; blocking, on the worker's thread, before `find` on the loop."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an effect that happened returned, as JSON text."""

    value: str


class Receipts(Protocol):
    """The effects of one task, over its attempts and over resumes. Blocking; from the task's own threads."""

    def begin(self, key: str) -> Receipt | None:
        """Write the intent down. A receipt: it has happened. None: it is to happen now.

        Raises:
            UncertainEffectError: There is an intent of an earlier attempt or life without a receipt.
            JournalError: The intent cannot be written.
        """

    def finish(self, key: str, value: str) -> None:
        """Write the receipt down; returns when it is safe. `value` is JSON text.

        Raises:
            JournalError: It cannot be written.
        """

    def withdraw(self, key: str) -> None:
        """The effect raised an exception by itself: forget the intent, so that it may be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What explains a run later.

    Attributes:
        run_id: The run.
        started_at: When this life of it began, in UTC.
        options: The runner's options as plain data, keys masked.
        versions: Of Python, this package, AG2 and its SDKs, by name.
        platform: The machine's system, as `platform.platform()` says it.
        revision: The git revision of the working folder, where there is one.
        source: What finds the tasks again: `{"file": path}`, `{"attribute": "module:name"}`, or None.
        total: How many tasks; None where they are read lazily.
    """

    run_id: str
    started_at: datetime
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    revision: str | None = None
    source: Mapping[str, Any] | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierTask:
    """What a journal knows of a task from earlier lives of a run.

    Attributes:
        name: The task's name.
        fingerprint: Of what it would have done then.
        status: How it ended, in the words of `TaskStatus`; None where it was cut by the end of the process.
        cut: Whether its last attempt was ended from outside (process death, stop, limit, lost worker), so that its calls are replayed.
    """

    name: str
    fingerprint: str
    status: str | None
    cut: bool


class RunJournal(Protocol):
    """One run, held by this process. Methods are called on the engine loop and never block, unless they say so.

    What cannot be written any more (a full disk) is told once to the `failed` callback it was opened with;
    nothing raises, and callbacks for what was not written are never called.
    """

    def earlier(self) -> Iterator[EarlierTask]:
        """All tasks of earlier lives. Blocking; before the run starts."""

    def result(self, name: str) -> ParallelTaskResult | None:
        """The stored result of a task of an earlier life, its `output` plain data. Blocking; from any thread."""

    def attempt_started(self, index: int, name: str, fingerprint: str, attempt: int) -> None:
        """An attempt begins; written down with the next commit."""

    def attempt_ended(self, index: int, attempt: int, *, cut: bool) -> None:
        """An attempt failed by itself or was ended from outside, and its task goes on."""

    def settle(
        self,
        result: ParallelTaskResult,
        fingerprint: str,
        *,
        cut: bool,
        published: Callable[[], None],
        if_none: bool = False,
    ) -> None:
        """Write a result down; `published` is called, on the journal's own thread, when it is safe.

        The result is encoded on the journal's thread. `cut`: its last attempt was ended from outside. `if_none`: a
        result of an earlier life, which was paid for, is not replaced by this one.
        """

    def tape(self, index: int, name: str, attempt: int) -> CallTape:
        """The calls of an attempt, with those recorded by the attempt before it if that one was cut."""

    def receipts(self, name: str) -> Receipts:
        """The effects of a task."""

    def note(self, event: Event) -> None:
        """Keep an event; may be dropped where too many come. From any thread."""

    def close(self, stop_reason: str | None, *, wait: float = 5.0, read_on: bool = False) -> None:
        """Write down that the run ended and everything before it; release it. Blocking, `wait` seconds at most.

        `read_on`: `result` can be asked until `stop_reading`.
        """

    def stop_reading(self) -> None:
        """Nobody asks for results any more."""


class RunStore(Protocol):
    """A store of runs."""

    @property
    def path(self) -> os.PathLike[str]:
        """Where it is."""

    def open_run(
        self,
        header: RunHeader,
        *,
        post: Callable[[Callable[[], None]], None],
        failed: Callable[[Exception], None],
        uncertain: str = "fail",
        mask: Callable[[str], str] = masked_text,
    ) -> RunJournal:
        """Take a run for this process: a new one, or the next life of one that is there. Blocking.

        Args:
            header: Of this life.
            post: Runs a function on the engine loop; from any thread.
            failed: Told once when nothing can be written any more; from the journal's thread.
            uncertain: What `Receipts.begin` does about an intent without a receipt: "fail", "repeat" or "skip".
            mask: Hides the secrets of every text before it is stored, such as `Redactor.text` of the run.

        Raises:
            JournalLockedError: Another process, or run, holds it; says which.
            JournalVersionError: A newer version made the file.
            JournalDamagedError: The file is not a sound database.
            JournalError: It cannot be opened or written.
        """

    def header(self, run_id: str | None = None) -> RunHeader | None:
        """Of the last life of a run, or of the run that was taken last; None: there is none. Blocking.

        Raises:
            JournalError: As `open_run`.
        """

    def durations(self, run_id: str | None = None) -> Iterable[tuple[str, str | None, float]]:
        """Name, group and seconds of the tasks that succeeded, the latest last; of all runs or of one. Blocking."""
