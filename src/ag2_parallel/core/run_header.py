"""What explains a run later: versions, platform, options, the revision of the code around it."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.records import RunHeader
from ag2_parallel.redaction import masked_config
from ag2_parallel.results import preview

if TYPE_CHECKING:
    from datetime import datetime

_PACKAGES: Final = (
    "ag2-parallel",
    "autogen",
    "ag2",
    "openai",
    "anthropic",
    "google-genai",
    "pydantic",
    "httpx",
    "aiohttp",
)

_GIT_TIME: Final = 2.0


def run_header(
    run_id: str, started_at: datetime, options: object, *, total: int | None, source: Mapping[str, Any] | None
) -> RunHeader:
    """The header of a life of a run that begins now. Blocking: it asks git."""
    return RunHeader(
        run_id=run_id,
        started_at=started_at,
        options=masked_config(_plain(options)),
        versions={"python": platform.python_version(), **_versions()},
        platform=platform.platform(),
        revision=_revision(),
        source=source,
        total=total,
    )


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _revision() -> str | None:
    """The git revision of the working folder, with a mark where files differ from it; None where there is none."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            timeout=_GIT_TIME,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip() or None if said.returncode == 0 else None


def _plain(value: Any) -> Any:
    """Options as plain data: functions and objects by what they are called."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        told = {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
        return {name: shown for name, shown in told.items() if shown not in (None, [], {})}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return getattr(value, "__qualname__", None) or preview(value)
