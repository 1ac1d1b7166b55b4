"""From the results of a sample to the forecast of the run."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ag2_parallel.core.forecasting import Sampled, outlook
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.forecast import Forecast
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ag2_parallel.core.sampling import Sample
    from ag2_parallel.options import Options
    from ag2_parallel.policies import RateLimit
    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.run_results import RunResults


def forecast_of(results: RunResults, sample: Sample, options: Options, seed: int = 0) -> Forecast:
    """The forecast of the run that a sample was taken from.

    Raises:
        ConfigurationError: None of the sample's tasks ran.
    """
    by_name = {result.name: result for result in [*results.values(), *results.ignored]}
    ran = [result for result in by_name.values() if result.started_at is not None]
    if not ran:
        why = next((str(result.error) for result in by_name.values() if result.error is not None), "there are no tasks")
        raise ConfigurationError(f"nothing can be forecast, since no task of the sample ran: {why}")
    limits = () if options.rate_limits == "auto" else options.rate_limits
    workers = options.workers_for(sample.total)
    rng = random.Random(seed)  # noqa: S311 - no secret
    ahead = outlook(
        [_sampled(result, limits) for result in ran], sample.total - len(by_name), workers, rng, depth=sample.depth
    )
    spent = Usage.total(result.usage for result in ran)
    cost = None if ahead.cost is None or spent.cost is None else ahead.cost.plus(spent.cost)
    return Forecast(
        tasks=sample.total,
        whole=True,
        sampled=len(ran),
        failed=sum(not result.ok for result in ran),
        workers=workers,
        wall=ahead.wall.plus(results.metrics["wall"]),
        wall_left=ahead.wall,
        tokens=ahead.tokens.plus(spent.total_tokens + spent.estimated_tokens),
        cost=cost,
        unpriced=tuple(sorted(name for name, usage in spent.by_model.items() if usage.cost is None)),
        knee=ahead.knee,
        results=by_name,
    )


def _sampled(result: ParallelTaskResult, limits: Sequence[RateLimit]) -> Sampled:
    usage = result.usage
    loads = tuple(load for limit in limits for load in _loads(result, limit))
    busy = max(0.0, result.duration - result.waited)
    return Sampled(busy, usage.total_tokens + usage.estimated_tokens, usage.cost, loads)


def _loads(result: ParallelTaskResult, limit: RateLimit) -> Iterator[float]:
    """The seconds for which a task uses up each part of a limit; one for an endpoint is taken to hold for all of them."""
    holds = fnmatchcase(result.group or "", limit.group)
    used = _used(result.usage.by_model, limit) if holds else Usage()
    if limit.requests is not None:
        yield (used.calls + used.retried_calls) * limit.per / limit.requests
    if limit.tokens is not None:
        yield used.total_tokens * limit.per / limit.tokens
    if limit.concurrent is not None:
        calls = [span for span in result.trace if span.kind == "call" and fnmatchcase(span.label, limit.model)]
        inside = sum(span.duration for span in calls) if holds else 0.0
        yield max(0.0, inside - result.waited) / limit.concurrent


def _used(by_model: Mapping[str, Usage], limit: RateLimit) -> Usage:
    return Usage.total(usage for model, usage in by_model.items() if fnmatchcase(model, limit.model))
