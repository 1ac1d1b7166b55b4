"""An AG2 client governed for one attempt of a real gate, through either door, and what became of its calls."""

import json

from autogen import ConversableAgent, LLMConfig
from classic_scope import Scope

from ag2_parallel.frameworks.classic.govern import Governor, SeenBefore

DOORS = ("direct", "http")
KEY = "sk-" + "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL"
HELLO = [{"role": "user", "content": "hello"}]


class WatchedGate:
    """An attempt's gate that counts what was sent directly."""

    def __init__(self, attempt):
        self.attempt = attempt
        self.sent = 0

    def chat_sender(self, *args, **options):
        send = self.attempt.chat_sender(*args, **options)

        def watched(body, model):
            self.sent += 1
            return send(body, model)

        return watched

    def __getattr__(self, name):
        return getattr(self.attempt, name)


def entry(base_url, **more):
    """A configuration entry."""
    return {"model": "gpt-4o-mini", "api_key": KEY, "base_url": base_url} | more


def governed(attempt, door, *entries, **options):
    """An `OpenAIWrapper` whose calls go through `door`; `sent` of its `gate` counts the direct ones."""
    off = {"direct": False} if door == "http" else {}
    agent = ConversableAgent("agent", llm_config=LLMConfig(*({**each, **off} for each in entries), **options))
    scope = Scope()
    scope.gate = WatchedGate(attempt)
    Governor(scope, "task", SeenBefore()).agent(agent)
    agent.client.gate = scope.gate
    return agent.client


def outcome(client, **params):
    """A call's answer as AG2 takes it, or its error, in plain values."""
    try:
        answer = client.create(**({"messages": [dict(message) for message in HELLO]} | params))
    except Exception as error:
        return described(error)
    return {
        "answer": answer.model_dump(warnings=False),
        "sent": answer.model_dump(warnings=False, exclude_unset=True),
        "id": getattr(answer, "_request_id", None),
        "texts": retrieved(client, answer),
        "usage": client.actual_usage_summary,
    }


def retrieved(client, answer):
    """The messages that AG2 gets out of an answer, or its trouble with it."""
    try:
        texts = client.extract_text_or_completion_object(answer)
    except Exception as error:
        return described(error)
    return [text if isinstance(text, str) else text.model_dump() for text in texts]


def described(error):
    """An error and what it came from."""
    found = {"type": type(error).__name__, "text": str(error)}
    for name in ("status_code", "code", "param", "body", "request_id"):
        found[name] = getattr(error, name, None)
    if (response := getattr(error, "response", None)) is not None:
        found["response"] = (
            response.status_code,
            sorted(item for item in response.headers.items() if item[0] != "date"),
            response.text,
        )
    if (request := getattr(error, "request", None)) is not None:
        found["request"] = (request.method, str(request.url), json.loads(request.content))
    found["cause"] = described(error.__cause__) if isinstance(error.__cause__, Exception) else None
    return found


def request_parts(request):
    """A raw request as its line, its headers and its parsed body."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    named = sorted((name.lower(), value) for name, _, value in (header.partition(": ") for header in headers))
    return line, named, json.loads(body)
