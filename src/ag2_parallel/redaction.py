"""Masking of keys in everything that is stored, printed or shown."""

from __future__ import annotations

import copy
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.key_shapes import MASK, masked_text
from ag2_parallel.secret_values import SECRET_NAMES, forms_of, is_secret_name, keys_of, secrets_in, secrets_of_data

if TYPE_CHECKING:
    from ag2_parallel.results import ParallelTaskResult, TaskError

__all__ = ["MASK", "SECRET_NAMES", "Redactor", "cut", "is_secret_name", "masked_config", "masked_text"]

_OFTEN: Final = 40
_MOST_OFTEN: Final = 2000
"""Texts so short are remembered as harmless, up to so many: roles, names and field names come again in every result."""

_MOST_IN_PATTERN: Final = 500
_WORTH_A_PATTERN: Final = 500
"""Texts."""
_MOST_FROM_DATA: Final = 200
"""Different secrets of tasks' data that a run remembers: each makes each text take longer."""

_forms_of = lru_cache(maxsize=10_000)(forms_of)


class _Known:
    """The secrets that were learnt, in all their forms."""

    def __init__(self, forms: Iterable[str]) -> None:
        self.forms = sorted(forms, key=len, reverse=True)
        self._shortest = len(self.forms[-1]) if self.forms else sys.maxsize
        # A pattern is the faster way through a short text, and a search for each form through a long one. To make it
        # takes as long as some hundred searches, and may be for nothing where secrets come one after the other.
        self._short = 3 * len(self.forms) if len(self.forms) <= _MOST_IN_PATTERN else 0
        self._until_pattern = _WORTH_A_PATTERN
        self._pattern: re.Pattern[str] | None = None

    def masked(self, text: str) -> str:
        length = len(text)
        if length < self._shortest:
            return text
        if length <= self._short:
            if self._pattern is not None:
                return self._pattern.sub(MASK, text)
            self._until_pattern -= 1
            if self._until_pattern <= 0:
                self._pattern = re.compile("|".join(map(re.escape, self.forms)))
        for form in self.forms:
            if form in text:
                text = text.replace(form, MASK)
        return text


class Redactor:
    """Masks every secret it was told of and whatever is shaped like a key.

    One for each run. Telling it a secret is safe from any thread.
    """

    def __init__(
        self, extra: Callable[[str], str] | None = None, *, learnt: Callable[[set[str]], None] = lambda _secrets: None
    ) -> None:
        """`extra` is the user's own `redact` function, applied first; `learnt` is told every secret once."""
        self._extra = extra
        self._tell = learnt
        self._lock = threading.Lock()
        self._learnt: set[str] = set()
        self._from_data = 0
        self._known: _Known | None = None
        self._harmless: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock: its `text` may be a run's `redact`, and go to another process."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A redactor that knows the same."""
        vars(self).update(state, _lock=threading.Lock())

    @property
    def asks_user(self) -> bool:
        """Whether a function of the user's has a word in it."""
        return self._extra is not None

    @property
    def learnt(self) -> frozenset[str]:
        """The secrets it was told of."""
        with self._lock:
            return frozenset(self._learnt)

    def learn(self, config: Any) -> None:
        """Remember every secret found in a configuration, however nested: under a telling name, or in an address."""
        self._learn(secrets_in(config))

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        """Remember the keys in variables that SDKs look into by themselves, such as `MISTRAL_API_KEY`."""
        self.learn(keys_of(environment))

    def learn_data(self, data: Any) -> None:
        """The same of a task's own data, which may be anything: see `secrets_of_data`."""
        found = secrets_of_data(data)
        if found and self._from_data < _MOST_FROM_DATA:
            self._from_data += self._learn(found)

    def _learn(self, found: set[str]) -> int:
        """Remember what is new of these; returns how many."""
        with self._lock:
            secrets = found - self._learnt
            if not secrets:
                return 0
            self._learnt |= secrets
            self._known = None  # made again when there is a text, since secrets come one after the other
            self._harmless = set()  # who still looks with what was known adds to the old set
        self._tell(secrets)
        return len(secrets)

    def _look_up(self) -> _Known:
        """What is known, made anew."""
        with self._lock:
            if self._known is None:
                self._known = _Known({form for secret in self._learnt for form in _forms_of(secret)})
            return self._known

    def text(self, text: str) -> str:
        """`text` with every secret masked."""
        if self._extra is not None:
            return self._masked(self._by_the_user(text))
        harmless = self._harmless
        if text in harmless:
            return text
        masked = masked_text((self._known or self._look_up()).masked(text))
        if masked == text and len(text) <= _OFTEN and len(harmless) < _MOST_OFTEN:
            harmless.add(text)
        return masked

    def _masked(self, text: str) -> str:
        return masked_text((self._known or self._look_up()).masked(text))

    def _by_the_user(self, text: str) -> str:
        assert self._extra is not None
        try:
            return str(self._extra(text))
        except (
            Exception,
            SystemExit,
        ) as error:  # what may not be shown as it is, and could not be redacted, is not shown
            return f"{MASK} (redact raised {type(error).__name__})"

    def value(self, value: Any) -> Any:
        """Plain data with every text in it masked; anything else is left as it is."""
        return _mapped(value, self.text)

    def known(self, value: Any) -> Any:
        """Plain data with the secrets that were learnt masked, and nothing else changed."""
        known = self._known or self._look_up()
        return _mapped(value, known.masked) if known.forms else value

    def result(self, result: ParallelTaskResult) -> ParallelTaskResult:
        """The result with every text of its chat masked."""
        return replace(
            result,
            output=self.text(result.output) if type(result.output) is str else self.known(result.output),
            summary=None if result.summary is None else self.text(result.summary),
            chat_history=self.value(result.chat_history),
            context=self.value(result.context),
            console=self.text(result.console) if result.console else "",
            trace=tuple(span.masked(self.text) for span in result.trace),
        )

    def error(self, error: TaskError) -> TaskError:
        """The error with its message and traceback masked."""
        return replace(error, message=self.text(error.message), traceback=self.text(error.traceback))


