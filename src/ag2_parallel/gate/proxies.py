"""The proxies that the environment names, as httpx and requests understand them."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass

import httpx

if TYPE_CHECKING:
    from yarl import URL

_NAMES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_VARIABLES: Final = (*_NAMES, *(name.upper() for name in _NAMES))


def environment_proxy(url: URL) -> str | None:
    """The proxy for `url`, or None. Read anew at each call: the environment may change between runs.

    aiohttp can do this too (`trust_env`), but it asks two threads for every request.
    """
    return _proxy(url.scheme, url.host or "", tuple(map(os.environ.get, _VARIABLES)))


@lru_cache(maxsize=256)
def _proxy(scheme: str, host: str, _environment: tuple[str | None, ...]) -> str | None:
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(host):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        kind = proxy.partition("://")[0]
        raise httpx.ProxyError(
            f"the environment names a {kind} proxy for {host}, which the shared connection pool cannot speak to: "
            "use an http:// proxy, add the host to NO_PROXY, or pass an http_client of your own"
        )
    return proxy
