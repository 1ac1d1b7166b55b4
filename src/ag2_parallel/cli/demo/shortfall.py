"""Why there is nothing to compare: what kept tasks from succeeding, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.cli.demo.teams import ASSESSMENT

if TYPE_CHECKING:
    from ag2_parallel.run_results import RunResults


def shortfall(side_by_side: RunResults, one_by_one: RunResults | None, address: str | None) -> str | None:
    """Say what went wrong; None if every task succeeded wherever it was run.

    Args:
        side_by_side: Results of the tasks at once.
        one_by_one: Of the same tasks with one worker; None where that was not run.
        address: Of a server that somebody else runs, which may not be there.
    """
    if address is not None and _nobody_was_reached(side_by_side):
        return f"no team reached the server at {address}; is it running?"
    for results, where in ((side_by_side, ""), (one_by_one, " one after another")):
        if results is not None and not results.ok:
            missing = len(results) - len(results.succeeded)
            return f"{missing} of {len(results)} tasks did not succeed{where}: no comparison"
    return None


def _nobody_was_reached(results: RunResults) -> bool:
    """Whether every team failed for want of a connection; the assessment depends on them and was skipped."""
    errors = [result.error for result in results.values() if result.name != ASSESSMENT]
    return all(error is not None and error.kind == "connection" for error in errors)
