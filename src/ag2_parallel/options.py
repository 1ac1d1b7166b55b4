"""The options of a runner, checked once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from inspect import isroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, get_args

from ag2_parallel.backend_options import ProcessBackend, RayBackend
from ag2_parallel.cassettes import Cassette, cassette_problem
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.policies import (
    MAX_SECONDS,
    MAX_WORKERS,
    Breaker,
    Budget,
    Console,
    HandleErrors,
    Journal,
    RateLimit,
    RetryPolicy,
    as_retry_policy,
    is_number,
    retry_problem,
    seconds_problem,
)

if TYPE_CHECKING:
    from ag2_parallel.ports import HumanInput, Observer

ALIASES: Final = {"max_concurrency": "max_workers"}
"""Other names of options, as other libraries have them."""


class RunnerOptions(TypedDict, total=False):
    """Keyword options of `ParallelAgentRunner`; `Options` says what each means."""

    max_concurrency: int | None
    attempt_timeout: float | None
    idle_timeout: float | None
    run_timeout: float | None
    count_waiting: bool
    grace: float
    max_abandoned: int | None
    rate_limits: Iterable[RateLimit] | Literal["auto"]
    adaptive: bool
    hedge_after: float | Literal["p95"] | None
    retry: int | RetryPolicy
    model_retry: int | RetryPolicy
    budget: Budget | None
    breaker: Breaker | None
    order: Literal["priority", "longest_first"]
    journal: Journal | str | os.PathLike[str] | None
    backend: Literal["local", "process", "ray"] | ProcessBackend | RayBackend
    cassette: Cassette | None
    llm_config: Any
    human_input: Literal["refuse"] | HumanInput
    console: Console
    progress: bool | Literal["auto"]
    directory: str | os.PathLike[str] | None
    resources: Mapping[str, Callable[[], Any]] | None
    redact: Callable[[str], str] | None
    observers: Iterable[Observer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a runner works.

    Attributes:
        max_workers: Tasks at once, 1 to 10,000; None: as many as tasks, at most `min(32, processors + 4)`.
        timeout: Seconds for each task from its start, attempts and backoff included; None: no limit.
        handle_errors: `collect`: every task runs and failures are results; `fail_fast`: the first
            failure stops the run; `ignore`: only the succeeded are in the results.
        attempt_timeout: Seconds for each attempt of a task.
        idle_timeout: Seconds without an event or a byte from a model.
        run_timeout: Seconds for the whole run.
        count_waiting: Whether waiting for limits, and backoff, counts in `timeout` and `attempt_timeout`.
        grace: Seconds that a stopped task has to unwind.
        max_abandoned: Stuck threads past which nothing new starts; None: `max(8, max_workers)`.
        retry: Attempts of a whole task.
        model_retry: Attempts of each model call.
        budget: How much the model calls of the run and of each task may use.
        breaker: What happens when task after task fails for one cause.
        rate_limits: Limits for model calls; "auto": those that providers announce in their headers.
        adaptive: Whether the number of model calls at once is found from the server's refusals.
        hedge_after: Seconds after which a second copy of a slow model call is sent; "p95": the time in which 95 of
            100 answers come.
        order: What decides among equal priorities: "priority", the order of the input; "longest_first", what the journal
            remembers of how long tasks of the same name or group took.
        journal: The file that keeps results and model calls, so that a run can go on after a crash; None: memory.
        backend: Where tasks run: "local", on threads of this process; "process", in worker processes, or `ProcessBackend(...)`;
            "ray", in actors of a Ray cluster, or `RayBackend(...)`.
        cassette: `Record(path)` records every model call of a run, `Replay(path, speed)` answers from a recording.
        llm_config: AG2 model configuration for tasks whose `agent_config` has none.
        human_input: "refuse", or a function that answers questions, called one at a time.
        console: "quiet" hides AG2's own output; "prefix" and "grouped" show it with the task's name.
        progress: "auto" and True show progress on stderr, live on a terminal or in a notebook, else as lines; False does not.
        directory: Root of the tasks' own folders; None: under the system's temporary folder.
        resources: Factories of things all tasks share, by name.
        redact: Applied to all text before it is stored or printed; keys are masked in any case.
        observers: Callables that are told of every event.
    """

    max_workers: int | None = None
    timeout: float | None = None
    handle_errors: HandleErrors = "collect"
    attempt_timeout: float | None = None
    idle_timeout: float | None = None
    run_timeout: float | None = None
    count_waiting: bool = True
    grace: float = 1.0
    max_abandoned: int | None = None
    retry: int | RetryPolicy = 1
    model_retry: int | RetryPolicy = 5
    budget: Budget | None = None
    breaker: Breaker | None = None
    rate_limits: Any = ()
    adaptive: bool = False
    hedge_after: float | Literal["p95"] | None = None
    order: str = "priority"
    journal: Journal | str | os.PathLike[str] | None = None
    backend: str | ProcessBackend | RayBackend = "local"
    cassette: Cassette | None = None
    llm_config: Any = None
    human_input: Any = "refuse"
    console: Console = "quiet"
    progress: bool | str = "auto"
    directory: Any = None
    resources: Mapping[str, Callable[[], Any]] | None = None
    redact: Callable[[str], str] | None = None
    observers: Sequence[Observer] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Check what a caller gave.

        Raises:
            ConfigurationError: With every problem at once.
        """
        given = {name: _list_of(value) if name == "rate_limits" else value for name, value in given.items()}
        values: dict[str, Any] = {}
        problems: list[str] = []
        if isinstance(given.get("observers"), Iterable) and not isinstance(given["observers"], str):
            given = {**given, "observers": tuple(given["observers"])}
        for name, value in given.items():
            real = ALIASES.get(name, name)
            if real not in _NAMES:
                problems.append(_unknown(name))
            elif real in values and values[real] is not None and value is not None and values[real] != value:
                problems.append(f"options {name} and {real} mean the same and differ: {value!r} and {values[real]!r}")
            elif values.get(real) is None:
                values[real] = value
        problems += _value_problems(values)
        if problems:
            raise ConfigurationError(problems)
        values["observers"] = tuple(values.get("observers", ()))
        return cls(**values)

    def workers_for(self, total: int | None) -> int:
        """How many tasks may run at once in a run of `total` tasks, or of a lazy source."""
        if self.max_workers is not None:
            return self.max_workers
        processes = self.processes
        if isinstance(processes, ProcessBackend) and processes.workers is not None and processes.threads is not None:
            return processes.workers * processes.threads
        usual = min(32, (os.cpu_count() or 1) + 4)
        return usual if total is None else max(1, min(total, usual))

    @property
    def processes(self) -> ProcessBackend | RayBackend | None:
        """The worker processes, or actors, in which tasks run; None: they run in this process."""
        if isinstance(self.backend, ProcessBackend | RayBackend):
            return self.backend
        return ProcessBackend() if self.backend == "process" else RayBackend() if self.backend == "ray" else None

    @property
    def insist_for(self) -> float:
        """Seconds from insisting on an attempt's end to giving it up: in a process it is killed, and never given up."""
        return 0.1 if self.processes is None else MAX_SECONDS

    @property
    def retry_policy(self) -> RetryPolicy:
        """The retries of a whole task."""
        return as_retry_policy(self.retry)

    @property
    def model_retry_policy(self) -> RetryPolicy:
        """The retries of a model call."""
        return as_retry_policy(self.model_retry)


