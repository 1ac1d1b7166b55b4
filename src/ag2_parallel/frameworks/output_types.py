"""From the text of an answer to a value of the task's `output_type`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ag2_parallel.frameworks.failures import InvalidAnswerError

_FENCED = re.compile(r"\A\s*```[a-zA-Z]*\s*\n(?P<inside>.*?)\n?\s*```\s*\Z", re.DOTALL)
"""A whole answer in one Markdown code block, as models like to give JSON."""


def is_model(output_type: Any) -> bool:
    """Whether a provider can be asked for this type: a pydantic model class."""
    from pydantic import BaseModel

    return isinstance(output_type, type) and issubclass(output_type, BaseModel)


def type_problem(output_type: Any) -> str | None:
    """Why nothing can be validated into `output_type`, or None."""
    from pydantic import PydanticUserError
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation

    why = "it names a type that is not known here"
    try:
        if getattr(_adapter(output_type), "pydantic_complete", True):
            return None
    except (
        PydanticUserError,
        PydanticSchemaGenerationError,
        PydanticUndefinedAnnotation,
        TypeError,
        NameError,
    ) as error:
        why = str(error).splitlines()[0]
    return f"{output_type!r} is no type that an answer can be validated into: {why}"


def validated(output_type: Any, text: str) -> Any:
    """The answer's text as a value of `output_type`.

    It is read as JSON, also out of a Markdown code block; text that is no JSON is taken as it is.

    Raises:
        InvalidAnswerError: If it does not fit; the message lists what is wrong.
    """
    from pydantic import ValidationError

    if output_type is str:
        return text
    fenced = _FENCED.match(text)
    adapter = _adapter(output_type)
    try:
        return adapter.validate_json(fenced["inside"] if fenced else text.strip())
    except ValidationError as error:
        wrong = error
    if all(item["type"] == "json_invalid" for item in wrong.errors()):
        try:
            return adapter.validate_python(text.strip())
        except ValidationError as error:
            if not is_model(output_type):
                wrong = error
    raise InvalidAnswerError(told(wrong)) from wrong


def validated_value(output_type: Any, value: Any) -> Any:
    """What a `run` function returned as a value of `output_type`; a text is read like an answer's.

    Raises:
        InvalidAnswerError: If it does not fit.
    """
    from pydantic import ValidationError

    if isinstance(value, str):
        return validated(output_type, value)
    try:
        return _adapter(output_type).validate_python(value)
    except ValidationError as error:
        raise InvalidAnswerError(told(error)) from error


def asked_again(problem: InvalidAnswerError) -> str:
    """The message that asks an agent for a better answer."""
    return (
        f"Your last answer could not be used. {problem}\n"
        "Answer again with the corrected answer alone: no explanation, no code block."
    )


def told(error: Any) -> str:
    """What pydantic found wrong with an answer, one finding a line, without its links."""
    lines = [
        f"- {'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False)[:20]
    ]
    return f"the answer does not fit {error.title}:\n" + "\n".join(lines)


@lru_cache(maxsize=128)
def _adapter_of(output_type: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(output_type)


def _adapter(output_type: Any) -> Any:
    try:
        return _adapter_of(output_type)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        from pydantic import TypeAdapter

        return TypeAdapter(output_type)
