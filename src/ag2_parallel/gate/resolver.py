"""Host names looked up on daemon threads, so that a silent name server holds neither the loop nor the exit."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver, ResolveResult

from ag2_parallel.gate.off_loop import off_loop

if TYPE_CHECKING:
    from collections.abc import Callable


class DaemonResolver(AbstractResolver):
    """Asks the system's resolver."""

    def __init__(self, spawn: Callable[[Callable[[], None]], None]) -> None:
        """`spawn` runs a blocking function on a daemon thread."""
        self._spawn = spawn

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host."""
        return await off_loop(self._spawn, lambda: _addresses(host, port, family))

    async def close(self) -> None:
        """Nothing is held."""


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG)
    return [
        ResolveResult(
            hostname=host,
            host=socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0],
            port=port,
            family=kind,
            proto=proto,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, proto, _, address in found
    ]
