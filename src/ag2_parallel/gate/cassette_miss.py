"""What is told of a call that is not in a cassette: the nearest recorded one, and what differs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import CassetteMissError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ag2_parallel.gate.cassette_file import Exchange

_SHOWN: Final = 5
_COUNTED: Final = 50
_LONGEST: Final = 60
_ABSENT: Final = object()


def miss(path: str, task: str, digest: str, asked: Any, exchanges: Sequence[Exchange]) -> CassetteMissError:
    """The error for a call that is not in the cassette `path`."""
    start = f'task "{task}": a model call is not in the cassette {path} and was not made'
    known = sum(each.digest == digest for each in exchanges)
    if known:
        times = "once" if known == 1 else f"{known} times"
        return CassetteMissError(
            f"{start}: the same call was recorded {times}, and is asked for once more; record the run again with Record(path)"
        )
    if not exchanges:
        return CassetteMissError(f"{start}: nothing was recorded in it; record the run with Record(path)")
    nearest = min(exchanges, key=lambda each: (_distance(each.asked, asked), each.task != task))
    told = "".join(f"\n  {line}" for line in islice(differences(nearest.asked, asked), _SHOWN))
    return CassetteMissError(
        f'{start}. The nearest recorded call, of task "{nearest.task}", differs:{told}\n'
        "Ask as it was recorded, or record the run again with Record(path)"
    )


def _distance(recorded: Any, asked: Any) -> int:
    return sum(1 for _ in islice(differences(recorded, asked), _COUNTED))


def differences(recorded: Any, asked: Any, where: str = "") -> Iterator[str]:
    """What differs between two requests, a line for each place."""
    if isinstance(recorded, Mapping) and isinstance(asked, Mapping):
        for name in dict.fromkeys([*recorded, *asked]):
            inner = f"{where}.{name}" if where else str(name)
            yield from differences(recorded.get(name, _ABSENT), asked.get(name, _ABSENT), inner)
    elif isinstance(recorded, list) and isinstance(asked, list):
        for place, (one, other) in enumerate(zip_longest(recorded, asked, fillvalue=_ABSENT)):
            yield from differences(one, other, f"{where}[{place}]")
    elif recorded is not asked and recorded != asked:
        start = _common_start(recorded, asked)
        yield f"{where}: recorded {_shown(recorded, start)}, asked {_shown(asked, start)}"


def _common_start(one: Any, other: Any) -> int:
    """Where two long texts begin to differ, a little before."""
    if not (isinstance(one, str) and isinstance(other, str)) or max(len(one), len(other)) <= _LONGEST:
        return 0
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return max(0, same - _LONGEST // 3)


def _shown(value: Any, start: int) -> str:
    if value is _ABSENT:
        return "nothing"
    text = repr(value[start:] if start else value)
    return f"{'…' if start else ''}{text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"
