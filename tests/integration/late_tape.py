"""A tape in memory that commits when it is told to."""

import threading


class LateTape:
    """`records.CallTape`: `records` are those of an attempt that was cut; what is kept is committed on command."""

    def __init__(self, records=(), *, commits=True):
        self.kept = []
        self.asked = []
        self.waits_now = threading.Event()
        self._records = list(records)
        self._commits = commits
        self._waiting = []
        self._live = False

    def find(self, digest):
        self.asked.append(digest)
        record = None if self._live else next((each for each in self._records if each.digest == digest), None)
        if record is None:
            self._live = True
        else:
            self._records.remove(record)
        return record

    def keep(self, record, kept):
        self.kept.append(record)
        if self._commits:
            kept()
        else:
            self._waiting.append(kept)
            self.waits_now.set()

    def commit(self):
        """On the engine loop: what was kept is safe now."""
        self._commits = True
        waiting, self._waiting = self._waiting, []
        for kept in waiting:
            kept()
