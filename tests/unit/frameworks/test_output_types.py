"""Answers validated into types."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from ag2_parallel.frameworks.failures import InvalidAnswerError
from ag2_parallel.frameworks.output_types import asked_again, is_model, type_problem, validated, validated_value


class Finding(BaseModel):
    name: str
    score: int = Field(ge=0)


@dataclass
class Point:
    x: int


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        (Finding, '{"name": "a", "score": 1}', Finding(name="a", score=1)),
        (Finding, 'text\n```\n{"name": "a", "score": 1}\n```', None),
        (Finding, '```json\n{"name": "a", "score": 1}\n```', Finding(name="a", score=1)),
        (Finding, "no JSON", None),
        (Finding, '{"name": "a", "score": -1}', None),
        (Point, '{"x": 1}', Point(1)),
        (list[Point], '[{"x": 1}]', [Point(1)]),
        (Colour, "red", Colour.RED),
        (Colour, '"red"', Colour.RED),
        (Colour, "blue", None),
        (bool, "yes", True),
        (float, "not a number", None),
        (str, '"kept"', '"kept"'),
        (Annotated[int, Field(gt=3)], "4", 4),
        (Annotated[int, Field(gt=3)], "3", None),
    ],
)
def test_text(output_type, text, value):
    assert type_problem(output_type) is None
    if value is None:
        with pytest.raises(InvalidAnswerError, match="does not fit"):
            validated(output_type, text)
    else:
        assert validated(output_type, text) == value


def test_values_of_functions():
    assert validated_value(Finding, {"name": "a", "score": 1}) == Finding(name="a", score=1)
    assert validated_value(Finding, Finding(name="a", score=1)).score == 1
    assert validated_value(int, "3") == 3
    with pytest.raises(InvalidAnswerError):
        validated_value(int, ["3"])


def test_every_finding_is_told_without_links():
    with pytest.raises(InvalidAnswerError) as caught:
        validated(Finding, '{"score": "x"}')
    assert str(caught.value).splitlines()[1:] == [
        "- name: Field required",
        "- score: Input should be a valid integer, unable to parse string as an integer",
    ]
    assert "Field required" in asked_again(caught.value)


def test_types_that_are_none():
    class Opaque:
        pass

    assert "no type" in type_problem(Opaque)
    assert "no type" in type_problem("Missing")
    assert type_problem(Annotated[dict, {"un": "hashable"}]) is None
    assert is_model(Finding)
    assert not any(map(is_model, (Point, list[int], Finding(name="a", score=1))))
