"""``google.rpc.Status`` and its ``RetryInfo``, written by hand: four fields are not worth a dependency."""

from __future__ import annotations

from typing import Final

from sidejudge.integrations.otlp.wire.varint import varint

CODES: Final = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 413: 8, 415: 12, 429: 8, 502: 14, 503: 14, 504: 14}
"""``google.rpc.Code`` of an HTTP status."""
_RETRY_INFO: Final = b"type.googleapis.com/google.rpc.RetryInfo"


def rpc_status(code: int, message: str, retry_after_s: float | None = None) -> bytes:
    """A status: field 1 the code, 2 the message, 3 a ``RetryInfo`` if there is a delay after which to send again."""
    text = message.encode("utf-8", "replace")[:4096]
    return b"\x08" + varint(code) + _field(2, text) + (b"" if retry_after_s is None else _retry(retry_after_s))


def _retry(seconds: float) -> bytes:
    """``Any`` with a ``RetryInfo`` with a ``Duration``."""
    whole, nanos = divmod(round(seconds * 1e9), 10**9)
    duration = b"\x08" + varint(whole) + b"\x10" + varint(nanos)
    return _field(3, _field(1, _RETRY_INFO) + _field(2, _field(1, duration)))


def _field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + varint(len(value)) + value
