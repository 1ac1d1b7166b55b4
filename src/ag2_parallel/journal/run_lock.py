"""Who has a run: one runner at a time, and none once its process is dead.

A file beside the journal is locked with one byte for each run, by the operating system, for this process. So the lock
goes with the process however that ends, is not inherited by what the process forks or starts, and other runs of the
journal are free. Such locks do not tell threads of one process apart, and are all lost when the process closes any
descriptor of the file: a register, for each process, holds the one descriptor and knows what is locked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ag2_parallel.journal.owner_files import make_for_the_owner

if TYPE_CHECKING:
    from pathlib import Path

_TRIES: Final = 3
_BETWEEN_TRIES: Final = 0.02
"""Seconds; somebody who only looks whether a run is held has it for a moment."""


@dataclass(slots=True)
class _LockFile:
    descriptor: int
    held: set[int] = field(default_factory=set)


class _Register:
    """The lock files that one process has open, by device and inode."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.guard = threading.Lock()
        self.files: dict[tuple[int, int], _LockFile] = {}


_register = _Register()


def _of_this_process() -> _Register:
    global _register  # noqa: PLW0603 - one for each process, made anew after a fork
    if _register.process != os.getpid():
        _register = _Register()
    return _register


class RunLock:
    """A run that is held; see `hold`."""

    def __init__(self, key: tuple[int, int], run: int) -> None:
        """Made by `hold`."""
        self._key = key
        self._run = run
        self._process = os.getpid()

    def release(self) -> None:
        """Let others have the run; a second time is nothing, and so is a call in a forked child."""
        register = _of_this_process()
        with register.guard:
            file = register.files.get(self._key)
            if self._process != register.process or file is None or self._run not in file.held:
                return
            file.held.discard(self._run)
            if file.held:
                fcntl.lockf(file.descriptor, fcntl.LOCK_UN, 1, self._run)
            else:
                _close(register, self._key)


def hold(journal: Path, run: int) -> RunLock | None:
    """Take a run for this process; None: it is held, by another process or within this one.

    Args:
        journal: The journal's file.
        run: The run's number in it.

    Raises:
        OSError: If the lock file cannot be made.
    """
    register = _of_this_process()
    for _ in range(_TRIES):
        with register.guard:
            key, file = _opened(register, lock_path(journal), create=True)
            if run in file.held:
                return None
            if _locked(file, fcntl.LOCK_EX, run):
                file.held.add(run)
                return RunLock(key, run)
            _close_if_idle(register, key)
        threading.Event().wait(_BETWEEN_TRIES)
    return None


def is_held(journal: Path, run: int) -> bool:
    """Whether somebody has the run now."""
    register = _of_this_process()
    with register.guard:
        try:
            key, file = _opened(register, lock_path(journal), create=False)
        except OSError:  # no lock file, or none that we may open: nobody here holds anything
            return False
        if run in file.held:
            return True
        free = _locked(file, fcntl.LOCK_SH, run)
        if free:
            fcntl.lockf(file.descriptor, fcntl.LOCK_UN, 1, run)
        _close_if_idle(register, key)
        return not free


def lock_path(journal: Path) -> Path:
    """The file beside the journal; it is empty and stays there."""
    resolved = journal.resolve()
    return resolved.with_name(resolved.name + "-lock")


def _opened(register: _Register, path: Path, *, create: bool) -> tuple[tuple[int, int], _LockFile]:
    try:
        there = path.stat()
    except FileNotFoundError:
        if not create:
            raise
        make_for_the_owner(path)
        there = path.stat()
    key = (there.st_dev, there.st_ino)
    if key in register.files:  # a second descriptor must not be opened: closing it would lose the locks
        return key, register.files[key]
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    opened = os.fstat(descriptor)
    key = (opened.st_dev, opened.st_ino)
    register.files[key] = _LockFile(descriptor)
    return key, register.files[key]


def _locked(file: _LockFile, kind: int, run: int) -> bool:
    try:
        fcntl.lockf(file.descriptor, kind | fcntl.LOCK_NB, 1, run)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EAGAIN}:
            return False
        raise
    return True


def _close_if_idle(register: _Register, key: tuple[int, int]) -> None:
    if not register.files[key].held:
        _close(register, key)


def _close(register: _Register, key: tuple[int, int]) -> None:
    os.close(register.files.pop(key).descriptor)
