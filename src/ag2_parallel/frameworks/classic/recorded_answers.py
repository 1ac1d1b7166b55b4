"""Answers of AG2's model clients as bytes, and back: so that a call of a client that sends by itself can be recorded."""

from __future__ import annotations

import importlib
import json
from typing import Any, Final

from ag2_parallel.async_ports import ForeignRecord

_TRUSTED: Final = ("openai.types.", "autogen.")
"""Where classes of answers may come from: what is loaded is named by a file."""


def foreign_record(params: dict[str, Any]) -> ForeignRecord[Any]:
    """How the answer to a call with these parameters is recorded."""
    return ForeignRecord(params, dumped, loaded)


def dumped(answer: Any) -> bytes | None:
    """An answer of one of AG2's own classes; None for every other, and for one that would not come back the same."""
    made = type(answer)
    if not made.__module__.startswith(_TRUSTED) or not hasattr(answer, "model_dump_json"):
        return None
    try:
        data = answer.model_dump(mode="json", warnings=False)
        body = json.dumps({"class": f"{made.__module__}:{made.__qualname__}", "data": data}).encode()
        return body if loaded(body) == answer else None
    except Exception:  # made around its class's rules, as some clients do
        return None


def loaded(body: bytes) -> Any:
    """The answer again."""
    record = json.loads(body)
    module, _, name = record["class"].partition(":")
    if not module.startswith(_TRUSTED):
        raise ValueError(f"a recorded answer is of a class that is none of AG2's: {module}:{name}")
    return getattr(importlib.import_module(module), name).model_validate(record["data"])
