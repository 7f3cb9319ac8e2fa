"""How a command reports that it cannot continue: one line of cause, one line of remedy, and the exit code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import click

DATA = 1
"""Exit code: done, and something is wrong with the data."""
CALL = 2
"""Exit code: the call or the configuration is wrong."""
LOST = 3
"""Exit code: other processes that worked for the command were lost; the same command goes on."""


class CommandError(Exception):
    """Ends a command. ``cause`` may hold several lines when several things are wrong; ``remedy`` is one.

    It is no ``SidejudgeError``: this file is imported before it is certain that the packages are ours.
    """

    def __init__(self, cause: str, remedy: str, code: int = CALL) -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy
        self.code = code


@contextmanager
def ending(*kinds: type[Exception], remedy: str = "", naming: str = "", code: int = CALL) -> Iterator[None]:
    """End the command on an error of one of these kinds: its text, behind ``naming``, is the cause.

    An error's own remedy is used in place of ``remedy``. An error with several ``problems`` has a line for each.
    """
    try:
        yield
    except kinds as error:
        problems = getattr(error, "problems", ())
        cause = getattr(error, "cause", "\n".join(map(str, problems)) or error)
        raise CommandError(f"{naming}{cause}", getattr(error, "remedy", "") or remedy, code) from error


@contextmanager
def reading_store(naming: str = "--store: ") -> Iterator[None]:
    """Turn an unreadable store file into the end of the command."""
    from sidejudge.integrations.store.errors import StoreError

    with ending(StoreError, naming=naming, remedy="name the file that store.path of the monitor names"):
        yield


def check_known(given: Iterable[str], known: Collection[str], cause: str) -> None:
    """Refuse a name that is not ``known``: it stands behind the ``cause``, and the remedy lists those that are."""
    for name in given:
        if name not in known:
            raise CommandError(f"{cause} {name!r}", f"choose from {', '.join(known)}")


def near(name: str, known: Iterable[str], otherwise: str) -> str:
    """The remedy for an unknown name: the one that was probably meant, or ``otherwise``."""
    from sidejudge.monitor.config.errors import nearest

    found = nearest(name, list(known))
    return f"did you mean {found!r}?" if found else otherwise


def warn(cause: str, remedy: str | None = None) -> None:
    """Print a warning to standard error."""
    more = "" if remedy is None else f"\nremedy: {remedy}"
    click.echo(f"{click.style('warning:', fg='yellow')} {cause}{more}", err=True)
