"""The runner's options, as task files say them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ag2_parallel.cli.task_files.agents import located
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.policies import Breaker, Budget, RateLimit, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ag2_parallel.cli.task_files.document import Document
    from ag2_parallel.cli.task_files.models import RunOptions
    from ag2_parallel.cli.task_files.reading import ReadFile


def merged_options(files: Sequence[ReadFile]) -> dict[str, Any]:
    """Keyword arguments of `ParallelAgentRunner` from all files together.

    Raises:
        ConfigurationError: For an option that two files say, a path of code that leads nowhere, and a limit whose
            numbers make no sense.
    """
    options: dict[str, Any] = {}
    for file in files:
        if file.content.options is None:
            continue
        assert file.document is not None
        for name in sorted(file.content.options.model_fields_set):
            inside = ("options", name)
            if name in options:
                raise file.document.error("another file says it too; keep one", inside)
            try:
                options[name] = _value(name, file.content.options, file.document)
            except ConfigurationError as error:
                here = file.document.where(inside)
                told = [each if each.startswith(str(file.path)) else f"{here}: {each}" for each in error.problems]
                raise ConfigurationError(told) from None
    return {name: value for name, value in options.items() if value is not None}


def _value(name: str, options: RunOptions, document: Document) -> Any:  # noqa: PLR0911 - one a kind of option
    value: Any = getattr(options, name)
    if value is None:
        return None
    if name in {"retry", "model_retry"}:
        return RetryPolicy(**value.model_dump())
    if name == "rate_limits":
        return value if value == "auto" else [RateLimit(**limit.model_dump(exclude_unset=True)) for limit in value]
    if name == "budget":
        return Budget(**value.model_dump(exclude_unset=True))
    if name == "breaker":
        return Breaker(**value.model_dump(exclude_unset=True))
    if name in {"journal", "directory"}:
        return document.path.parent / value
    if name == "resources":
        return {key: located(path, document, ("options", name, key)) for key, path in value.items()}
    if name == "observers":
        return [located(path, document, ("options", name, at)) for at, path in enumerate(value)]
    if name == "redact" or (name == "human_input" and value != "refuse"):
        return located(value, document, ("options", name))
    return value
