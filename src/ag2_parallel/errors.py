"""Every exception of the package.

Ag2ParallelError
├── ConfigurationError (ValueError)
│   ├── DuplicateTaskError
│   ├── UnknownDependencyError
│   ├── DependencyCycleError
│   ├── UnsupportedAgentError
│   ├── SharedAgentError
│   ├── NotSerializableError
│   └── MissingExtraError (ImportError)
├── RunFailedError
├── JournalError
│   ├── JournalLockedError
│   ├── JournalVersionError
│   └── JournalDamagedError
├── CassetteMissError
└── UncertainEffectError
RunInterrupted (KeyboardInterrupt)
TaskStopped (BaseException)
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from ag2_parallel.redaction import masked_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ag2_parallel.run_results import RunResults


_OF_TASK: Final = re.compile(r'(.*?task ".*?"): (.*)', re.DOTALL)
"""The problem of a task: whose, and what."""

_EACH_UP_TO: Final = 3
"""Tasks with the same problem that are all named."""


class Ag2ParallelError(Exception):
    """The root of everything this package raises on purpose."""


class ConfigurationError(Ag2ParallelError, ValueError):
    """Raised before anything starts, with every problem of every task at once.

    Attributes:
        problems: One sentence per problem, each naming the task or option it is about.
    """

    def __init__(self, problems: str | Sequence[str]) -> None:
        """Take one problem or many; the message lists them all."""
        texts = (problems,) if isinstance(problems, str) else tuple(problems)
        self.problems = tuple(map(masked_text, texts))
        super().__init__(_listed(self.problems))

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[tuple[str, ...]]]:
        """Rebuild from the problems, so that the error survives pickling."""
        return type(self), (self.problems,)


class DuplicateTaskError(ConfigurationError):
    """Raised when two tasks have one name, also after NFC, case folding and stripping."""


class UnknownDependencyError(ConfigurationError):
    """Raised when a task depends on a name that no task of the run has."""


class DependencyCycleError(ConfigurationError):
    """Raised when tasks wait for each other in a circle."""


class UnsupportedAgentError(ConfigurationError):
    """Raised when a task's agent is nothing that can be run or copied."""


class SharedAgentError(ConfigurationError):
    """Raised when a factory returns an object that another task of the run already got."""


class NotSerializableError(ConfigurationError):
    """Raised when a task cannot be sent to another process."""


class MissingExtraError(ConfigurationError, ImportError):
    """Raised when a package that a task needs is not installed; names the pip command."""


class RunFailedError(Ag2ParallelError):
    """Raised when a run as a whole failed; what was finished is in `results`.

    Attributes:
        results: The results of every task, as far as the run got.
    """

    def __init__(self, message: str, results: RunResults) -> None:
        """Keep the results beside the message."""
        super().__init__(message)
        self.results = results

    def __reduce__(self) -> tuple[type[RunFailedError], tuple[str, RunResults]]:
        """Rebuild from message and results, so that the error survives pickling."""
        return type(self), (str(self), self.results)


class JournalError(Ag2ParallelError):
    """Raised when a journal cannot be opened, read or written; says which file and what to do."""


class JournalLockedError(JournalError):
    """Raised when another process, or another run of this one, holds a run; names the holder."""


class JournalVersionError(JournalError):
    """Raised when a newer version of this package made the journal."""


class JournalDamagedError(JournalError):
    """Raised when a journal's file is not a sound database."""


class CassetteMissError(Ag2ParallelError):
    """Raised in a task whose model call is not in the cassette that is replayed; shows the nearest one."""

    kind = "configuration"


class UncertainEffectError(Ag2ParallelError):
    """Raised where an effect may or may not have happened: its intent was written down and no receipt."""

    kind = "uncertain"


class RunInterrupted(KeyboardInterrupt):
    """Raised by `run` after Ctrl-C; what was finished is in `results`.

    Attributes:
        results: The results of every task, as far as the run got.
        how_to_resume: What a user types to go on with the run; None without a journal.
    """

    def __init__(self, message: str, results: RunResults, how_to_resume: str | None = None) -> None:
        """Keep the results beside the message."""
        super().__init__(message)
        self.results = results
        self.how_to_resume = how_to_resume

    def __reduce__(self) -> tuple[type[RunInterrupted], tuple[str, RunResults, str | None]]:
        """Rebuild from all it has, so that the interrupt survives pickling."""
        return type(self), (str(self), self.results, self.how_to_resume)


class TaskStopped(BaseException):
    """The stop signal inside a task: raised at its checkpoints once it has to end.

    It is a `BaseException` because AG2 and the provider SDKs turn every `Exception` into text
    or into another attempt. Clean up in `finally`; do not swallow it.

    Attributes:
        reason: Why the task has to end: `deadline`, `attempt_deadline`, `idle`, `run_deadline`,
            `cancelled`, `fail_fast` or `budget`.
    """

    def __init__(self, reason: str = "cancelled") -> None:
        """Name the reason."""
        super().__init__(reason)
        self.reason = reason


def _shared_once(problems: Sequence[str]) -> list[str]:
    """What many tasks have in common is said of the first of them; the others are counted."""
    parts = [match.groups() if (match := _OF_TASK.fullmatch(problem)) else (problem, None) for problem in problems]
    counts = Counter(what for _, what in parts if what is not None)
    told: dict[str, None] = {}
    said: set[str] = set()
    for problem, (task, what) in zip(problems, parts, strict=True):
        if what is None or counts[what] <= _EACH_UP_TO:
            told[problem] = None
        elif what not in said:
            said.add(what)
            told[f"{task} and {counts[what] - 1:,} more tasks: {what}"] = None
    return list(told)


def _listed(problems: Sequence[str]) -> str:
    problems = _shared_once(problems)
    if len(problems) == 1:
        return problems[0]
    return "\n".join([f"{len(problems)} problems:", *(f"  - {problem}" for problem in problems)])
