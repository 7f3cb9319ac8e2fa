"""Which certificates clients of HTTPS trust: read once for all of them, because it takes 20 ms and a megabyte."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def trusted(*, trust_env: bool = True) -> ssl.SSLContext:
    """What httpx trusts by default; ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` count where ``trust_env`` lets them."""
    named = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")) if trust_env else (None, None)
    return _read(*named, trust_env=any(named))


@cache
def _read(_file: str | None, _folder: str | None, *, trust_env: bool) -> ssl.SSLContext:
    import httpx  # noqa: PLC0415  # only where something is sent

    return httpx.create_ssl_context(trust_env=trust_env)
