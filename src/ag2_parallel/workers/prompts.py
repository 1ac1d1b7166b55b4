"""From a task's prompt as written to the prompt as sent."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.tasks import Template
from ag2_parallel.templating import CompiledTemplate, TemplateError

if TYPE_CHECKING:
    from ag2_parallel.tasks import TaskContext


def rendered(prompt: Any, ctx: TaskContext) -> str | dict[str, Any] | list[dict[str, Any]]:
    """The prompt's text or messages: functions called, templates filled, messages copied.

    Raises:
        ConfigurationError: If a template does not render, or a function returns no prompt.
    """
    if callable(prompt) and not isinstance(prompt, Template):
        prompt = prompt(ctx)
    if isinstance(prompt, Template):
        return _filled(prompt, ctx)
    problem = unsendable(prompt)
    if problem:
        raise ConfigurationError(f'task "{ctx.name}": its prompt {problem}')
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, Mapping):
        return copy.deepcopy(dict(prompt))
    if isinstance(prompt, Sequence) and all(isinstance(message, Mapping) for message in prompt):
        return [copy.deepcopy(dict(message)) for message in prompt]
    raise ConfigurationError(
        f'task "{ctx.name}": its prompt function returned a {type(prompt).__name__}; '
        "return text, a Template, a message or a list of messages"
    )


def unsendable(prompt: Any) -> str | None:
    """Why a prompt can never be sent, or None: half of a surrogate pair is no text in UTF-8."""
    texts: list[Any] = [prompt] if isinstance(prompt, str) else []
    if isinstance(prompt, Mapping):
        texts = [prompt.get("content")]
    elif isinstance(prompt, Sequence) and not isinstance(prompt, str):
        texts = [message.get("content") for message in prompt if isinstance(message, Mapping)]
    for text in texts:
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return (
                    f"has half of a surrogate pair ({text[error.start]!a}) at position {error.start} and cannot be sent as "
                    'UTF-8; repair the text, for example with text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
                )
    return None


def _filled(template: Template, ctx: TaskContext) -> str:
    try:
        text = CompiledTemplate(template.text).render(
            {"upstream": ctx.upstream, "context": ctx.context, "metadata": ctx.metadata}
        )
    except TemplateError as error:
        raise ConfigurationError(f'task "{ctx.name}": its prompt template does not render: {error}') from error
    problem = unsendable(text)
    if problem:
        raise ConfigurationError(f'task "{ctx.name}": its rendered prompt {problem}')
    return text
