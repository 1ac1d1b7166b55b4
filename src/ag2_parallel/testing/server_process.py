"""A model server in a process of its own, so that its work does not count as the caller's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.request import ProxyHandler, Request, build_opener

from ag2_parallel.testing.model_server import llm_config

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_PATIENCE = 1.0
"""Seconds in which a child whose standard input was closed has ended of itself."""


class ModelServerProcess:
    """A `ModelServer` in a child process, for benchmarks. It ends with the `with` block, or with its parent.

    Args:
        reply: The answer's text; None: the last user message is echoed.
        latency: Seconds before each answer.
        port: Where to listen on 127.0.0.1; 0: any free port.
        models: Names that `GET /v1/models` lists.
        include_usage: Whether answers carry a usage block.
    """

    def __init__(
        self,
        reply: str | None = None,
        *,
        latency: float = 0.0,
        port: int = 0,
        models: Sequence[str] = ("scripted",),
        include_usage: bool = True,
    ) -> None:
        self._models = tuple(models)
        self._arguments = [f"--latency={latency}", f"--port={port}", "--usage" if include_usage else "--no-usage"]
        self._arguments += [f"--model={name}" for name in self._models]
        self._arguments += [] if reply is None else [f"--reply={reply}"]
        self._process: subprocess.Popen[str] | None = None
        self._base_url: str | None = None

    @property
    def base_url(self) -> str:
        """What goes into a model configuration's `base_url`."""
        if self._base_url is None:
            raise RuntimeError("the ModelServerProcess does not run; use it in a `with` block or call start()")
        return self._base_url

    @property
    def url(self) -> str:
        """The server's root."""
        return self.base_url.removesuffix("/v1")

    @property
    def pid(self) -> int | None:
        """The child's process id; None while it does not run."""
        return None if self._process is None else self._process.pid

    def llm_config(self, **entry: Any) -> dict[str, Any]:
        """A fresh AG2 model configuration for this server; `entry` adds to its one entry or overrides it."""
        return llm_config(self.base_url, self._models[0], entry)

    def ledger(self) -> dict[str, int]:
        """The server's counts: `count`, `answered`, `cut`, `peak_in_flight`, `tokens_sent` and more."""
        counts: dict[str, int] = self._ask(Request(f"{self.url}/ledger"))  # noqa: S310 - our own http address
        return counts

    def reset_ledger(self) -> None:
        """Start the counts anew."""
        self._ask(Request(f"{self.url}/ledger/reset", method="POST"))  # noqa: S310 - our own http address

    def start(self) -> Self:
        """Start the child; returns when it serves. Does nothing if it runs."""
        if self._process is not None:
            return self
        command = [sys.executable, "-m", "ag2_parallel.testing.model_server", "--until-stdin-ends"]
        command += self._arguments
        process = subprocess.Popen(  # noqa: S603 - our own module under this interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(), text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        self._process = process
        if not line:
            code = process.wait()
            self.close()
            raise RuntimeError(f"the model server's process ended with code {code} before it served; see its output")
        self._base_url = json.loads(line)["base_url"]
        return self

    def close(self) -> None:
        """End the child. Does nothing if it does not run."""
        process, self._process, self._base_url = self._process, None, None
        if process is None:
            return
        with process:
            assert process.stdin is not None
            process.stdin.close()  # which ends it
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:  # a forked process of the caller holds the other end open
                process.terminate()

    def _ask(self, request: Request) -> Any:
        with build_opener(ProxyHandler({})).open(request, timeout=30) as response:
            return json.load(response)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _environment() -> dict[str, str]:
    """The caller's environment, with the package findable also where it is not installed."""
    home = str(Path(__file__).parents[2])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
