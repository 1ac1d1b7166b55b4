"""A forward proxy for tests: plain requests by their whole address, tunnels by CONNECT, and a note of each."""

import asyncio
import base64
import contextlib
import threading
from urllib.parse import urlsplit


class ForwardProxy:
    """Runs on a thread of its own. `names` says where a made-up host really is; `tls` is the context of an https proxy."""

    def __init__(self, *, user=None, names=None, tls=None, refuse=None):
        self.asked = []
        self._wanted = None if user is None else base64.b64encode(user.encode())
        self._names = names or {}
        self._tls = tls
        self._refuse = refuse
        self._writers = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def url(self, user=None):
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{f'{user}@' if user else ''}localhost:{self.port}"

    def _run(self):
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self):
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._client, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0.01)  # a transport over TLS frees its socket some turns later

    async def _client(self, reader, writer):
        self._writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            self.asked.append(f"{method} {target}")
            unknown = self._wanted is not None and _credentials(head) != self._wanted
            refused = self._refuse or (407 if unknown else None)
            if refused:
                writer.write(f"HTTP/1.1 {refused} No\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
                writer.close()
                return
            where = target if method == "CONNECT" else urlsplit(target).netloc
            host, _, port = where.partition(":")
            host, port = self._names.get(where, (host, int(port or 80)))
            up_reader, up_writer = await asyncio.open_connection(host, port)
            self._writers.append(up_writer)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = target.partition(where)[2] or "/"
                up_writer.write(head.replace(target.encode(), path.encode(), 1))
            await asyncio.gather(_pipe(reader, up_writer), _pipe(up_reader, writer))


def _credentials(head):
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"proxy-authorization":
            return value.strip().partition(b" ")[2]
    return None


async def _pipe(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
