"""The reports: a Markdown file for each team, one for the assessment, and the case."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ag2_parallel.cli.demo.teams import DISCLAIMER
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from ag2_parallel.cli.demo.teams import Case
    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.run_results import RunResults


def make_folder(folder: Path) -> None:
    """Make the folder for its owner alone; one that is there stays as it is.

    Raises:
        ConfigurationError: If it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--out: the folder {folder} cannot be made: {error.strerror}") from error


def write_reports(folder: Path, case: Case, results: RunResults, told: str) -> None:
    """Write `<task>.md` for every task, also for those that did not succeed, and `case.md`.

    Args:
        folder: Where to.
        case: The case.
        results: Of the tasks.
        told: A sentence about the model.

    Raises:
        ConfigurationError: If a file cannot be written.
    """
    _write(folder / "case.md", case.text)
    for name, title in case.titles().items():
        if name in results:
            _write(folder / f"{name}.md", report(title, results[name], told))


def report(title: str, result: ParallelTaskResult, told: str) -> str:
    """One task's report: how it ended, its summary, and everything that was said."""
    lines = [f"# {title}", "", f"{DISCLAIMER} {told}", "", f"- status: {result.status} ({result.stop_reason})"]
    lines += [
        f"- time: {result.duration:.1f} s",
        f"- model calls: {result.usage.calls}, tokens: {result.usage.total_tokens}",
    ]
    if result.error is not None:
        lines.append(f"- error: {result.error}")
    lines += ["", "## Summary", "", result.summary or "None: the task did not get that far.", "", "## Transcript"]
    for message in result.chat_history:
        lines += ["", f"### {message.get('name') or message.get('role')}", "", str(message.get("content") or "")]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    """Write for the owner alone."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationError(f"--out: the report {path} cannot be written: {error.strerror}") from error
