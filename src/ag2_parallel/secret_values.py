"""Secrets in a configuration, found by where they stand, and the forms in which they may be seen again."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote

from ag2_parallel.key_shapes import basic_credentials

SECRET_NAMES: Final = re.compile(
    r"(?:api|access|account|secret|private|auth|subscription)[_-]?(?:key|token|secret)|password|passwd|passphrase|authorization|credential"
    r"|(?:^|[_-])(?:token|secret|jwt|cookies?)$|(?-i:(?<=[a-z])(?:Token|Secret|Cookies?)$)",
    re.IGNORECASE,
)
"""Names in a configuration whose values are secrets, whatever they look like."""

_DATA_NAMES: Final = re.compile(
    r"(?:api|access|account|private|auth|subscription)[_-]?(?:key|token)|password|passwd|passphrase", re.IGNORECASE
)
"""The same in data, which is about anything."""

_VARIABLES: Final = re.compile(r"_(?:API_KEY|ACCESS_KEY|AUTH_TOKEN|SESSION_TOKEN)$|^HF_TOKEN$")

_COOKIE_NAMES: Final = re.compile(r"cookies?$", re.IGNORECASE)
_CONNECTION_NAMES: Final = re.compile(r"conn(?:ection)?[_-]?(?:string|str)|(?:^|[_-])dsn$", re.IGNORECASE)
_QUERY_NAMES: Final = frozenset({"key", "sig", "signature", "code"})
"""Of an address's query, besides the names of secrets."""

_SHORTEST: Final = 6
"""Shorter values ("x", "none", "EMPTY") are placeholders of local servers, and masking them would eat ordinary words."""

_PLACEHOLDERS: Final = frozenset(
    {
        "anything", "changeme", "not-needed", "ollama", "lm-studio", "no-key-required", "passwd", "password",
        "placeholder", "secret", "unused", "username",
    }
)  # fmt: skip
"""The same of longer ones, and of examples."""

_SHORTEST_NUMBER: Final = 8
_SHORTEST_COOKIE: Final = 12
_SHORTEST_TOKEN: Final = 16
"""A user of an address that has so many characters, digits among them, is a token."""

_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://(?=\S*\Z)(?:([^\s/'\"]*)@)?[^?]*(\?.*)?")
_LONGEST_ADDRESS: Final = 4096
_PARAMETER: Final = re.compile(r"[?&]([^=&]+)=([^&#\s]+)")
_SETTING: Final = re.compile(r"([A-Za-z_ ]{1,40}?)\s*=\s*(\"[^\"]*\"|'[^']*'|[^;]*)")
_SPACED_SETTING: Final = re.compile(r"([A-Za-z_]{1,40})\s*=\s*(\"[^\"]*\"|'[^']*'|\S*)")
_SETTING_NAMES: Final = re.compile(r"password|pwd|key$|secret|token|signature", re.IGNORECASE)

_SHORTEST_INSIDE: Final = 9
"""Bytes from which a value is looked for in the middle of base64, too: less would be found by chance."""

_SCHEME: Final = re.compile(r"^\s*(bearer|basic|token|apikey)\s+", re.IGNORECASE)
"""What stands before the key in a header."""

_FOR_URLS: Final = str.maketrans("+/", "-_")
_ESCAPED: Final = re.compile(r"[&<>+'\"/]")
"""What some servers' JSON writes as `\\u002b` and the like."""

_MOST: Final = 100_000
_MOST_OF_DATA: Final = 2000
"""Values that are looked at."""


@lru_cache(maxsize=4096)
def is_secret_name(name: object) -> bool:
    """Whether what is called so is a secret."""
    return isinstance(name, str) and SECRET_NAMES.search(name) is not None


