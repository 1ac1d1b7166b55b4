"""Things that all tasks of a run share, opened before the first task and closed after the last."""

from __future__ import annotations

import logging
import traceback
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

from ag2_parallel.redaction import masked_text

_log = logging.getLogger("ag2_parallel.resources")


class Resources:
    """What the `resources` factories made.

    A factory may return a context manager, which is entered and left, or an object with `close()`,
    which is called. They are closed in the reverse order of opening.
    """

    def __init__(
        self, factories: Mapping[str, Callable[[], Any]] | None, mask: Callable[[str], str] = masked_text
    ) -> None:
        """Open nothing yet; `mask` hides the secrets of what is logged."""
        self._mask = mask
        self._factories = dict(factories or {})
        self._stack = ExitStack()
        self.opened: dict[str, Any] = {}

    def open(self) -> None:
        """Call every factory; what it raises passes through, after what was opened is closed again."""
        try:
            for name, factory in self._factories.items():
                self.opened[name] = self._open_one(factory)
        except BaseException:
            self.close()
            raise

    def _open_one(self, factory: Callable[[], Any]) -> Any:
        made = factory()
        if isinstance(made, AbstractContextManager):
            return self._stack.enter_context(made)
        if callable(close := getattr(made, "close", None)):
            self._stack.callback(close)
        return made

    def close(self) -> None:
        """Close what was opened; an error in it is logged and hurts nobody."""
        try:
            self._stack.close()
        except BaseException:  # a resource that leaves badly must not take the run's end along
            _log.error("closing the run's resources failed\n%s", self._mask(traceback.format_exc()))
