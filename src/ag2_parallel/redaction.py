"""Masking of keys in everything that is stored, printed or shown."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from ag2_parallel.results import ParallelTaskResult, TaskError

MASK: Final = "***"

SECRET_NAMES: Final = re.compile(
    r"(?:api|access|secret|private|auth|subscription)[_-]?(?:key|token|secret)|password|passwd|passphrase|authorization|credential|(?:^|[_-])(?:token|secret)$",
    re.IGNORECASE,
)
"""Names in a configuration whose values are secrets, whatever they look like."""

_KEY_SHAPED: Final = re.compile(
    # Providers' prefixes, with a digit behind them: "sk-live-1a2b3c" is a key, "sk-learn-contrib" a word.
    # The look-ahead is bounded, so that a text that repeats a prefix ten thousand times is no trap.
    r"\b(?:sk|pk|rk)-(?=[A-Za-z_\-]{0,80}\d)[A-Za-z0-9_\-]{6,}"
    r"|\b(?:sk|pk|gsk|xai|hf|ghp|gho|ghs|glpat|pplx|r8|fw|csk|tvly|nvapi)[-_](?=[A-Za-z_\-]{0,80}\d)[A-Za-z0-9_\-]{16,}"
    r"|\bAIza[0-9A-Za-z_\-]{20,}"  # Google
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{12,}"  # AWS
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"  # JSON web token
    r"|(?<=bearer )[^\s'\"]{8,}"
    r"|(?:(?<=[?&]key=)|(?<=[?&]apikey=)|(?<=[?&]api[_-]key=)|(?<=[?&]subscription-key=))[^\s&'\"]{8,}"
    r"|(?<=:\/\/)[^\s:/@'\"]+:[^\s:/@'\"]+(?=@)",  # user:password in an address
    re.IGNORECASE,
)

_PREFIXES: Final = (
    "sk", "pk", "rk", "xai", "hf", "ghp", "gho", "ghs", "glpat", "pplx", "r8", "fw", "tvly", "nvapi"
)  # fmt: skip
"""What stands right before a dash or an underscore in a provider's key."""

_MARKS: Final = (("z", "AIza"), ("K", "AKIA"), ("S", "ASIA"), ("J", "eyJ"))
"""A letter of each that prose seldom has, and how keys of Google and AWS and web tokens begin, in the one spelling that works; every other key-shaped text has
"bearer ", "key=" or "://" in it."""

_SHORTEST_KEY: Final = len("://u:p@")

_SHORTEST: Final = 6
"""Shorter values ("x", "none", "EMPTY") are placeholders of local servers, and masking them would eat ordinary words."""


_SHORTEST_INSIDE: Final = 9
"""Bytes from which a value is looked for in the middle of base64, too: less would be found by chance."""

_OFTEN: Final = 40
_MOST_OFTEN: Final = 2000
"""Texts so short are remembered as harmless, up to so many: roles, names and field names come again in every result."""

_SCHEME: Final = re.compile(r"^\s*(?:bearer|basic|token|apikey)\s+", re.IGNORECASE)
"""What stands before the key in a header."""

