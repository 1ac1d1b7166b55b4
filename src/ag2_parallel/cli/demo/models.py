"""Which model the demonstration asks."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ag2_parallel.cli.demo.options import DemoOptions
    from ag2_parallel.cli.demo.teams import Case

_REAL_ANSWER_TOKENS = 32


@dataclass(frozen=True, slots=True)
class DemoModel:
    """A model that is there to be asked.

    Attributes:
        llm_config: AG2 Classic's configuration for it, with one entry.
        told: One sentence about it for people.
        scripted: Whether no model answers, but a file.
        address: Of a server that somebody else runs; None: the demonstration started its own.
        shares_processor: Whether answers generated at once slow each other down on this machine.
    """

    llm_config: dict[str, Any]
    told: str
    scripted: bool = False
    address: str | None = None
    shares_processor: bool = False


@contextmanager
def open_model(options: DemoOptions, case: Case) -> Iterator[DemoModel]:
    """Start or name the model that the options ask for; it is there until the block ends.

    Raises:
        ConfigurationError: If something for it is missing.
    """
    if options.real:
        from ag2_parallel.testing.local_model import LocalModelServer

        with LocalModelServer(options.gguf) as local:
            entry = {"max_tokens": _REAL_ANSWER_TOKENS, "temperature": 0.7, "frequency_penalty": 0.8}
            told = "A real, very small model on this machine's processor writes the answers: its English is real, its medicine is not."
            yield DemoModel(local.llm_config(**entry), told, shares_processor=True)
    elif options.base_url is not None:
        yield _remote(options)
    else:
        from ag2_parallel.cli.demo.scripted import SECONDS_A_MINUTE, ScriptedAnswers
        from ag2_parallel.testing import ModelServer

        with ModelServer(ScriptedAnswers(case, options.speed).answer) as server:
            told = (
                "The answers are scripted: an embedded server reads them from a file, no model is asked. "
                f"Minutes are scaled to seconds: a team's minute takes {SECONDS_A_MINUTE / options.speed:.3g} s."
            )
            yield DemoModel(server.llm_config(price=[0.0, 0.0]), told, scripted=True)


def _remote(options: DemoOptions) -> DemoModel:
    key = "none"  # servers without keys ignore it; the SDK insists on one
    if options.api_key_env is not None:
        key = os.environ.get(options.api_key_env, "")
        if not key:
            raise ConfigurationError(f"--api-key-env: the environment variable {options.api_key_env} is not set")
    entry = {"model": options.model, "base_url": options.base_url, "api_key": key}
    told = f"The model {options.model} at {options.base_url} writes the answers."
    return DemoModel({"config_list": [entry]}, told, address=options.base_url)
