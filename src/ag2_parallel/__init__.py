"""Run AG2 agents and agent teams in parallel: isolated, on time, and every result kept."""

from __future__ import annotations

from ag2_parallel.autogen_names import add_to_autogen
from ag2_parallel.backend_options import ProcessBackend, RayBackend
from ag2_parallel.cassettes import Record, Replay
from ag2_parallel.data.mapped_tasks import tasks_from_rows
from ag2_parallel.errors import (
    Ag2ParallelError,
    CassetteMissError,
    ConfigurationError,
    DependencyCycleError,
    DuplicateTaskError,
    JournalDamagedError,
    JournalError,
    JournalLockedError,
    JournalVersionError,
    MissingExtraError,
    NotSerializableError,
    RunFailedError,
    RunInterrupted,
    SharedAgentError,
    TaskStopped,
    UncertainEffectError,
    UnknownDependencyError,
    UnsupportedAgentError,
)
from ag2_parallel.forecast import Forecast, Interval
from ag2_parallel.once import once
from ag2_parallel.policies import Breaker, Budget, Journal, RateLimit, RetryPolicy
from ag2_parallel.results import AttemptRecord, ParallelTaskResult, TaskError, TaskStatus
from ag2_parallel.run_handle import RunHandle, RunStatus
from ag2_parallel.run_results import RunResults
from ag2_parallel.runner import ParallelAgentRunner, run_agents_parallel
from ag2_parallel.spans import Span
from ag2_parallel.tasks import HumanInputRequest, ParallelTask, TaskContext, Template
from ag2_parallel.usage import Usage

__all__ = [
    "Ag2ParallelError",
    "AttemptRecord",
    "Breaker",
    "Budget",
    "CassetteMissError",
    "ConfigurationError",
    "DependencyCycleError",
    "DuplicateTaskError",
    "Forecast",
    "HumanInputRequest",
    "Interval",
    "Journal",
    "JournalDamagedError",
    "JournalError",
    "JournalLockedError",
    "JournalVersionError",
    "MissingExtraError",
    "NotSerializableError",
    "ParallelAgentRunner",
    "ParallelTask",
    "ParallelTaskResult",
    "ProcessBackend",
    "RateLimit",
    "RayBackend",
    "Record",
    "Replay",
    "RetryPolicy",
    "RunFailedError",
    "RunHandle",
    "RunInterrupted",
    "RunResults",
    "RunStatus",
    "SharedAgentError",
    "Span",
    "TaskContext",
    "TaskError",
    "TaskStatus",
    "TaskStopped",
    "Template",
    "UncertainEffectError",
    "UnknownDependencyError",
    "UnsupportedAgentError",
    "Usage",
    "add_to_autogen",
    "once",
    "run_agents_parallel",
    "tasks_from_rows",
]
