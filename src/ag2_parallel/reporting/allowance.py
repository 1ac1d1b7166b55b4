"""How much of each task's texts fits into a report of bounded size."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNSAFE: Final = re.compile("[<>&\u2028\u2029]")


def embedded(value: Any) -> str:
    """JSON that can stand inside a script element of a page in UTF-8, whatever its texts hold.

    `<`, `>`, `&` and the line separators of JavaScript are escaped, so that no text can end the element; so are lone
    surrogates, which UTF-8 has no bytes for.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def size(text: str) -> int:
    """Bytes that a text takes in the page."""
    return len(embedded(text).encode())


def level(needs: Sequence[int], total: int) -> int:
    """The most bytes a task may have so that all together stay within `total`: who needs less leaves the rest to others."""
    left = total
    for place, need in enumerate(sorted(needs)):
        share = left // (len(needs) - place)
        if need > share:
            return share
        left -= need
    return max(needs, default=0)


def fitted(texts: Sequence[str], allowed: int) -> list[str]:
    """The texts in their order, cut where they would take more than `allowed` bytes."""
    shown = []
    for text in texts:
        need = size(text)
        if need <= allowed:
            shown.append(text)
        else:  # escapes are spread evenly, near enough
            shown.append(cut(text, int(len(text) * allowed / need)))
        allowed = max(0, allowed - need)
    return shown


def cut(text: str, length: int) -> str:
    """The first `length` characters and how many are missing, or all of a shorter text."""
    if len(text) <= length:
        return text
    return f"{text[:length]}\n[… {len(text) - length:,} more characters are in the results]"