_NAMES = tuple(item.name for item in fields(Options))


def _unknown(name: str) -> str:
    near = get_close_matches(name, [*_NAMES, *ALIASES], n=1, cutoff=0.5)
    return f"unknown option {name!r}" + (f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_NAMES)}")


def _value_problems(values: Mapping[str, Any]) -> Iterable[str]:
    for name in ("timeout", "attempt_timeout", "idle_timeout", "run_timeout"):
        if problem := seconds_problem(values.get(name)):
            yield f"option {name}: {problem}"
    for name in ("retry", "model_retry"):
        if problem := retry_problem(values.get(name, 1)):
            yield f"option {name}: {problem}"
    if isroutine(config := values.get("llm_config")):
        yield f"option llm_config: {config.__name__} is a function; give what it returns"
    yield from _number_problems(values)
    yield from _choice_problems(values)
    yield from _call_problems(values)
    yield from _object_problems(values)


def _number_problems(values: Mapping[str, Any]) -> Iterable[str]:
    workers = values.get("max_workers")
    if workers is not None and not _whole(workers, 1, MAX_WORKERS):
        yield f"option max_workers: {workers!r} is not a whole number from 1 to {MAX_WORKERS}"
    grace = values.get("grace", 1.0)
    if not is_number(grace) or not 0 <= grace <= 3600:
        yield f"option grace: {grace!r} is not a number of seconds from 0 to 3600"
    abandoned = values.get("max_abandoned")
    if abandoned is not None and not _whole(abandoned, 1, MAX_WORKERS):
        yield f"option max_abandoned: {abandoned!r} is not a whole number from 1 to {MAX_WORKERS}"


