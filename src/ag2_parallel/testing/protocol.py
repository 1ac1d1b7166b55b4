"""The OpenAI chat protocol: bodies of answers, and how they are cut into server-sent events."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ag2_parallel.testing.replies import ChatRequest, Reply, TokenCounts, ToolCall, text_of, token_counts

if TYPE_CHECKING:
    from ag2_parallel.testing.faults import Fault

DONE = b"data: [DONE]\n\n"


def completion_body(reply: Reply, request: ChatRequest, *, model: str, usage: bool) -> dict[str, Any]:
    """The whole answer as one JSON object.

    Args:
        reply: What the model says.
        request: What it was asked.
        model: The model's name where neither the reply nor the request has one.
        usage: Whether a usage block belongs to it.
    """
    calls = [_call_body(call, request.number, place) for place, call in enumerate(reply.tool_calls)]
    message: dict[str, Any] = {"role": "assistant", "content": None if calls and not reply.text else reply.text}
    if calls:
        message["tool_calls"] = calls
    finish_reason = reply.finish_reason or ("tool_calls" if calls else "stop")
    body: dict[str, Any] = {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": reply.model or request.model or model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}],
    }
    if usage:
        counts = _counted(reply, request) if reply.usage is None else token_counts(reply.usage)
        body["usage"] = _usage_body(counts)
    return body


def events(body: Mapping[str, Any], *, usage: bool) -> list[bytes]:
    """The same answer as server-sent events, the end marker not included.

    Args:
        body: The body of a completion.
        usage: Whether a last event with the usage block was asked for.
    """
    choices = body.get("choices")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        return [event(body)]
    shared = {name: value for name, value in body.items() if name not in {"choices", "usage"}}
    shared["object"] = "chat.completion.chunk"
    if usage:
        shared["usage"] = None
    chunks = [event({**shared, "choices": [choice]}) for each in choices for choice in _choice_chunks(each)]
    if usage and body.get("usage") is not None:
        chunks.append(event({**shared, "choices": [], "usage": body["usage"]}))
    return chunks


def event(data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + encoded(data) + b"\n\n"


def encoded(data: Mapping[str, Any]) -> bytes:
    """JSON as it goes over the wire."""
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace")


def usage_of(body: Mapping[str, Any]) -> tuple[int, int] | None:
    """Prompt and completion tokens of a body's usage block, if it has one."""
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return None
    counts = token_counts(usage)
    return counts.prompt, counts.completion


def error_body(fault: Fault) -> dict[str, Any]:
    """The body of an HTTP error."""
    return {"error": {"message": fault.message, "type": fault.type, "param": None, "code": fault.code}}


def models_body(models: Sequence[str]) -> dict[str, Any]:
    """The list of models."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "ag2-parallel"} for name in models],
    }


def words(text: str) -> list[str]:
    """`text` in pieces of a word each; joined they are the text again."""
    return re.findall(r"\S+\s*|\s+", text)


def _choice_chunks(choice: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    index = choice.get("index", 0)
    message = dict(choice.get("message") or {})
    content, calls = message.pop("content", None), message.pop("tool_calls", None) or []
    deltas: list[dict[str, Any]] = [{"role": "assistant", **message, "content": "" if content else None}]
    deltas += [{"content": word} for word in words(content or "")]
    for place, call in enumerate(calls):
        function = call.get("function", {})
        head = {**call, "index": place, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        deltas += [
            {"tool_calls": [{"index": place, "function": {"arguments": part}}]}
            for part in words(function.get("arguments", ""))
        ]
    for delta in deltas:
        yield {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
    yield {"index": index, "delta": {}, "logprobs": None, "finish_reason": choice.get("finish_reason")}


def _call_body(call: ToolCall, number: int, place: int) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": call.id or f"call_{number}_{place}",
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _counted(reply: Reply, request: ChatRequest) -> TokenCounts:
    asked = sum(len(text_of(message).split()) for message in request.messages)
    said = len(reply.text.split()) + sum(len(str(call.arguments).split()) + 1 for call in reply.tool_calls)
    return TokenCounts(max(asked, 1), max(said, 1))


def _usage_body(counts: TokenCounts) -> dict[str, Any]:
    body: dict[str, Any] = {
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.completion,
        "total_tokens": counts.prompt + counts.completion,
    }
    if counts.cached:
        body["prompt_tokens_details"] = {"cached_tokens": counts.cached}
    return body
