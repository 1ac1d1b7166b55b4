"""What users' own tests need: a model server without a model, and fakes of the ports.

Importing it loads nothing heavy; aiohttp is loaded when a `ModelServer` starts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ag2_parallel.testing.fake_clock import FakeClock
    from ag2_parallel.testing.faults import Fault
    from ag2_parallel.testing.ledger import Ledger, SeenRequest
    from ag2_parallel.testing.local_model import LocalModelServer
    from ag2_parallel.testing.model_server import ModelServer
    from ag2_parallel.testing.recording_observer import RecordingObserver
    from ag2_parallel.testing.replies import ChatRequest, Reply, ToolCall
    from ag2_parallel.testing.scripted_agent import ScriptedAgent
    from ag2_parallel.testing.server_process import ModelServerProcess

__all__ = [
    "ChatRequest",
    "FakeClock",
    "Fault",
    "Ledger",
    "LocalModelServer",
    "ModelServer",
    "ModelServerProcess",
    "RecordingObserver",
    "Reply",
    "ScriptedAgent",
    "SeenRequest",
    "ToolCall",
]

_HOMES = {
    "ChatRequest": "replies",
    "FakeClock": "fake_clock",
    "Fault": "faults",
    "Ledger": "ledger",
    "LocalModelServer": "local_model",
    "ModelServer": "model_server",
    "ModelServerProcess": "server_process",
    "RecordingObserver": "recording_observer",
    "Reply": "replies",
    "ScriptedAgent": "scripted_agent",
    "SeenRequest": "ledger",
    "ToolCall": "replies",
}
"""The module of each public name, loaded on first use."""


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
