"""Keys that their shape gives away, wherever they stand in a text."""

from __future__ import annotations

import base64
import re
from typing import Final

MASK: Final = "***"

_PREFIXED: Final = re.compile(
    # Providers' prefixes, with a digit behind them: "sk-live-1a2b3c" is a key, "sk-learn-contrib" a word.
    # The look-ahead is bounded, so that a text that repeats a prefix ten thousand times is no trap.
    r"\b(?:sk|pk|rk)-(?=[A-Za-z_\-]{0,80}\d)[A-Za-z0-9_\-]{6,}"
    r"|\b(?:sk|pk|gsk|xai|hf|ghp|gho|ghs|glpat|pplx|r8|fw|csk|tvly|nvapi)[-_](?=[A-Za-z_\-]{0,80}\d)[A-Za-z0-9_\-]{16,}",
    re.IGNORECASE,
)
_PREFIXES: Final = (
    "sk", "pk", "rk", "xai", "hf", "ghp", "gho", "ghs", "glpat", "pplx", "r8", "fw", "tvly", "nvapi"
)  # fmt: skip
"""What stands right before a dash or an underscore in a provider's key."""

_MARKED: Final = re.compile(
    r"\bAIza[0-9A-Za-z_\-]{20,}"  # Google
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{12,}"  # AWS
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"  # JSON web token
)

_BEARER: Final = re.compile(r"(bearer )[^\s'\"]{8,}", re.IGNORECASE)
_BASIC: Final = re.compile(r"(\bbasic )([A-Za-z0-9+/_\-]{6,}={0,2})", re.IGNORECASE)

_IN_QUERY: Final = re.compile(
    r"([?&](?:(?:(?:api[_-]?|subscription-)?key|(?:access_|auth_)?token|sig)=))[^\s&'\"]{8,}"
    r"|((?:account|sharedaccess)key=)[A-Za-z0-9+/]{20,}={0,2}",  # connection strings of Azure
    re.IGNORECASE,
)

_IN_ADDRESS: Final = re.compile(
    r"(://)(?:[^\s:/@'\"]*:[^\s/'\"]+"  # user:password
    r"|(?=[^\s:/@'\"]{0,80}\d)[^\s:/@'\"]{16,})(?=@)"  # a token alone, which is longer than names are, and has a digit
)

_COOKIE: Final = re.compile(
    r"(cookie2?(?:[\"']?\s*:\s*b?[\"']?|[\"'],\s*b?[\"']))"  # of a header, of a mapping, of a list of pairs
    r"([^\s\"'=;,]{1,200}=(?:\"[^\"\r\n]*\"|[^\s\"';]*)(?:;[^\"'\r\n;]*)*)",
    re.IGNORECASE,
)
_SHORTEST_COOKIE: Final = len("sid=1234")

_SHORTEST_KEY: Final = len("://:p@")


def masked_text(text: str) -> str:
    """`text` with whatever is shaped like a key masked."""
    if len(text) < _SHORTEST_KEY:
        return text
    # Looking for what every key has is a hundred times as fast as a pattern, and for single characters fifty times faster still.
    lowered = text.lower()
    if "=" in lowered:
        text = _after_equals(text, lowered)
    if ":" in lowered:
        if "://" in lowered and "@" in lowered:
            text = _IN_ADDRESS.sub(r"\1" + MASK, text)
        if "basic " in lowered:
            text = _BASIC.sub(_basic, text)
    if ("-" in lowered or "_" in lowered) and _has_prefix(lowered):
        text = _PREFIXED.sub(MASK, text)
    # A letter of each mark that prose seldom has comes first; the marks have one spelling that works.
    if (
        ("z" in text and "AIza" in text)
        or ("K" in text and "AKIA" in text)
        or ("S" in text and "ASIA" in text)
        or ("J" in text and "eyJ" in text)
    ):
        text = _MARKED.sub(MASK, text)
    return _BEARER.sub(r"\1" + MASK, text) if "bearer " in lowered else text


def _after_equals(text: str, lowered: str) -> str:
    if "key=" in lowered or "token=" in lowered or "sig=" in lowered:
        text = _IN_QUERY.sub(lambda found: f"{found[1] or found[2]}{MASK}", text)
    return _COOKIE.sub(_cookie, text) if "cookie" in lowered else text


def _has_prefix(lowered: str) -> bool:
    for dash in "-_":
        if dash in lowered:
            for part in lowered.split(dash)[:-1]:
                if part and part.endswith(_PREFIXES):  # lines of dashes have nothing between them
                    return True
    return False


def _cookie(found: re.Match[str]) -> str:
    return f"{found[1]}{MASK}" if len(found[2]) >= _SHORTEST_COOKIE else found[0]


def _basic(found: re.Match[str]) -> str:
    """Masked where it is a name and a password: "basic training" is none."""
    return f"{found[1]}{MASK}" if ":" in basic_credentials(found[2]) else found[0]


def basic_credentials(encoded: str) -> str:
    """What stands behind "Basic" in a header, such as "user:password"; empty where it is nothing of the kind."""
    padded = encoded.rstrip("=") + "=" * (-len(encoded.rstrip("=")) % 4)
    try:
        text = base64.b64decode(
            padded, altchars=b"-_" if "-" in padded or "_" in padded else None, validate=True
        ).decode()
    except ValueError:  # of the base64, or of the text in it
        return ""
    return text if text.isprintable() else ""
