"""The proxies that the environment names, as httpx and requests understand them."""

from __future__ import annotations

import ipaddress
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass

import httpx

if TYPE_CHECKING:
    from yarl import URL

_NAMES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_VARIABLES: Final = (*_NAMES, *(name.upper() for name in _NAMES))


class UnusableProxyError(httpx.ProxyError):
    """Raised where the environment names a proxy that the pool cannot speak to."""

    kind = "configuration"


def environment_proxy(url: URL) -> str | None:
    """The proxy for `url`, or None. Read anew at each call: the environment may change between runs.

    aiohttp can do this too (`trust_env`), but it asks two threads for every request.

    Raises:
        UnusableProxyError: If it is none that speaks HTTP.
    """
    return _proxy(url.scheme, url.host or "", url.port or 0, tuple(map(os.environ.get, _VARIABLES)))


@lru_cache(maxsize=256)
def _proxy(scheme: str, host: str, port: int, _environment: tuple[str | None, ...]) -> str | None:
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or exempt(host, port, proxies.get("no", "")) or proxy_bypass(host):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        kind = proxy.partition("://")[0]
        raise UnusableProxyError(
            f"the environment names a {kind} proxy for {host}, which the shared connection pool cannot speak to: "
            "use an http:// proxy, add the host to NO_PROXY, or pass an http_client of your own"
        )
    return proxy


def exempt(host: str, port: int, no_proxy: str) -> bool:
    """Whether `NO_PROXY` names a host: by itself, a domain above it, an address range, each with a port or without."""
    host = host.lower().rstrip(".")
    return any(_names(entry, host, port) for entry in no_proxy.lower().replace(",", " ").split())


def _names(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    entry = entry.partition("://")[2] or entry
    if _in_range(entry.strip("[]"), host):
        return True
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit():
        if int(number) != port:
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").lstrip(".").rstrip(".")
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))


def _in_range(entry: str, host: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
