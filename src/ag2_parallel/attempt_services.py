"""What all attempts of a run share, from the options and the machinery."""

from __future__ import annotations

import contextvars
from pathlib import Path
from typing import TYPE_CHECKING

from ag2_parallel.core.run_names import default_directory
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.gate.on_demand import GateOnDemand
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.journal.memory import MemoryRun
from ag2_parallel.workers.claims import Claims
from ag2_parallel.workers.questions import Questions
from ag2_parallel.workers.run_services import RunServices

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.core.broadcast import Broadcast
    from ag2_parallel.machinery import Machinery
    from ag2_parallel.options import Options
    from ag2_parallel.preparation import Preparation
    from ag2_parallel.records import RunJournal
    from ag2_parallel.redaction import Redactor


def attempt_services(  # noqa: PLR0913 - it joins the parts of a run
    run_id: str,
    options: Options,
    machinery: Machinery,
    preparation: Preparation,
    *,
    redactor: Redactor,
    broadcast: Broadcast,
    console: Callable[[str], list[str]],
    waited_for: Callable[[str, float], None],
    run_limit: float | None,
    journal: RunJournal | None,
) -> RunServices:
    """Join them. `run_limit` is the monotonic time of the run's limit."""
    limits = CallLimits(options.rate_limits, options.adaptive, options.hedge_after)
    root = Path(options.directory) if options.directory is not None else default_directory()
    spending = preparation.spending
    of_all = {
        "retry": options.model_retry_policy,
        "redactor": redactor,
        "limits": limits,
        "waited_for": waited_for,
        "cassette": preparation.cassette,
    }
    return RunServices(
        run_id=run_id,
        directory=root / run_id,
        context=contextvars.copy_context(),
        frameworks=preparation.frameworks,
        resources=preparation.resources.opened,
        questions=Questions(None if options.human_input == "refuse" else options.human_input),
        claims=Claims(),
        redactor=redactor,
        threads=machinery.threads,
        clock=machinery.clock,
        task_error=task_error,
        emit=broadcast.emit,
        observed=broadcast.observed,
        console=console,
        count_waiting=options.count_waiting,
        run_limit=run_limit,
        receipts=(MemoryRun() if journal is None else journal).receipts,
        tape=lambda order: None if journal is None else journal.tape(order.index, order.task.name, order.attempt),
        open_gate=lambda index, own: GateOnDemand(
            machinery.gate, of_all, own, None if spending is None else spending.of(index)
        ),
    )