def keys_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that SDKs take keys from by themselves, by the names that providers give them."""
    return {name: value for name, value in environment.items() if _VARIABLES.search(name)}


def secrets_of_data(data: Any) -> set[str]:
    """Secrets in a task's own data, which may be anything.

    A column of words is called "token" there, too: so the names are fewer, and a secret has no space and is long, or has
    a digit. Of long data the first values are looked at, for many tasks may share them.
    """
    return set() if data is None else set(filter(_is_opaque, _found(data, _MOST_OF_DATA, _telling_in_data)))


def _is_opaque(text: str) -> bool:
    """Whether it can be no word."""
    return not any(map(str.isspace, text)) and (len(text) >= 16 or (len(text) >= 8 and any(map(str.isdigit, text))))


def secrets_in(config: Any) -> set[str]:
    """Every secret in a configuration, however nested: under a telling name, in an address, in a connection string."""
    return _found(config, _MOST, _telling)


def _found(config: Any, most: int, telling: Callable[[object], str]) -> set[str]:
    found: set[str] = set()
    waiting: list[tuple[Any, str]] = [(config, "")]
    seen: dict[tuple[int, str], Any] = {}  # with the values, so that no number is used twice
    while waiting and most > 0:
        value, name = waiting.pop()
        most -= 1
        if isinstance(value, str):
            if name or "://" in value:
                found.update(_of_text(value, name))
        elif isinstance(value, bytes | bytearray):
            found.update(_of_text(bytes(value).decode("utf-8", "surrogateescape"), name))
        elif isinstance(value, int | float) or value is None:
            if name and type(value) is int and len(str(abs(value))) >= _SHORTEST_NUMBER:
                found.add(str(value))
        elif (id(value), name) not in seen:
            seen[id(value), name] = value
            waiting.extend(_parts(value, name, telling))
    return found


def _parts(value: Any, name: str, telling: Callable[[object], str]) -> Iterable[tuple[Any, str]]:
    if isinstance(value, Mapping):
        return [(item, name or telling(key)) for key, item in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(item, name) for item in value]
    if hasattr(value, "get_secret_value"):  # pydantic's SecretStr and SecretBytes
        return [(value.get_secret_value(), name or "secret")]
    # A pydantic model or a dataclass, such as AG2's model configurations, or Classic's LLMConfig, which is neither.
    cls = type(value)
    fields: Iterable[str] = getattr(cls, "model_fields", ()) or getattr(cls, "__dataclass_fields__", ("config_list",))
    names: Iterable[str] = () if isinstance(value, type) else fields
    held = [(getattr(value, each), name or telling(each)) for each in names if hasattr(value, each)]
    more = getattr(value, "model_extra", None) if names else None
    return [*held, *(_parts(more, name, telling) if isinstance(more, dict) else ())]


@lru_cache(maxsize=4096)
def _telling(name: object) -> str:
    """The name, where it says that a secret may stand under it, else nothing."""
    if not isinstance(name, str):
        return ""
    return name if SECRET_NAMES.search(name) or _CONNECTION_NAMES.search(name) else ""


@lru_cache(maxsize=4096)
def _telling_in_data(name: object) -> str:
    return name if isinstance(name, str) and _DATA_NAMES.search(name) else ""


def _of_text(text: str, name: str) -> Iterator[str]:
    if "://" in text and len(text) <= _LONGEST_ADDRESS and (address := _ADDRESS.fullmatch(text.strip())):
        yield from filter(_is_worth, _of_address(address))
    if not name:
        return
    if _CONNECTION_NAMES.search(name):
        yield from filter(_is_worth, _of_connection(text))
    elif _COOKIE_NAMES.search(name):
        yield from _of_cookies(text)
    else:
        scheme = _SCHEME.match(text)
        bare = text[scheme.end() :].strip() if scheme else text.strip()
        both = basic_credentials(bare) if scheme and scheme[1].lower() == "basic" else ""
        yield from filter(_is_worth, (bare, both, both.partition(":")[2]))


def _of_address(address: re.Match[str]) -> Iterator[str]:
    scheme, who, query = address[1], address[2] or "", address[3] or ""
    user, _, password = who.partition(":")
    if password:
        yield from (password, unquote(password), unquote(who))
    long = len(user) >= _SHORTEST_TOKEN and any(map(str.isdigit, user))
    if long or (not password and scheme.lower() in {"http", "https"} and any(map(str.isdigit, user))):
        yield from (user, unquote(user))
    for parameter in _PARAMETER.finditer(query):
        if is_secret_name(parameter[1]) or parameter[1].lower() in _QUERY_NAMES:
            yield from (parameter[2], unquote(parameter[2]))


def _of_connection(text: str) -> Iterator[str]:
    """The secrets in `Server=...;Password=...` and `host=... password=...`; all of it, where it has no parts."""
    if "=" not in text:
        yield from () if "://" in text else (text.strip(),)
        return
    for setting in (_SETTING if ";" in text else _SPACED_SETTING).finditer(text):
        if _SETTING_NAMES.search(setting[1]):
            yield setting[2].strip().strip("\"'")


def _of_cookies(text: str) -> Iterator[str]:
    """The values that are long enough to be no settings, such as "dark", and all of them together."""
    values = [cookie.partition("=")[2].strip().strip('"') for cookie in text.split(";")]
    for value in (text.strip(), *values):
        if len(value) >= _SHORTEST_COOKIE or (len(value) >= _SHORTEST_NUMBER and any(map(str.isdigit, value))):
            yield value


def _is_worth(secret: str) -> bool:
    return len(secret) >= _SHORTEST and secret.lower() not in _PLACEHOLDERS


def forms_of(secret: str) -> set[str]:
    """How a secret may be spelled where it is seen again: in an address, in JSON, in a page, in base64."""
    data = _data(secret)
    encoded = base64.b64encode(data).decode()
    forms = {encoded, encoded.rstrip("=")}
    if len(data) >= _SHORTEST_INSIDE:
        forms |= {_inside(data, before) for before in range(3)}
    forms |= {form.translate(_FOR_URLS) for form in forms}
    forms.add(secret)
    return forms if secret.isalnum() and secret.isascii() else forms | _spellings(secret)


def _spellings(secret: str) -> set[str]:
    """Those of signs that are not everywhere what they are; most keys have none."""
    forms = set()
    for quoted in (quote(secret, safe="", errors="surrogatepass"), quote(secret, errors="surrogatepass")):
        forms |= {quoted, re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)}
    forms.add(quote_plus(secret, errors="surrogatepass"))
    text = json.dumps(secret, ensure_ascii=False)[1:-1]
    forms.add(_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", secret))
    forms.add(_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04X}", secret))
    forms |= {json.dumps(secret)[1:-1], text, text.replace("/", "\\/"), repr(secret)[1:-1]}
    forms |= {html.escape(secret), html.escape(secret, quote=False)}
    return forms | ({repr(_data(secret))[2:-1]} if not secret.isascii() else set())


def _data(secret: str) -> bytes:
    try:
        return secret.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a pair of another kind
        return secret.encode("utf-8", "surrogatepass")


def _inside(data: bytes, before: int) -> str:
    """What of `data` shows in the base64 of a text that has it behind `before` other bytes, such as "user:secret"."""
    encoded = base64.b64encode(bytes(before) + data).decode()
    return encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
