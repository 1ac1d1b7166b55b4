"""The results of a whole run, together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from ag2_parallel.errors import MissingExtraError, RunFailedError
from ag2_parallel.results import ParallelTaskResult, TaskError, TaskStatus, plain
from ag2_parallel.usage import Usage


class RunResults(Mapping[str, ParallelTaskResult]):
    """The results of a run: a mapping from task name to result, in input order.

    `results[0]` and slices work as well. With `handle_errors="ignore"` only the succeeded tasks are
    in the mapping; the others are in `ignored`.

    Attributes:
        run_id: The run's name.
        stop_reason: Why the run ended early, or None.
        ignored: What `handle_errors="ignore"` left out.
        metrics: Numbers of the whole run: `wall`, `task_seconds`, `longest`, `makespan_bound` (no order of these tasks on
            so many workers can take less), `speedup`, `success_rate`, `concurrency`, `waited`, `abandoned`,
            `model_calls`, `engine_lag_max`, and by `groups` the counts, seconds and usage of each group; `resumed`
            where the run had earlier lives.
    """

    def __init__(
        self,
        results: Sequence[ParallelTaskResult],
        *,
        run_id: str,
        stop_reason: str | None = None,
        metrics: Mapping[str, Any] | None = None,
        ignore_failures: bool = False,
    ) -> None:
        """Take the results of every task in any order."""
        self._all = sorted(results, key=lambda result: result.index)
        self._ignores = ignore_failures
        self.ignored = [result for result in self._all if not result.ok] if ignore_failures else []
        shown = [result for result in self._all if result.ok] if ignore_failures else self._all
        self._by_name = {result.name: result for result in shown}
        self._list = shown
        self.run_id = run_id
        self.stop_reason = stop_reason
        self.metrics = dict(metrics or {})

    @overload
    def __getitem__(self, key: str | int) -> ParallelTaskResult: ...

    @overload
    def __getitem__(self, key: slice) -> list[ParallelTaskResult]: ...

    def __getitem__(self, key: str | int | slice) -> ParallelTaskResult | list[ParallelTaskResult]:
        """By name, by position in input order, or a slice of positions."""
        return self._by_name[key] if isinstance(key, str) else self._list[key]

    def __iter__(self) -> Iterator[str]:
        """The names in input order."""
        return iter(self._by_name)

    def __len__(self) -> int:
        """How many results there are, the ignored not counted."""
        return len(self._list)

    def _with(self, status: TaskStatus) -> list[ParallelTaskResult]:
        return [result for result in self._list if result.status is status]

    @property
    def succeeded(self) -> list[ParallelTaskResult]:
        """Results of the tasks that succeeded."""
        return self._with(TaskStatus.SUCCEEDED)

    @property
    def failed(self) -> list[ParallelTaskResult]:
        """Results of the tasks that failed by themselves."""
        return self._with(TaskStatus.FAILED)

    @property
    def timed_out(self) -> list[ParallelTaskResult]:
        """Results of the tasks that were stopped by a time limit of their own."""
        return self._with(TaskStatus.TIMED_OUT)

    @property
    def cancelled(self) -> list[ParallelTaskResult]:
        """Results of the tasks that were stopped because the run was."""
        return self._with(TaskStatus.CANCELLED)

    @property
    def skipped(self) -> list[ParallelTaskResult]:
        """Results of the tasks that never started."""
        return self._with(TaskStatus.SKIPPED)

    @property
    def ok(self) -> bool:
        """Whether every task succeeded, the ignored ones counted."""
        return all(result.ok for result in self._all)

    @property
    def errors(self) -> dict[str, TaskError]:
        """Errors by task name, those of ignored tasks included."""
        return {result.name: result.error for result in self._all if result.error is not None}

    @property
    def usage(self) -> Usage:
        """Tokens, calls and cost of all tasks together."""
        return Usage.total(result.usage for result in self._all)

    def raise_for_failures(self) -> None:
        """Raise `RunFailedError` if any task did not succeed."""
        bad = [result for result in self._all if not result.ok]
        if bad:
            raise RunFailedError(failure_message(bad, len(self._all)), self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "run_id": self.run_id,
            "stop_reason": self.stop_reason,
            "ignore_failures": self._ignores,
            "metrics": plain(self.metrics),
            "usage": self.usage.to_dict(),
            "results": [result.to_dict() for result in self._all],
        }

    @classmethod
    def from_dict(cls, plain: Any) -> RunResults:
        """The results that `to_dict` described.

        Raises:
            ValueError: If it is not that; says what is wrong.
        """
        if not (isinstance(plain, dict) and isinstance(plain.get("results"), list)):
            raise ValueError(  # noqa: TRY004 - what is wrong is what the file says
                'these are not the results of a run: there is no list "results"'
            )
        return cls(
            [ParallelTaskResult.from_dict(result) for result in plain["results"]],
            run_id=str(plain.get("run_id", "")),
            stop_reason=plain.get("stop_reason"),
            metrics=plain.get("metrics"),
            ignore_failures=bool(plain.get("ignore_failures", False)),
        )

    @classmethod
    def from_json(cls, source: str | Path) -> RunResults:
        """The results in a file that `to_json` wrote (its path), or in its text (a `str` that begins with a brace).

        Raises:
            ValueError: If they are not there; says what is wrong.
            OSError: If the file cannot be read.
        """
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        text = str(source) if is_text else Path(source).read_text(encoding="utf-8")
        return cls.from_dict(json.loads(text))

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON text, written to `path` for its owner alone where one is given."""
        text = json.dumps(self.to_dict(), indent=2)
        if path is not None:
            target = Path(path)
            target.touch(mode=0o600)
            target.write_text(text + "\n", encoding="utf-8")
        return text

    def timeline(self, path: str | Path) -> Path:
        """Write a page that shows the run: when what happened, what failed and why, tokens, cost and transcripts.

        Args:
            path: `.html` for the whole report, one file that loads nothing from elsewhere; `.svg` or `.png` for the
                Gantt alone, which needs matplotlib (`pip install "ag2-parallel[plots]"`). Its owner alone can read it.

        Returns:
            The path.

        Raises:
            ValueError: For any other ending.
            MissingExtraError: If matplotlib is needed and not there.
            OSError: If the file cannot be written.
        """
        from ag2_parallel.reporting.timeline import write_timeline

        return write_timeline(self.to_dict(), path)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with one row for each task."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_pandas needs pandas: pip install pandas") from error
        return pd.DataFrame([result.to_dict() for result in self._all])

    def __repr__(self) -> str:
        """Counts by status."""
        counts = ", ".join(f"{len(found)} {status}" for status in TaskStatus if (found := self._with(status)))
        ignored = f", {len(self.ignored)} ignored" if self.ignored else ""
        stopped = f", stopped: {self.stop_reason}" if self.stop_reason else ""
        return f"RunResults({counts or 'empty'}{ignored}{stopped})"

    def _repr_html_(self) -> str:
        from ag2_parallel.reporting.notebook_html import results_html

        return results_html(self)


def failure_message(bad: Sequence[ParallelTaskResult], total: int) -> str:
    """One sentence for the count and one line for each of the first failures."""
    lines = [f"{len(bad)} of {total} tasks did not succeed:"]
    lines += [f"  - {result.name} ({result.status}): {result.error or result.stop_reason}" for result in bad[:10]]
    if len(bad) > 10:
        lines.append(f"  - and {len(bad) - 10} more; see .errors")
    return "\n".join(lines)