def _choice_problems(values: Mapping[str, Any]) -> Iterable[str]:
    strategy = values.get("handle_errors", "collect")
    if not isinstance(strategy, str) or strategy not in get_args(HandleErrors):
        yield f"option handle_errors: {strategy!r} is none of {_quoted(get_args(HandleErrors))}"
    if (console := values.get("console", "quiet")) not in get_args(Console):
        yield f"option console: {console!r} is none of {_quoted(get_args(Console))}"
    if (order := values.get("order", "priority")) not in {"priority", "longest_first"}:
        yield f'option order: {order!r} is none of "priority", "longest_first"'
    elif order == "longest_first" and values.get("journal") is None:
        yield 'option order: "longest_first" needs a journal=, which remembers how long tasks took'
    yield from _backend_problems(values.get("backend", "local"), values.get("max_workers"))
    if values.get("backend", "local") != "local" and values.get("cassette") is not None:
        yield 'option cassette: it is recorded and played with backend="local" alone'
    if (progress := values.get("progress", "auto")) != "auto" and not isinstance(progress, bool):
        yield f'option progress: {progress!r} is none of "auto", True, False'
    human = values.get("human_input", "refuse")
    if human != "refuse" and not callable(human):
        yield f'option human_input: {human!r} is neither "refuse" nor a function of a HumanInputRequest'


def _backend_problems(backend: Any, workers: Any) -> Iterable[str]:
    if isinstance(backend, ProcessBackend):
        if backend.workers is not None and backend.threads is not None and _whole(workers, 1, MAX_WORKERS):
            places = backend.workers * backend.threads
            if workers > places:
                yield f"option max_workers: {workers} tasks at once do not fit into {places} places of the backend, {backend!r}"
    elif backend not in ("local", "process", "ray") and not isinstance(backend, RayBackend):
        yield f'option backend: {backend!r} is none of "local", "process", "ray", ProcessBackend(...), RayBackend(...)'


def _call_problems(values: Mapping[str, Any]) -> Iterable[str]:
    limits = values.get("rate_limits", ())
    if not isinstance(limits, tuple):
        if limits != "auto":
            yield f'option rate_limits: {limits!r} is neither a list of RateLimit(...) nor "auto"'
    else:
        wrong = [each for each in limits if not isinstance(each, RateLimit)]
        yield from (f"option rate_limits: {each!r} is not a RateLimit(...)" for each in wrong)
    for name in ("adaptive", "count_waiting"):
        if not isinstance(values.get(name, True), bool):
            yield f"option {name}: {values[name]!r} is neither True nor False"
    hedge = values.get("hedge_after")
    if hedge != "p95" and (problem := seconds_problem(hedge)):
        yield f'option hedge_after: {problem}, or "p95"'


def _object_problems(values: Mapping[str, Any]) -> Iterable[str]:
    for name, kind, example in (("budget", Budget, "max_tokens=100_000"), ("breaker", Breaker, "same_failures=10")):
        value = values.get(name)
        if value is not None and not isinstance(value, kind):
            yield f"option {name}: {value!r} is not a {kind.__name__}, such as {kind.__name__}({example})"
    if problem := cassette_problem(values.get("cassette")):
        yield f"option cassette: {problem}"
    resources = values.get("resources")
    if resources is not None and not (isinstance(resources, Mapping) and all(map(callable, resources.values()))):
        yield "option resources: not a mapping from names to functions that make something"
    if (redact := values.get("redact")) is not None and not callable(redact):
        yield f"option redact: {redact!r} is not a function of text"
    journal = values.get("journal")
    if journal is not None and not isinstance(journal, str | os.PathLike | Journal):
        yield f"option journal: {journal!r} is neither a path nor a Journal(...)"
    directory = values.get("directory")
    if directory is not None and not isinstance(directory, str | Path | os.PathLike):
        yield f"option directory: {directory!r} is not a path"
    observers = values.get("observers", ())
    if not isinstance(observers, Iterable) or isinstance(observers, str):
        yield f"option observers: {observers!r} is not a list of functions"
    else:
        yield from (f"option observers: {item!r} cannot be called" for item in observers if not callable(item))


def _list_of(value: Any) -> Any:
    """Limits as a tuple; one alone counts as a list of it."""
    if isinstance(value, RateLimit):
        return (value,)
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else value


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _quoted(choices: Iterable[str]) -> str:
    return ", ".join(f'"{choice}"' for choice in choices)
