"""Errors of the fleet's database, divided by what helps: waiting, or a person. None names a password."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from sidejudge.scoring.errors import SidejudgeError

_LONGEST: Final = 300
_PASSWORD: Final = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)
_USERINFO: Final = re.compile(r"(://[^/\s:@]*:)[^/\s]*@")


class DatabaseError(SidejudgeError):
    """A transaction failed; nothing of it was committed, or it is unknown whether it was."""


class DatabaseAway(DatabaseError):  # noqa: N818  # it names the database's state
    """The database is not reached, is too slow, full or restarting; it may be back at any time."""


class DatabaseRefuses(DatabaseError):  # noqa: N818  # likewise
    """The database takes no such statement: a person must mend its address, rights or schema.

    ``data``: it has no form for a value; another value may do.
    """

    def __init__(self, text: str, *, data: bool = False) -> None:
        super().__init__(text)
        self.data = data


class LeaseLost(DatabaseError):  # noqa: N818  # likewise
    """Another monitor holds the lease by now: nothing was written."""


def shown(url: str) -> str:
    """An address without its password, user and options, as logs and pages show it."""
    try:
        parts = urlsplit(url)
        hosts = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "postgresql://…"
    return f"postgresql://{hosts}{parts.path}"


def cause(error: BaseException, url: str) -> str:
    """The first line of what went wrong, without anything that may be a secret."""
    first = str(error).strip().partition("\n")[0] or type(error).__name__
    for secret in _secrets(url):
        first = first.replace(secret, "…")
    return _USERINFO.sub(r"\1…@", _PASSWORD.sub(r"\1…", first))[:_LONGEST]


def _secrets(url: str) -> list[str]:
    """The password as it stands in the address and as it is sent."""
    from urllib.parse import unquote  # noqa: PLC0415  # beside its one use

    userinfo = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
    written = userinfo.partition(":")[2]
    return sorted({each for each in (written, unquote(written)) if len(each) > 2}, key=len, reverse=True)