_DEEPEST: Final = 100
_AS_IS: Final = frozenset({type(None), bool, int, float})


def _mapped(value: Any, change: Callable[[str], str], above: tuple[int, ...] = ()) -> Any:
    """Plain data with `change` made to every text; circles and what is nested too deeply end in a mark."""
    kind = type(value)
    if kind is str:
        return change(value)
    if kind in _AS_IS:
        return value
    if kind not in _PLAIN:
        return _mapped_other(value, change, above)
    if id(value) in above or len(above) > _DEEPEST:
        return MASK
    above = (*above, id(value))
    if kind is dict:
        return {_mapped(key, change, above): _mapped(item, change, above) for key, item in value.items()}
    items = (_mapped(item, change, above) for item in value)
    return list(items) if kind is list else tuple(items)


_PLAIN: Final = frozenset({dict, list, tuple})


class _Noting:
    """A change of texts that notes whether there was one."""

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self.touched = False

    def __call__(self, text: str) -> str:
        changed = self._change(text)
        self.touched = self.touched or changed != text
        return changed


def _mapped_other(value: Any, change: Callable[[str], str], above: tuple[int, ...]) -> Any:
    """A value that holds text in a way of its own: the same one where nothing in it changes, else a changed copy."""
    if isinstance(value, Enum | type):
        return value
    if isinstance(value, str | bytes):
        return _mapped_text(value, change)
    if id(value) in above or len(above) > _DEEPEST:
        return MASK
    above = (*above, id(value))
    if isinstance(value, set | frozenset | dict | list | tuple):
        return _mapped_collection(value, _Noting(change), above)
    changes = {}
    fields: Iterable[str] = getattr(type(value), "model_fields", ()) or getattr(type(value), "__dataclass_fields__", ())
    for name in fields:
        noting = _Noting(change)
        new = _mapped(getattr(value, name, None), noting, above)
        if noting.touched:
            changes[name] = new
    return _changed(value, changes) if changes else value


def _mapped_collection(value: Any, noting: _Noting, above: tuple[int, ...]) -> Any:
    """A set, or an object of a subclass of Python's own collections."""
    new = _mapped(dict(value) if isinstance(value, dict) else tuple(value), noting, above)
    if not noting.touched:
        return value
    if hasattr(value, "_fields"):
        return type(value)(*new)
    return next((kind(new) for kind in (set, frozenset, list) if isinstance(value, kind)), new)


def _mapped_text(value: str | bytes, change: Callable[[str], str]) -> Any:
    text = str(value) if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
    changed = change(text)
    if changed == text:
        return value
    return changed if isinstance(value, str) else changed.encode("utf-8", "surrogateescape")


def _changed(value: Any, changes: dict[str, Any]) -> Any:
    """A copy of a pydantic model or a dataclass, frozen ones too."""
    if hasattr(value, "model_copy"):
        return value.model_copy(update=changes)
    made = copy.copy(value)
    for name, item in changes.items():
        object.__setattr__(made, name, item)
    return made


def masked_config(config: Any, name: object = None) -> Any:
    """A configuration fit to be shown: secrets masked, the structure kept."""
    if isinstance(config, Mapping):
        return {key: MASK if is_secret_name(key) and item else masked_config(item, key) for key, item in config.items()}
    if isinstance(config, list | tuple):
        return [masked_config(item, name) for item in config]
    if not isinstance(config, str):
        return config
    for secret in sorted(secrets_in({name: config}), key=len, reverse=True):  # in an address, or a connection string
        config = config.replace(secret, MASK)
    return masked_text(config)


def cut(text: str, limit: int) -> str:
    """The start of a text that was not masked yet; what would be cut in two is left out, for it may be a key."""
    if len(text) <= limit:
        return text
    kept = text[:limit]
    return f"{kept if text[limit].isspace() else _HALF.sub('', kept)}…"


_HALF: Final = re.compile(r"[^\s'\",;]+\Z")
