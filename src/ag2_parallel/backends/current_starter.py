"""What starts worker processes now: made when first needed, and anew where it died or has too little loaded."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ag2_parallel.backends.starting import Starter


class CurrentStarter:
    """The starter of a pool. From any thread; all but its properties may block."""

    def __init__(self, make: Callable[[bool], Starter], renewed: Callable[[], None]) -> None:
        """`make` is called with whether to preload AG2 Classic; `renewed` when processes of before should be replaced."""
        self._make = make
        self._renewed = renewed
        self._lock = threading.Lock()
        self._starter: Starter | None = None
        self._outdated: list[Starter] = []
        self._preloaded = self._closed = False

    def open(self, *, preload: bool) -> None:
        """Get ready to start processes; `preload` AG2 Classic, now if not before."""
        with self._lock:
            if self._closed or self.is_open(preload=preload):
                return  # nobody needs it
            made = self._make(preload)
            if self._closed:  # meanwhile
                made.close()
                return
            before, self._starter = self._starter, made
            self._preloaded = preload
        if before is not None:
            self._outdated.append(before)
            self._renewed()

    def is_open(self, *, preload: bool) -> bool:
        """Whether processes can be started, and have AG2 Classic loaded."""
        return self._starter is not None and (self._preloaded or not preload)

    @property
    def places(self) -> int | None:
        """See `Starter`."""
        return None if self._starter is None else self._starter.places

    @property
    def elsewhere(self) -> bool:
        """See `Starter`."""
        return self._starter is not None and self._starter.elsewhere

    def start(self, sock: socket.socket, exited: Callable[[str], None]) -> Callable[[], None]:
        """See `Starter`."""
        chosen = self._living()
        try:
            return chosen.start(sock, exited)
        except OSError:
            if chosen.alive or self._closed:
                raise
        return self._living().start(sock, exited)  # it ended in this moment

    def _living(self) -> Starter:
        with self._lock:
            assert self._starter is not None
            if not self._starter.alive and not self._closed:
                self._starter.close()
                self._starter = self._make(self._preloaded)
            return self._starter

    def closing(self) -> None:
        """Nothing new is made from now on."""
        self._closed = True

    def close(self) -> None:
        """End what was made."""
        for each in (*self._outdated, self._starter):
            if each is not None:
                each.close()