_FOR_URLS: Final = str.maketrans("+/", "-_")


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
        self._learnt: frozenset[str] = frozenset()
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._harmless: set[str] = set()

    @property
    def asks_user(self) -> bool:
        """Whether a function of the user's has a word in it."""
        return self._extra is not None

    def learn(self, config: Any) -> None:
        """Remember every secret found under a telling name in a configuration, however nested."""
        secrets = set(_secrets(config, depth=0)) - self._learnt
        found = {form for secret in secrets for form in _forms(secret)} - self._known
        self._learnt |= secrets
        if found:
            self._known |= found
            longest_first = sorted(self._known, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
            self._tell(secrets)
            self._harmless = set()  # after the pattern: who still looks with the old one adds to the old set

    def text(self, text: str) -> str:
        """`text` with every secret masked."""
        if self._extra is not None:
            return self._masked(self._by_the_user(text))
        harmless = self._harmless
        if text in harmless:
            return text
        masked = self._masked(text)
        if masked == text and len(text) <= _OFTEN and len(harmless) < _MOST_OFTEN:
            harmless.add(text)
        return masked

    def _masked(self, text: str) -> str:
        return masked_text(text if self._pattern is None else self._pattern.sub(MASK, text))

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
        pattern = self._pattern
        return value if pattern is None else _mapped(value, lambda text: pattern.sub(MASK, text))

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


def _mapped(value: Any, change: Callable[[str], str], above: tuple[int, ...] = ()) -> Any:
    """Plain data with `change` made to every text; circles and what is nested too deeply end in a mark."""
    if type(value) is str:
        return change(value)
    if type(value) not in {dict, list, tuple}:
        return value
    if id(value) in above or len(above) > _DEEPEST:
        return MASK
    above = (*above, id(value))
    if type(value) is dict:
        return {_mapped(key, change, above): _mapped(item, change, above) for key, item in value.items()}
    items = (_mapped(item, change, above) for item in value)
    return list(items) if type(value) is list else tuple(items)


def masked_text(text: str) -> str:
    """`text` with whatever is shaped like a key masked."""
    return _KEY_SHAPED.sub(MASK, text) if len(text) >= _SHORTEST_KEY and _may_have_a_key(text, text.lower()) else text


def _may_have_a_key(text: str, lowered: str) -> bool:
    """Looking for what every key has is a hundred times as fast as the pattern, and single characters are found fifty times faster still."""
    if (":" in lowered and "://" in lowered) or ("=" in lowered and "key=" in lowered):
        return True
    for dash in "-_":
        if dash in lowered:
            for part in lowered.split(dash)[:-1]:
                if part.endswith(_PREFIXES):
                    return True
    for rare, mark in _MARKS:
        if rare in text and mark in text:
            return True
    return "bearer " in lowered


def masked_config(config: Any) -> Any:
    """A configuration fit to be shown: secrets masked, the structure kept."""
    if isinstance(config, Mapping):
        return {key: MASK if _is_secret_name(key) and item else masked_config(item) for key, item in config.items()}
    if isinstance(config, list | tuple):
        return [masked_config(item) for item in config]
    return masked_text(config) if isinstance(config, str) else config


def _is_secret_name(name: object) -> bool:
    return isinstance(name, str) and SECRET_NAMES.search(name) is not None


def _secrets(value: Any, *, depth: int, named: bool = False) -> list[str]:
    if isinstance(value, str) or depth > 8:
        return [value] if named and isinstance(value, str) and len(value) >= _SHORTEST else []
    if isinstance(value, Mapping):
        return [
            secret
            for key, item in value.items()
            for secret in _secrets(item, depth=depth + 1, named=named or _is_secret_name(key))
        ]
    if isinstance(value, list | tuple | set):
        return [secret for item in value for secret in _secrets(item, depth=depth + 1, named=named)]
    if hasattr(value, "get_secret_value"):  # pydantic's SecretStr
        return _secrets(value.get_secret_value(), depth=depth + 1, named=True)
    # A pydantic model or a dataclass, such as AG2's model configurations, or Classic's LLMConfig, which is neither.
    cls = type(value)
    fields: Iterable[str] = getattr(cls, "model_fields", ()) or getattr(cls, "__dataclass_fields__", ("config_list",))
    names: Iterable[str] = () if isinstance(value, type) else fields
    known = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return _secrets(known, depth=depth + 1, named=named) if known else []


def _forms(secret: str) -> set[str]:
    bare = _SCHEME.sub("", secret, count=1).strip()
    data = bare.encode("utf-8", "surrogatepass")
    encoded = base64.b64encode(data).decode()
    forms = {bare, quote(bare, safe="", errors="surrogatepass"), encoded, encoded.rstrip("=")}
    if len(data) >= _SHORTEST_INSIDE:
        forms |= {_inside(data, before) for before in range(3)}
    return forms | {form.translate(_FOR_URLS) for form in forms - {bare}}


def _inside(data: bytes, before: int) -> str:
    """What of `data` shows in the base64 of a text that has it behind `before` other bytes, such as "user:secret"."""
    encoded = base64.b64encode(bytes(before) + data).decode()
    return encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
