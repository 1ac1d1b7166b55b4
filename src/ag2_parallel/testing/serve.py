"""The model server as a program of its own: `python -m ag2_parallel.testing.model_server`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ag2_parallel.testing.model_server import ModelServer


def serve(server_class: type[ModelServer], arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM comes, or standard input ends where that is wanted; the address goes to standard output as one JSON line.

    Args:
        server_class: `ModelServer`; handed over by the program itself, so that no module needs another in a circle.
        arguments: The command line; None: the process's own.

    Returns:
        The exit code.
    """
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    with (
        suppress(KeyboardInterrupt),
        server_class(
            options.reply,
            latency=options.latency,
            port=options.port,
            models=options.model or ("scripted",),
            include_usage=options.usage,
        ) as server,
    ):
        sys.stdout.write(json.dumps({"base_url": server.base_url}) + "\n")
        sys.stdout.flush()
        if not options.until_stdin_ends:
            threading.Event().wait()
        while os.read(sys.stdin.fileno(), 4096):
            pass
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ag2_parallel.testing.model_server",
        description="Serve scripted answers over the OpenAI chat protocol until Ctrl-C.",
    )
    parser.add_argument(
        "--until-stdin-ends", action="store_true", help="end with standard input: with the program that started this"
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0: any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--reply", help="the answer's text; without it the last user message is echoed")
    parser.add_argument("--model", action="append", help="name of a model to list; may be repeated")
    parser.add_argument(
        "--usage", action=argparse.BooleanOptionalAction, default=True, help="whether answers carry a usage block"
    )
    return parser


def _leave(_signal: int, _frame: Any) -> None:
    raise SystemExit(0)
