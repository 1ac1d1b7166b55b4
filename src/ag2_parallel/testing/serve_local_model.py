"""The local model as a program of its own: `python -m ag2_parallel.testing.serve_local_model`."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any


def serve(settings: dict[str, Any]) -> None:
    """Load the model, say where it is served as one JSON line, and serve until standard input ends.

    Args:
        settings: `gguf` (path), `parallel` (slots), `threads`, `context` (tokens for each slot).
    """
    import xllamacpp

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair: it may let running tasks finish
    server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), settings))
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)  # an orderly end would first finish what is being generated


def _parameters(parameters: Any, settings: dict[str, Any]) -> Any:
    parameters.model.path = settings["gguf"]
    parameters.model_alias = {"local"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0  # any free one, chosen by the system
    parameters.n_parallel = settings["parallel"]
    parameters.n_ctx = settings["context"] * settings["parallel"]
    parameters.cpuparams.n_threads = settings["threads"]
    parameters.cpuparams_batch.n_threads = settings["threads"]
    parameters.n_gpu_layers = 0
    parameters.use_jinja = True
    parameters.cache_ram_mib = 0  # no second copy of prompts beside the slots
    parameters.verbosity = 1  # errors alone
    return parameters


if __name__ == "__main__":
    try:
        serve(json.loads(sys.argv[1]))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
