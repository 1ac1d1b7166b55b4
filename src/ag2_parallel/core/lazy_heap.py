"""A heap whose entries can be taken back.

Taking an entry out of the middle of a heap is slow, so it is only marked. Marked entries are swept
out once they outnumber the others: each is paid for once, and the heap never holds more than twice
what is alive.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

Entry: TypeAlias = list[Any]
"""The parts of the key, then the item; None in its place marks an entry that is gone."""

_SWEEP_FROM: Final = 64
"""Fewer marked entries than this are not worth a sweep."""


class LazyHeap:
    """Items by key, smallest first."""

    __slots__ = ("_entries", "_gone")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._gone = 0

    def __len__(self) -> int:
        """How many items are alive."""
        return len(self._entries) - self._gone

    @property
    def held(self) -> int:
        """How many entries are in memory, marked ones included."""
        return len(self._entries)

    def push(self, *key: float, item: object) -> Entry:
        """Put an item in; keys must differ. The entry returned can be given to `discard`."""
        entry = [*key, item]
        heappush(self._entries, entry)
        return entry

    def discard(self, entry: Entry | None) -> None:
        """Take an entry back; nothing happens if it is gone already."""
        if entry is None or entry[-1] is None:
            return
        entry[-1] = None
        self._gone += 1
        if self._gone > _SWEEP_FROM and self._gone * 2 > len(self._entries):
            self._entries = [kept for kept in self._entries if kept[-1] is not None]
            heapify(self._entries)
            self._gone = 0

    def first(self) -> Entry | None:
        """The entry with the smallest key, left in place."""
        entries = self._entries
        while entries:
            if entries[0][-1] is not None:
                return entries[0]
            heappop(entries)
            self._gone -= 1
        return None

    def pop(self) -> Any:
        """Take out the item with the smallest key; `IndexError` if there is none."""
        if self.first() is None:
            raise IndexError("the heap is empty")
        entry = heappop(self._entries)
        item, entry[-1] = entry[-1], None
        return item

    def clear(self) -> None:
        """Forget everything."""
        for entry in self._entries:
            entry[-1] = None
        self._entries = []
        self._gone = 0
