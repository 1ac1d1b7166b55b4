"""Results on their way from the schedule to whoever reads: written down first, where there is a journal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ag2_parallel.results import TaskStatus

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ag2_parallel.core.entries import RunHooks
    from ag2_parallel.core.kept import Kept
    from ag2_parallel.core.notices import Notices
    from ag2_parallel.core.outlet import Outlet
    from ag2_parallel.records import RunJournal
    from ag2_parallel.results import ParallelTaskResult


class Publisher:
    """Publishes each result once, in the order of their commits. On the engine loop only.

    Attributes:
        counts: How many tasks settled with each status.
    """

    def __init__(
        self,
        *,
        outlet: Outlet,
        notices: Notices,
        hooks: RunHooks,
        post: Callable[[Callable[[], None]], None],
        journal: RunJournal | None,
    ) -> None:
        """`post` runs a function on the engine loop, from any thread."""
        self.counts = dict.fromkeys(map(str, TaskStatus), 0)
        self._outlet = outlet
        self._notices = notices
        self._hooks = hooks
        self._post = post
        self._journal = journal
        self._pending: dict[int, ParallelTaskResult] = {}
        self._then: Callable[[], None] | None = None

    def settled(self, result: ParallelTaskResult, fingerprint: str, *, cut: bool, alone: bool) -> None:
        """A task has its result; `cut`: its last attempt was ended from outside; `alone`: it depends on no other."""
        self.counts[str(result.status)] += 1
        self._hooks.settled(result)
        if self._journal is None:
            self._publish(result)
            return
        self._pending[result.index] = result
        committed = partial(self._post, partial(self._committed, result.index))
        never_began = alone and result.status is TaskStatus.SKIPPED
        self._journal.settle(result, fingerprint, cut=cut, if_none=never_began, published=committed)

    def kept(self, kept: Kept) -> None:
        """A task keeps its result of an earlier life, which is written down already."""
        self.counts[str(kept.status)] += 1
        self._hooks.kept(kept)
        self._outlet.put(kept)
        self._notices.kept(kept)

    def give_up_journal(self) -> None:
        """Nothing can be written any more: what waits for that is published without."""
        self._journal = None
        for index in list(self._pending):
            self._committed(index)

    def hurry(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """The run is being stopped: what is not written down in so many seconds is published without."""
        loop.call_later(seconds, self.give_up_journal)

    def when_all_out(self, then: Callable[[], None]) -> None:
        """Call `then` once everything settled so far is published."""
        self._then = then
        self._look_for_the_end()

    def _committed(self, index: int) -> None:
        result = self._pending.pop(index, None)
        if result is not None:  # not published already, without a journal
            self._publish(result)
        self._look_for_the_end()

    def _publish(self, result: ParallelTaskResult) -> None:
        self._hooks.published(result)
        self._outlet.put(result)
        self._notices.finished(result)

    def _look_for_the_end(self) -> None:
        if self._then is not None and not self._pending:
            then, self._then = self._then, None
            then()
