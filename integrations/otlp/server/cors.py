"""CORS for exporters that run in a browser: off unless origins are named."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from .response import Header

_MAX_AGE_S = b"7200"


class Cors:
    """Which origins' pages may send. An origin is ``https://host[:port]``; ``*`` in it stands for anything."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = tuple(origins)

    def headers(self, origin: bytes) -> list[Header]:
        """What lets a page of this origin read the answer; nothing for a page that may not."""
        said = origin.decode("latin-1")
        if not any(fnmatchcase(said, allowed) for allowed in self._origins):
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"origin")]

    def preflight(self, origin: bytes, wanted: bytes) -> list[Header]:
        """The answer to a page that asks what it may send; ``wanted`` are the headers that it names."""
        allowed = self.headers(origin)
        if not allowed:
            return []
        return [
            *allowed,
            (b"access-control-allow-methods", b"POST"),
            (b"access-control-allow-headers", wanted or b"content-type"),
            (b"access-control-max-age", _MAX_AGE_S),
        ]
