"""The report of a run as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.reporting.allowance import embedded
from ag2_parallel.reporting.report_data import report_data

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCRIPTS: Final = ("model", "load", "gantt", "table", "details", "main")
"""In the order in which they build on each other."""

_PLACE: Final = re.compile(r"\$([a-z_]+)")


def report_page(run: Mapping[str, Any]) -> bytes:
    """The page.

    What models, tools and users said is in it as data alone: escaped in a script element of type JSON, and shown by
    the page's script as text. A content security policy lets no other script run and nothing be loaded.

    Args:
        run: What `RunResults.to_dict` gives, keys masked.
    """
    fixed = _fixed()
    told = {
        "title": html.escape(f"{run['run_id']} - ag2-parallel", quote=False).encode("utf-8", "replace").decode(),
        "data": embedded(report_data(run)),
    }
    page = _PLACE.sub(lambda found: {**fixed, **told}.get(found[1], found[0]), _part("page.html"))
    return page.encode()


@cache
def _fixed() -> dict[str, str]:
    style = _part("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_part(f"{name}.js") for name in _SCRIPTS) + "\n})();\n"
    return {"style": style, "style_hash": _hash(style), "script": script, "script_hash": _hash(script)}


def _part(name: str) -> str:
    return (files("ag2_parallel.reporting") / "html" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
