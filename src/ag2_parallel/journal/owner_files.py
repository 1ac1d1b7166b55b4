"""Files for their owner alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_for_the_owner(path: Path) -> None:
    """Make an empty file that its owner alone may read and write; one that is there is left as it is.

    Raises:
        OSError: If it cannot be made.
    """
    try:
        made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        os.fchmod(made, 0o600)  # a umask may have taken the owner's own bits away
    finally:
        os.close(made)
