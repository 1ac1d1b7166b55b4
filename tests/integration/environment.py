"""Environment variables about proxies and certificates, for one test alone."""

import contextlib
import os

_STEMS = ("http", "https", "all", "no")
_CLEARED = {f"{stem}_proxy" for stem in _STEMS} | {f"{stem}_PROXY".upper() for stem in _STEMS} | {
    "SSL_CERT_FILE", "SSL_CERT_DIR",
}  # fmt: skip


@contextlib.contextmanager
def environment(**variables):
    """These variables; those about proxies and certificates that are not named are absent."""
    before = {name: os.environ.pop(name, None) for name in _CLEARED | set(variables)}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
