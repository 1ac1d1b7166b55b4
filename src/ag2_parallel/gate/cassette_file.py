"""A cassette's file: JSON lines, the first of them a header, each other one an exchange with a model server.

A line is written in one go to the end of the file, so that whatever ends the process leaves whole lines behind, but
for the last one.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import queue
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.gate.masking import masked_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ag2_parallel.redaction import Redactor

_log = logging.getLogger("ag2_parallel")

_VERSION: Final = 1
_MARK: Final = "ag2_parallel_cassette"
_ANEW: Final = "began_anew"
_BLOCK: Final = 1 << 16
_ERROR: Final = 400


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and what came of it.

    Attributes:
        task: Name of the task that asked.
        digest: Names the request by what it asks.
        asked: What it asks, keys masked, to be shown.
        status: HTTP status of the answer; 0 where none came.
        headers: The answer's, without secrets.
        head_at: Seconds from the request to the answer's head.
        chunks: The answer's bytes, each with the seconds from the request.
        error: What came in place of an answer, or of the rest of it: its class, its words, and whether it can go away.
    """

    task: str
    digest: str
    asked: Any
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    head_at: float = 0.0
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    error: dict[str, Any] | None = None

    @property
    def is_answer(self) -> bool:
        """Whether the call was answered, and whole."""
        return self.error is None and 0 < self.status < _ERROR

    def line(self, redactor: Redactor) -> str:
        """As a line of the file, keys masked."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["headers"] = [(name, redactor.text(value)) for name, value in self.headers]
        plain["error"] = redactor.value(self.error)
        plain["chunks"] = [[round(at, 6), _told(chunk)] for at, chunk in self._masked_chunks(redactor)]
        return json.dumps(plain, separators=(",", ":"))

    def _masked_chunks(self, redactor: Redactor) -> list[tuple[float, bytes]]:
        whole = b"".join(chunk for _, chunk in self.chunks)
        masked = masked_body(whole, redactor)
        # A key may lie across two pieces: what has one comes in one piece.
        return self.chunks if masked == whole else [(self.chunks[-1][0], masked)]

    @classmethod
    def read(cls, line: str) -> Exchange:
        """From a line of the file."""
        plain = json.loads(line)
        plain["headers"] = [(name, value) for name, value in plain["headers"]]
        plain["chunks"] = [(at, _bytes(chunk)) for at, chunk in plain["chunks"]]
        return cls(**plain)


def _told(chunk: bytes) -> Any:
    try:
        return chunk.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(chunk).decode()}


def _bytes(told: Any) -> bytes:
    return told.encode() if isinstance(told, str) else base64.b64decode(told["base64"])


def read_cassette(path: str | os.PathLike[str]) -> list[Exchange]:
    """The exchanges of a cassette. Blocking.

    Raises:
        ConfigurationError: There is none, or none that can be read.
    """
    where = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"option cassette: {where} cannot be read: {error}; record it with Record(path)"
        ) from error
    *lines, rest = text.split("\n")  # not by `splitlines`, which breaks at characters of the text too
    if rest and not lines:
        lines = [rest]
    _check_header(lines[0] if lines else "", where)
    exchanges: list[Exchange] = []
    counts_from: dict[str, int] = {}
    for read in _read(lines[1:], where):
        if isinstance(read, Exchange):
            exchanges.append(read)
        else:
            counts_from[read] = len(exchanges)
    return [each for place, each in enumerate(exchanges) if place >= counts_from.get(each.task, 0)]


def _read(lines: list[str], where: str) -> Iterator[Exchange | str]:
    """Exchanges, and names of tasks that began anew there."""
    for number, line in enumerate(lines, 2):
        try:
            yield json.loads(line)[_ANEW] if line.startswith(f'{{"{_ANEW}"') else Exchange.read(line)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(
                f"option cassette: line {number} of {where} is damaged ({error}); record it again with Record(path)"
            ) from error


def _check_header(line: str, where: str) -> None:
    try:
        version = json.loads(line)[_MARK]
    except (ValueError, TypeError, KeyError):
        raise ConfigurationError(f"option cassette: {where} is no cassette") from None
    if version != _VERSION:
        raise ConfigurationError(
            f"option cassette: {where} has version {version!r}, and this version of ag2-parallel reads {_VERSION}"
        )


class CassetteWriter:
    """Writes exchanges, on a thread of its own. Safe from any thread."""

    def __init__(self, path: str | os.PathLike[str], redactor: Redactor) -> None:
        """See that the file can be written; what is in it is replaced with the first exchange. Blocking.

        Raises:
            ConfigurationError: It cannot be written, or is another kind of file.
        """
        self._path = path
        self._where = os.fspath(path)
        self._redactor = redactor
        try:
            file = self._opened()
        except OSError as error:
            raise ConfigurationError(f"option cassette: {self._where} cannot be written: {error}") from error
        with file:
            start = file.readline(4096).decode("utf-8", "replace")
        if start:
            _check_header(start, f"{self._where} exists and")
        self._file: io.FileIO | None = None
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[Exchange | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._broken = False
        self._closed = False
        self._goes_on = False
        self._begun_anew: set[str] = set()

    def go_on(self) -> None:
        """Keep what is in the file: it is of an earlier life of the run. Before the first exchange.

        What it has of a task counts no more from the task's first exchange in this life on: calls that are replayed
        are exchanges too, and the file and the journal may differ by the calls at which that life ended.
        """
        self._goes_on = True

    def _opened(self) -> io.FileIO:
        """For its owner alone; each write goes to the end."""
        return io.FileIO(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+")

    def put(self, exchange: Exchange) -> None:
        """Write an exchange, soon; one that comes after the end of the run is not in its cassette."""
        with self._lock:
            if self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="ag2-parallel-cassette", daemon=True)
                self._thread.start()
        self._waiting.put(exchange)

    def close(self) -> None:
        """Write what waits and close the file. Blocking."""
        with self._lock:
            thread, self._closed = self._thread, True
        if thread is not None:
            self._waiting.put(None)
            thread.join()
        self._try(self._end)

    def _end(self) -> None:
        if self._file is None and Path(self._path).stat().st_size == 0:
            self._begun()  # nothing was asked, and a replay is to find that
        if self._file is not None:
            self._file.close()

    def _work(self) -> None:
        while (exchange := self._waiting.get()) is not None:
            self._try(partial(self._write, exchange))

    def _write(self, exchange: Exchange) -> None:
        file, task = self._begun(), exchange.task
        if self._goes_on and task not in self._begun_anew:
            self._begun_anew.add(task)
            _append(file, json.dumps({_ANEW: task}))
        _append(file, exchange.line(self._redactor))

    def _try(self, write: Callable[[], object]) -> None:
        if self._broken:
            return
        try:
            write()
        except Exception as error:
            self._broken = True
            _log.error("the cassette %s cannot be written any more: %s", self._where, error)

    def _begun(self) -> io.FileIO:
        """The file, with a header and nothing of an earlier recording, unless that goes on."""
        if self._file is None:
            self._file = self._opened()
            kept = _whole_lines(self._file) if self._goes_on else 0
            self._file.truncate(kept)
            if not kept:
                self._begin(self._file)
        return self._file

    @staticmethod
    def _begin(file: io.FileIO) -> None:
        _append(file, json.dumps({_MARK: _VERSION, "recorded_at": datetime.now(UTC).isoformat()}))


def _whole_lines(file: io.FileIO) -> int:
    """Bytes up to the end of the last whole line: the process may have ended in the midst of one."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _append(file: io.FileIO, line: str) -> None:
    left = memoryview(f"{line}\n".encode("ascii"))
    while left:
        left = left[file.write(left) or 0 :]
