"""A folder of text files as rows: one file, one row."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ag2_parallel.data.row import Row
from ag2_parallel.data.text import marked_encoding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def folder_rows(folder: Path, encoding: str | None = None) -> Iterator[Row]:
    """Read the files of a folder and of the folders in it, in the order of their paths; hidden ones are left out.

    The columns are `path` (below the folder, with `/`), `name` (the file's, without its ending) and `text`.
    """
    for number, path in enumerate(_files(folder), start=1):
        values = {"path": path.relative_to(folder).as_posix(), "name": path.stem}
        content = b""
        try:
            content = path.read_bytes()
            text = content.decode(marked_encoding(content) or encoding or "utf-8")
        except OSError as error:
            yield Row(number, values, problem=f"{values['path']} cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            told = f"byte 0x{content[error.start]:02x} at position {error.start + 1} is not {error.encoding}"
            yield Row(number, values, problem=f"{values['path']} is no text: {told}")
        else:
            yield Row(number, {**values, "text": text})


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = folder.__class__(parent, name)
            if not name.startswith(".") and path.is_file():
                yield path
