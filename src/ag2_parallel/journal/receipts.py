"""Effects that must not happen twice: an intent is on the disk before, and a receipt after."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import UncertainEffectError
from ag2_parallel.journal.checksums import checksum
from ag2_parallel.journal.codec import masked_receipt, read_text, stored_text
from ag2_parallel.journal.statements import queries
from ag2_parallel.journal.trouble import damaged
from ag2_parallel.journal.writer import Change
from ag2_parallel.records import Receipt

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from ag2_parallel.journal.active_tasks import ActiveTasks
    from ag2_parallel.journal.codec import Mask
    from ag2_parallel.journal.writer import Writer

SKIPPED: Final = Receipt("null")
"""Stands for an uncertain effect that is taken to have happened: nobody knows what it returned."""


def decided(intent: bool, receipt: Receipt | None, uncertain: str, *, task: str, key: str) -> Receipt | None:  # noqa: FBT001
    """What `begin` answers, given what there is.

    Args:
        intent: Whether there is an intent.
        receipt: The receipt, if there is one.
        uncertain: What to do about an intent without a receipt: "fail", "repeat" or "skip".
        task: The task's name, for the error.
        key: The effect's key, for the error.

    Returns:
        A receipt: it has happened. None: it is to happen now.

    Raises:
        UncertainEffectError: It may have happened, and `uncertain` is "fail".
    """
    if receipt is not None or not intent or uncertain == "repeat":
        return receipt
    if uncertain == "skip":
        return SKIPPED
    raise UncertainEffectError(
        f'task "{task}": the effect {key!r} was begun earlier, and nothing says whether it happened. '
        'Look whether it did, then resume with uncertain="skip" if so, or uncertain="repeat" if not; '
        "on the command line --uncertain skip or --uncertain repeat"
    )


class EffectValues:
    """What effects returned: masked in the file, and whole for the other attempts of this life."""

    def __init__(self, mask: Mask) -> None:
        """Nothing is known."""
        self._mask = mask
        self._whole: dict[str, dict[str, str]] = {}

    def stored(self, name: str, key: str, value: str) -> str:
        """What is written down of a value; the task `name` has it whole until it is forgotten."""
        masked = masked_receipt(value, self._mask)
        if masked != value:
            self._whole.setdefault(name, {})[key] = value
        return masked

    def whole(self, name: str, key: str, receipt: Receipt | None) -> Receipt | None:
        """A receipt from the file with its value as it was."""
        value = self._whole.get(name, {}).get(key)
        return receipt if receipt is None or value is None else Receipt(value)

    def forget(self, name: str) -> None:
        """The task is settled."""
        self._whole.pop(name, None)


class SqliteReceipts:
    """The effects of one task, in the journal; methods block until they are committed."""

    def __init__(
        self,
        writer: Writer,
        active: ActiveTasks,
        path: Path,
        *,
        name: str,
        life: int,
        uncertain: str,
        now: Callable[[], str],
        values: EffectValues,
    ) -> None:
        """For the task called `name`."""
        self._writer = writer
        self._active = active
        self._path = path
        self._name = name
        self._life = life
        self._uncertain = uncertain
        self._now = now
        self._values = values

    def begin(self, key: str) -> Receipt | None:
        """Write the intent down; see `records.Receipts`."""

        def answer(db: sqlite3.Connection) -> Receipt | UncertainEffectError | None:
            intent, receipt = self._found(db, key)
            try:
                receipt = decided(intent, receipt, self._uncertain, task=self._name, key=key)
            except UncertainEffectError as error:
                return error
            self._put(db, key, receipt.value if receipt else None)
            return receipt

        said: Receipt | UncertainEffectError | None = self._committed(answer)
        if isinstance(said, UncertainEffectError):
            raise said
        return self._values.whole(self._name, key, said)

    def finish(self, key: str, value: str) -> None:
        """Write the receipt down; see `records.Receipts`."""
        stored = self._values.stored(self._name, key, value)
        self._committed(lambda db: self._put(db, key, stored))

    def withdraw(self, key: str) -> None:
        """Forget the intent; see `records.Receipts`."""

        def drop(db: sqlite3.Connection) -> None:
            db.execute(queries()["drop_intent"], {"task": self._active.row(db, self._name), "key": stored_text(key)})

        self._committed(drop)

    def _found(self, db: sqlite3.Connection, key: str) -> tuple[bool, Receipt | None]:
        where = {"task": self._active.row(db, self._name), "key": stored_text(key)}
        row = db.execute(queries()["find_receipt"], where).fetchone()
        if row is None:
            return False, None
        if checksum(where["key"], row["value"]) != row["sum"]:
            raise damaged(self._path, f'a receipt of task "{self._name}"')
        return True, None if row["value"] is None else Receipt(read_text(row["value"]))

    def _put(self, db: sqlite3.Connection, key: str, value: str | None) -> None:
        row: dict[str, Any] = {"task": self._active.row(db, self._name), "life": self._life, "at": self._now()}
        row |= {"key": stored_text(key), "value": None if value is None else stored_text(value)}
        db.execute(queries()["put_receipt"], row | {"sum": checksum(row["key"], row["value"])})

    def _committed(self, change: Callable[[sqlite3.Connection], Any]) -> Any:
        committed: Future[Any] = Future()
        said: list[Any] = []
        self._writer.put(
            Change(
                lambda db, _: said.append(change(db)),
                done=lambda: committed.set_result(said[0]),
                lost=committed.set_exception,
                flush=True,
            )
        )
        return committed.result()
