"""CORS for exporters that run in a browser: off unless origins are configured."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from .response import Header

_MAX_AGE_S = b"7200"


class Cors:
    """The origins whose pages may send. An origin is ``https://host[:port]``; ``*`` in it matches anything."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = tuple(origins)

    def allows(self, origin: bytes) -> bool:
        """Whether pages of this origin may send."""
        text = origin.decode("latin-1")
        return any(fnmatchcase(text, allowed) for allowed in self._origins)

    def headers(self, origin: bytes) -> list[Header]:
        """Headers that let a page of this origin read the response; none for a page that may not."""
        return [(b"access-control-allow-origin", origin), (b"vary", b"origin")] if self.allows(origin) else []

    def preflight(self, origin: bytes, wanted: bytes) -> list[Header]:
        """The response to a preflight request; ``wanted`` is its ``Access-Control-Request-Headers``."""
        allowed = self.headers(origin)
        if not allowed:
            return []
        return [
            *allowed,
            (b"access-control-allow-methods", b"POST"),
            (b"access-control-allow-headers", wanted or b"content-type"),
            (b"access-control-max-age", _MAX_AGE_S),
        ]
