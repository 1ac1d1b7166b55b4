"""What is installed."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
import tempfile
from typing import TYPE_CHECKING, Final

from ag2_parallel.cli.doctor.finding import Finding
from ag2_parallel.errors import JournalError
from ag2_parallel.journal.sqlite import SqliteJournal
from ag2_parallel.redaction import SECRET_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_CLASSIC: Final = (0, 14)
_EXTRAS: Final = {
    "openai": "AG2 Classic's model calls",
    "genai-prices": "costs of results",
    "pandas": "frames",
    "pyarrow": "Parquet files",
    "ray": "tasks on a cluster",
}
_KEY: Final = ("API_KEY", "OAI_CONFIG_LIST", "AWS_ACCESS_KEY_ID")


def installed(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def packages() -> Iterator[Finding]:
    """Python, this package, the lines of AG2, and packages that some things need."""
    yield Finding("Python", "ok", platform.python_version())
    yield Finding("ag2-parallel", "ok", installed("ag2-parallel") or "runs from its sources")
    classic = classic_line(importlib.metadata.packages_distributions().get("autogen", []), installed)
    newer = installed("ag2")
    is_new = newer is not None and not newer.startswith("0.")
    if classic.state == "note" and not is_new:
        classic = Finding("AG2 Classic", "problem", classic.told, 'pip install "ag2-parallel[classic]"')
    yield classic
    yield Finding("AG2 1.x", "ok" if is_new else "note", f"ag2 {newer}" if is_new else "not installed")
    for package, use in _EXTRAS.items():
        version = installed(package)
        told = version or f"not installed; needed for {use}"
        yield Finding(package, "ok" if version else "note", told, "" if version else f"pip install {package}")


def backends() -> Finding:
    """When threads, worker processes or a cluster pay."""
    ray = "" if installed("ray") else " (not installed)"
    return Finding(
        "backends",
        "ok",
        "local (threads) while tasks wait for models; process when they compute in Python, make very many turns of teams, or may "
        f"crash or never return; ray{ray} when one machine is not enough",
    )


def classic_line(owners: list[str], version_of: object) -> Finding:
    """Which package the module `autogen` comes from, and whether it is one that works.

    Args:
        owners: The packages that bring a module `autogen`.
        version_of: Gives a package's version.
    """
    names = sorted(set(owners))
    told = ", ".join(f"{name} {version_of(name)}" for name in names)  # type: ignore[operator] # a function
    if not names:
        return Finding("AG2 Classic", "note", "not installed", 'pip install "ag2-parallel[classic]"')
    if len(names) > 1:
        advice = f"they overwrite each other's files: pip uninstall {' '.join(names)}, then pip install autogen"
        return Finding("AG2 Classic", "problem", told, advice)
    version = str(version_of(names[0]))  # type: ignore[operator] # a function
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _CLASSIC:
        return Finding("AG2 Classic", "problem", f"{told} is too old", 'pip install "ag2-parallel[classic]"')
    return Finding("AG2 Classic", "ok", told)


def keys(environment: Mapping[str, str]) -> Finding:
    """Which variables hold keys: their names and nothing else."""
    named = sorted(
        name for name, value in environment.items() if value and (any(k in name for k in _KEY) or _is_key(name))
    )
    if named:
        return Finding("keys", "ok", ", ".join(named))
    return Finding("keys", "note", "no variable is set", "export OPENAI_API_KEY=..., unless your server needs none")


def _is_key(name: str) -> bool:
    return name.endswith(("_KEY", "_TOKEN")) and SECRET_NAMES.search(name) is not None


def journal(path: Path) -> Finding:
    """Whether a journal can be made and locked where it should be; nothing is left behind."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return Finding("journal", "problem", f"there is no folder {folder}", f"mkdir -p {folder}")
    if path.exists() and not os.access(path, os.W_OK):
        return Finding("journal", "problem", f"{path} cannot be written to", f"chmod u+w {path}")
    if path.exists():
        try:
            SqliteJournal(path).open(create=path.is_file() and not path.stat().st_size)
        except JournalError as error:
            return Finding("journal", "problem", str(error), "name another file")
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".ag2-parallel-") as own:
            connection = sqlite3.connect(f"{own}/trial.db")
            try:
                mode = connection.execute("pragma journal_mode=wal").fetchone()[0]
                connection.execute("create table trial (x)")
                connection.commit()
            finally:
                connection.close()
    except (OSError, sqlite3.Error) as error:
        return Finding("journal", "problem", f"{folder} cannot be written to: {error}", "choose another folder")
    if mode != "wal":
        told = f"SQLite cannot use its write-ahead log in {folder}: a network file system?"
        return Finding("journal", "problem", told, "choose a folder on a local disk")
    return Finding("journal", "ok", f"{path} can be written")
