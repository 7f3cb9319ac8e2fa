"""Contents token: the secret of those who may read the store, by which a caller on this machine is shown contents.

An address cannot decide that: a proxy on this machine makes every caller local. The token is in a file beside the store
that only its owner may read. ``sidejudge serve`` prints a link that holds it and begins a browser's session; commands
on this machine read the file.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fastapi import Request

HEADER: Final = "x-sidejudge-contents-token"
"""Request header with the token."""
FILE_PATH: Final = "/-/contents"
"""Where callers on this machine are given the name of the file."""
SESSION_PATH: Final = "/-/open"
"""Where a browser's session begins."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MOST_BYTES: Final = 100


@dataclass(frozen=True, slots=True)
class ContentsToken:
    """``value`` is the token, ``file`` where it stands; None where it could not be written."""

    value: str = field(repr=False)
    file: Path | None = None

    @classmethod
    def beside(cls, store: Path) -> ContentsToken:
        """The token of a store: the existing one beside it, else a new one. With it sessions outlive a restart."""
        file = Path(f"{store.resolve()}.token")
        if (found := read_token(file)) is not None and file.stat().st_mode & 0o077 == 0:
            return cls(found, file)
        value = secrets.token_urlsafe(32)
        try:
            file.unlink(missing_ok=True)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w") as opened:
                opened.write(value + "\n")
        except OSError:  # a full disk: the link holds the token all the same
            return cls(value)
        return cls(value, file)

    def link(self, api: str) -> str:
        """The address that begins a session, of a monitor's API at ``api``."""
        return f"{api}{SESSION_PATH}?token={self.value}"

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of a session's cookie.

        Cookies ignore ports, so each monitor of a machine has its own name. The value is not the token: a stolen cookie
        gives no link.
        """
        return f"sidejudge-{self._derived('name')[:16]}", self._derived("session")

    def is_token(self, given: str) -> bool:
        """Whether a text is the token, in a time that does not depend on the text."""
        return hmac.compare_digest(given.encode(errors="replace"), self.value.encode())

    def is_shown_by(self, request: Request) -> bool:
        """Whether a request holds the token, or the cookie of a session."""
        name, value = self.cookie
        session = request.cookies.get(name, "").encode(errors="replace")
        return hmac.compare_digest(session, value.encode()) or self.is_token(request.headers.get(HEADER, ""))

    def _derived(self, purpose: str) -> str:
        return hmac.digest(self.value.encode(), f"sidejudge {purpose}".encode(), "sha256").hex()


def read_token(file: Path) -> str | None:
    """The token that a file holds; None where it cannot be read or holds anything else."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            text = opened.read(_MOST_BYTES).decode("ascii").strip()
    except (OSError, UnicodeError):
        return None
    return text if _TOKEN.fullmatch(text) else None
