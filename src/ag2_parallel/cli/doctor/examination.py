"""Everything the doctor looks at, and how it is shown."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import typer

from ag2_parallel.cli import exit_codes
from ag2_parallel.cli.doctor.finding import Finding
from ag2_parallel.cli.doctor.installation import backends, journal, keys, packages
from ag2_parallel.cli.doctor.servers import entries, reachable
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ag2_parallel.cli.run_settings import Format


def examine(files: Sequence[Path], base_url: str | None, api_key_env: str, journal_path: Path | None) -> list[Finding]:
    """Look at everything.

    Args:
        files: Task files whose model servers are asked.
        base_url: A further server.
        api_key_env: The variable with its key.
        journal_path: Where runs will be kept.
    """
    found = [*packages(), backends(), keys(os.environ)]
    if files:
        found += _of_files(files)
    if base_url is not None:
        redactor = Redactor()
        key = os.environ.get(api_key_env)
        redactor.learn({"api_key": key, "base_url": base_url})
        found.append(reachable({"base_url": base_url, "api_key": key}, redactor))
    if journal_path is not None:
        found.append(journal(journal_path))
    return found


def _model_of(agent: Any) -> Any:
    if agent.framework == "classic" or agent.config is None:
        return getattr(agent, "llm_config", None)
    return {**agent.config, "api_type": agent.config.get("provider", "openai")}


def _of_files(files: Sequence[Path]) -> Iterator[Finding]:
    from ag2_parallel.cli.task_files.reading import read_task_file
    from ag2_parallel.cli.task_files.variables import Variables

    variables = Variables(os.environ)
    asked: set[tuple[Any, Any]] = set()
    for path in files:
        try:
            file = read_task_file(path, variables)
        except ConfigurationError as error:
            raise type(error)([variables.redactor.text(problem) for problem in error.problems]) from None
        yield Finding(f"file {path}", "ok", "is a valid task file")
        configs = [file.content.llm_config, *map(_model_of, file.content.agents.values())]
        configs += [listed.task.agent_config and listed.task.agent_config.get("llm_config") for listed in file.tasks]
        for entry in (entry for config in configs for entry in entries(config)):
            server = (entry.get("base_url"), entry.get("model"))
            if server not in asked:
                asked.add(server)
                variables.redactor.learn(entry)
                yield reachable(entry, variables.redactor)


def show(found: Sequence[Finding], form: Format) -> int:
    """Print the findings; returns the exit code."""
    if form == "json":
        typer.echo(json.dumps([each.to_dict() for each in found], indent=2))
    elif form == "jsonl":
        for each in found:
            typer.echo(json.dumps(each.to_dict()))
    else:
        width = max(len(each.what) for each in found)
        for each in found:
            advice = f"\n{'':9}{'':{width}}  -> {each.advice}" if each.advice and each.state != "ok" else ""
            typer.echo(f"{each.state:<7}  {each.what:<{width}}  {each.told}{advice}")
    return exit_codes.SOME_FAILED if any(each.state == "problem" for each in found) else exit_codes.OK
