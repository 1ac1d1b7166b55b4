"""Where finished results go: from the engine's thread to whoever waits for them."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.core.kept import Kept
    from ag2_parallel.results import ParallelTaskResult


class Outlet:
    """A queue of results with an end. Written on the engine loop, read from one other place."""

    def __init__(self, *, streamed: bool) -> None:
        """Nothing came yet. Unless `streamed`, nobody is woken up before the end."""
        self.streamed = streamed
        self._changed = threading.Condition()
        self._results: deque[ParallelTaskResult | Kept] = deque()
        self.finished = False
        self._wake: Callable[[], None] | None = None

    def put(self, result: ParallelTaskResult | Kept) -> None:
        """Publish a result."""
        self._results.append(result)
        if self.streamed:
            self._tell()

    def finish(self) -> None:
        """Nothing more will come."""
        self.finished = True
        self._tell()

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()
            wake = self._wake
        if wake is not None:
            wake()

    def on_change(self, wake: Callable[[], None] | None) -> None:
        """Call `wake` on every change, for a reader that must not block; None ends that."""
        with self._changed:
            self._wake = wake

    def take(self) -> ParallelTaskResult | Kept | None:
        """The next result, or None if there is none now."""
        return self._results.popleft() if self._results else None

    def wait(self, timeout: float | None = None) -> bool:
        """Block until there is a result or the end; False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._results or self.finished, timeout) is not False

    def wait_finished(self, timeout: float | None = None) -> bool:
        """Block until the end; False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.finished, timeout)
