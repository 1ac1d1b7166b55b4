"""Files for their owner alone, whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_private(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file that nobody else can read. Who opens `path` meanwhile sees the old content or the new, never a part.

    Args:
        path: Where; its folder has to be there.
        content: All of it.

    Raises:
        OSError: If it cannot be written; the old file is untouched.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file() and not target.is_dir():  # a device or a pipe: no file takes its place
        target.write_bytes(content)
        return Path(path)
    if not target.parent.is_dir():  # or the error would name a file that nobody has heard of
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:50]}.")  # mkstemp makes it 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return Path(path)
