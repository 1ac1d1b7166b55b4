"""`results.timeline(path)`: the report page, or the Gantt alone as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.reporting.private_file import write_private

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

PAGES: Final = (".html", ".htm")
PICTURES: Final = (".svg", ".png")


def write_timeline(run: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write the timeline of a run in the form that the name's ending says, readable by its owner alone.

    Args:
        run: What `RunResults.to_dict` gives.
        path: `.html` for the whole report; `.svg` or `.png` for the Gantt alone, which needs matplotlib.

    Raises:
        ValueError: For any other ending.
        MissingExtraError: If matplotlib is needed and not installed.
        OSError: If the file cannot be written.
    """
    ending = Path(path).suffix.lower()
    if ending in PAGES:
        from ag2_parallel.reporting.page import report_page

        return write_private(path, report_page(run))
    if ending in PICTURES:
        from ag2_parallel.reporting.gantt_plot import gantt_picture

        return write_private(path, gantt_picture(run, ending[1:]))
    raise ValueError(f"timeline: {str(path)!r} ends in {ending or 'nothing'!r}; use .html, .svg or .png")
