"""Whether model servers answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.doctor.finding import Finding
from ag2_parallel.redaction import Redactor, masked_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENAI: Final = "https://api.openai.com/v1"
_PATIENCE: Final = 10.0
_ASKED: Final = frozenset({"openai", "azure", "deepseek", ""})


def entries(config: Any) -> Iterator[dict[str, Any]]:
    """The entries of a model configuration as a task file has it."""
    if isinstance(config, list):
        for each in config:
            yield from entries(each)
    elif isinstance(config, dict):
        listed = config.get("config_list")
        if listed is None:
            yield config
        else:
            yield from entries(listed)


def reachable(entry: dict[str, Any], redactor: Redactor) -> Finding:
    """Ask a server for the list of its models, which calls none."""
    import httpx

    base_url = str(entry.get("base_url") or _OPENAI).rstrip("/")
    what = f"server {redactor.text(masked_text(base_url))}"
    if str(entry.get("api_type", "")) not in _ASKED:
        return Finding(what, "note", f"not asked: {entry['api_type']} has a protocol of its own")
    key = entry.get("api_key")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(f"{base_url}/models", headers=headers, timeout=_PATIENCE)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        told = f"cannot be reached: {redactor.text(str(error)) or type(error).__name__}"
        return Finding(what, "problem", told, "check base_url, that the server runs, proxies and the network")
    if answer.status_code in {401, 403}:
        told = f"answers {answer.status_code}: " + ("the key is refused" if key else "it wants a key")
        return Finding(what, "problem", told, "check the variable that holds the key, and base_url")
    if answer.status_code >= 500:
        return Finding(what, "problem", f"answers {answer.status_code}", "look at the server's log, or try later")
    if answer.status_code != 200:
        hint = "" if base_url.endswith("/v1") else "check base_url: it often ends in /v1"
        return Finding(what, "note", f"answers, but lists no models ({answer.status_code})", hint)
    return _listed(what, answer, entry.get("model"))


def _listed(what: str, answer: Any, model: object) -> Finding:
    try:
        names = [str(each["id"]) for each in answer.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return Finding(what, "note", "answers, but not with a list of models", "check base_url: it often ends in /v1")
    if model is None or str(model) in names:
        many = "1 model" if len(names) == 1 else f"{len(names)} models"
        return Finding(what, "ok", f"answers, {many}" + (f", {model} among them" if model else ""))
    told = f"answers, and does not list {model}; it has {', '.join(names[:5])}"
    return Finding(what, "note", told, "check the model's name")
