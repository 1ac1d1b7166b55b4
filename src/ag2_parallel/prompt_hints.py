"""What is allowed in a prompt and seldom meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from ag2_parallel.tasks import ParallelTask

_PLACE: Final = re.compile(r"\{\{-?\s*(?:upstream|context|metadata)\b[^{}]*\}\}")
"""A place of a template over what a task's template may use."""


class PromptHint(NamedTuple):
    """What to tell, once a run for each `kind`."""

    kind: str
    text: str


def prompt_hint(task: ParallelTask, prompt: Any) -> PromptHint | None:
    """What to tell of a task whose prompt has become `prompt`; None: nothing."""
    if not prompt:
        text = (
            f'task "{task.name}" has no prompt, so its agent gets an empty message; say what it is asked: '
            f'ParallelTask("{task.name}", "Summarise the case.")'
        )
        return PromptHint("no prompt", text)
    if isinstance(task.prompt, str) and (place := _PLACE.search(task.prompt)):
        text = (
            f'task "{task.name}": its prompt is plain text, so its agent reads {place[0]} as it stands; to have it filled, '
            "pass Template(...) as the prompt (in a task file: prompt_template)"
        )
        return PromptHint("plain text", text)
    return None
