"""Requests to make and answers to give, by name, for a suite that makes and gets them through both doors."""

import json

from gate_harness import HELLO, http_answer
from pydantic import BaseModel


class Weather(BaseModel):
    """What a structured answer may be."""

    city: str
    degrees: float | None = None


TOOLS = [
    {
        "type": "function",
        "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}},
    }
]

ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "gpt-4o-mini-2024",
    "choices": [
        {"index": 0, "finish_reason": "stop", "logprobs": None, "message": {"role": "assistant", "content": "fine"}}
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}


def answer(**changes):
    return ANSWER | changes


def choice(**message):
    return [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None} | message}]


REQUESTS = {
    "plain": ({}, {}, {}),
    "sampling": ({"temperature": 0.3, "top_p": 0.5, "max_tokens": 20, "seed": 4, "user": "me"}, {}, {}),
    "reasoning": ({"reasoning_effort": "low", "max_completion_tokens": 30, "verbosity": "low"}, {}, {}),
    "tools": ({}, {"tools": TOOLS, "parallel_tool_calls": False}, {}),
    "tool choice": ({"tool_choice": "required"}, {}, {"tools": TOOLS}),
    "extra body": ({"extra_body": {"guided_json": {"type": "object"}, "top_k": 3}}, {}, {}),
    "extra headers": ({"extra_headers": {"X-Project": "ward", "Authorization": "Bearer other"}}, {}, {}),
    "default headers": ({"default_headers": {"X-Team": "five", "User-Agent": "mine"}}, {}, {}),
    "organization": ({"organization": "org-1"}, {}, {}),
    "project": ({"project": "proj_1"}, {}, {}),
    "query": ({"default_query": {"trace": "1"}}, {}, {}),
    "timeout": ({"timeout": 17.5}, {}, {}),
    "trailing slash": ({"base_url": "{url}/v1/"}, {}, {}),
    "path": ({"base_url": "{url}/proxy/openai/v1"}, {}, {}),
    "pydantic": ({}, {"response_format": Weather}, {}),
    "schema": ({"response_format": Weather.model_json_schema()}, {}, {}),
    "json object": ({"response_format": {"type": "json_object"}}, {}, {}),
    "azure": ({"api_type": "azure", "api_version": "2024-10-21", "base_url": "{url}"}, {}, {}),
    "deepseek": ({"api_type": "deepseek", "model": "deepseek-reasoner", "max_tokens": 100}, {}, {"messages": [
        {"role": "user", "content": "one"}, {"role": "user", "content": "two"}, {"role": "system", "content": "be"},
    ]}),
    "o1": ({"model": "o1-mini", "temperature": 0.5, "max_tokens": 9}, {}, {"messages": [
        {"role": "system", "content": "be brief"}, *HELLO,
    ]}),
    "mistral": ({"model": "mistral-small"}, {}, {"messages": [{"role": "system", "content": "be brief"}, *HELLO]}),
    "no role": ({}, {}, {"messages": [{"content": "hello"}]}),
    "history": ({}, {}, {"messages": [
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "héllo \U0001f600"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]}),
    "images": ({}, {}, {"messages": [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
    ]}),
}  # fmt: skip
"""By name: what an entry has more, options beside the entries, and parameters of the call."""

ANSWERS = {
    "plain": http_answer(ANSWER, headers=["x-request-id: req-1"]),
    "tool calls": http_answer(answer(choices=choice(tool_calls=[
        {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
    ]))),
    "fields of the provider's own": http_answer(answer(prompt_logprobs=None, choices=choice(
        content="hm", reasoning_content="because", annotations=[]), usage=ANSWER["usage"] | {
        "prompt_tokens_details": {"cached_tokens": 4}, "cost": 0.1})),
    "an unknown finish reason": http_answer(answer(choices=[ANSWER["choices"][0] | {"finish_reason": "eos"}])),
    "no usage": http_answer({key: value for key, value in ANSWER.items() if key != "usage"}),
    "numbers as text": http_answer(answer(created="now", usage={"prompt_tokens": "7"})),
    "floats": http_answer(answer(created=1.5)),
    "half a pair": http_answer(json.dumps(answer(choices=choice(content="\ud83d"))).encode()),
    "no choices": http_answer({"id": "x", "model": "gpt-4o-mini"}),
    "null choices": http_answer(answer(choices=None)),
    "another content type": http_answer(ANSWER, content_type="text/plain"),
    "a charset": http_answer(ANSWER, content_type="application/json; charset=utf-8"),
    "no content type": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(json.dumps(ANSWER)) + json.dumps(ANSWER).encode(),
    "created": http_answer(ANSWER, status=201),
    "an error in a success": http_answer({"error": {"message": "overloaded", "code": "busy"}}),
    "a bad request": http_answer({"error": {"message": "no", "code": "bad", "param": "p"}}, status=400),
    "a bad name": http_answer(
        {"error": {"message": "Invalid 'messages[1].name': string does not match pattern. Expected"}}, status=400),
    "no key": http_answer({"error": {"message": "no key", "code": "invalid_api_key"}}, status=401),
    "forbidden": http_answer({"message": "no"}, status=403),
    "no model": http_answer({"error": {"message": "no model", "code": "model_not_found"}}, status=404),
    "conflict": http_answer({"error": "conflict"}, status=409),
    "unprocessable": http_answer([1, 2], status=422),
    "too many": http_answer({"error": {"message": "slow down"}}, status=429, headers=["Retry-After: 7"]),
    "no quota": http_answer({"error": {"message": "pay", "code": "insufficient_quota"}}, status=429),
    "an error page": http_answer(b"<html>oops</html>", status=502, content_type="text/html"),
    "filtered": http_answer({"error": {"message": "rude", "code": "content_filter"}}, status=400),
}  # fmt: skip
