"""Database: short transactions with a time-out, over one connection that is closed when nobody uses it.

A fleet of 500 sidecars with a connection each is more than a PostgreSQL takes (``max_connections`` is 100). So a
monitor connects for a round of work and leaves. Everything that a transaction sets is local to it, and no statement is
prepared: PgBouncer in transaction mode may stand between.

Errors of the fleet's database, divided by what helps: waiting, or a person. None names a password.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from sidejudge.integrations.sql import statements
from sidejudge.scoring.errors import SidejudgeError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Sequence[object] | Mapping[str, object]

_PASSING: Final = ("08", "25P03", "40", "53", "55P03", "57", "58")
"""SQLSTATE classes that time mends: connection, serialisation, resources (disk full, too many clients), shutdown."""
_NOT_ADMITTED: Final = ("authentication failed", "does not exist", "pg_hba.conf", "permission denied")
_CORRECT: Final = "correct the address in fleet.database"
_LASTING: Final = {
    "no encryption": "take TLS, sslmode=verify-full in fleet.database, or have the server admit this user without",
    "SSL was required": "let the server offer TLS (ssl = on), or take sslmode out of fleet.database",
    "certificate verify failed": "name the authority of the server's certificate: sslrootcert in fleet.database",
    "root certificate file": "name a file that is there: sslrootcert in fleet.database",
    "does not match host name": "name the server as its certificate does in fleet.database",
    "invalid URI": _CORRECT,
    "no name of a host": _CORRECT,
    "could not parse network address": _CORRECT,
    "invalid integer value": _CORRECT,
    "bad value for": _CORRECT,
    "forbidden value": _CORRECT,
    "invalid percent-encoded": "write the password in fleet.database percent-encoded",
    "invalid sslmode": "correct sslmode in fleet.database",
}
"""What libpq names a failure to connect that no time mends, and the remedy."""


def queries() -> dict[str, str]:
    """The statements to the fleet's database."""
    return statements("sidejudge.integrations.postgres")


class Transaction:
    """Statements that are committed together. Values are passed apart from the statement (``%s``, ``%(name)s``)."""

    def __init__(self, connection: AsyncConnection[Row]) -> None:
        self._connection = connection

    async def execute(self, sql: str, values: Values = ()) -> int:
        """Run a statement; how many rows it changed."""
        return (await self._connection.execute(sql.encode(), values or None)).rowcount

    async def rows(self, sql: str, values: Values = ()) -> list[Row]:
        """The rows that a statement returns."""
        return await (await self._connection.execute(sql.encode(), values or None)).fetchall()

    async def each(self, sql: str, values: Sequence[Values]) -> None:
        """Run a statement for each of these, in few round trips."""
        if values:
            async with self._connection.cursor() as cursor:
                await cursor.executemany(sql.encode(), values)


class Database:
    """The fleet's database as one monitor uses it: one transaction at a time.

    Args:
        url: ``postgresql://…`` as libpq reads it, with all its options.
        schema: where the tables are.
        timeout_s: the longest that a transaction may take, with connecting. Nothing waits longer.
        rest_s: how long a connection is kept for the next transaction.
    """

    def __init__(self, url: str, *, schema: str = "sidejudge", timeout_s: float = 5.0, rest_s: float = 1.0) -> None:
        self.schema, self.shown = schema, without_credentials(url)
        self._url, self._timeout_s, self._rest_s = url, timeout_s, rest_s
        self._lock = asyncio.Lock()
        self._connection: AsyncConnection[Row] | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self.connects = 0

    @asynccontextmanager
    async def transaction(self, *, timeout_s: float | None = None) -> AsyncIterator[Transaction]:
        """Statements that are committed at the end, or not at all.

        Raises:
            DatabaseAway: it is not reached, too slow, full or restarting. Whether a transaction that was being
                committed took place is not known then: what is written must be right when it is written twice.
            DatabaseRefuses: only a person can help.
        """
        import psycopg  # noqa: PLC0415  # an extra, only where a fleet is configured

        limit_s = self._timeout_s if timeout_s is None else timeout_s
        loop, cut = asyncio.get_running_loop(), False

        def cut_off() -> None:
            nonlocal cut
            cut = True
            self._hang_up()

        async with self._lock:
            self._stay()
            timer = loop.call_later(limit_s, cut_off)
            try:
                connection = await self._connected(limit_s)
                async with connection.transaction():
                    limit = str(int(limit_s * 1000))
                    await connection.execute(queries()["begin"], (self.schema, limit, limit, limit))
                    yield Transaction(connection)
            except psycopg.Error as error:
                self._drop()
                raise self._explained(error, limit_s if cut else None) from None
            except (OSError, TimeoutError) as error:
                self._drop()
                raise self._explained(error, limit_s if cut or isinstance(error, TimeoutError) else None) from None
            except UnicodeEncodeError:  # half a surrogate pair, as JSON can bring it
                self._drop()
                raise DatabaseRefuses(f"fleet.database {self.shown}: a text is no UTF-8", data=True) from None
            except asyncio.CancelledError:
                self._drop()
                raise
            finally:
                timer.cancel()
                self._leave_soon()

    def close(self) -> None:
        """End the connection; a transaction that is under way fails."""
        self._hang_up()
        self._stay()
        if not self._lock.locked():
            self._drop()

    async def _connected(self, limit_s: float) -> AsyncConnection[Row]:
        import psycopg  # noqa: PLC0415  # an extra

        if self._connection is not None and not self._connection.closed and not self._connection.broken:
            return self._connection
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # how a connection ends that was cut off is known here
        try:
            async with asyncio.timeout(limit_s):
                self._connection = await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, prepare_threshold=None, application_name="sidejudge"
                )
        except UnicodeError:  # as the resolver fails on a label that is empty or too long
            raise OSError("the host is no name of a host") from None
        self.connects += 1
        return self._connection

    def _hang_up(self) -> None:
        """Wake who waits for an answer: the socket is shut, for a request to cancel would wait as well."""
        connection = self._connection
        if connection is None or connection.closed:
            return
        with suppress(OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as held:
            held.shutdown(socket.SHUT_RDWR)

    def _drop(self) -> None:
        """Give the connection up, without a wait for the other side."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()

    def _stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def _leave_soon(self) -> None:
        if self._connection is not None:
            self._leaving = asyncio.get_running_loop().call_later(self._rest_s, self.leave)

    def leave(self) -> None:
        """Close the connection now, unless somebody uses it."""
        if not self._lock.locked():
            self._drop()

    def _explained(self, error: BaseException, limit_s: float | None) -> DatabaseError:
        where = f"fleet.database {self.shown}"
        if limit_s is not None:
            return DatabaseAway(f"{where}: no answer within {limit_s:g} s")
        state = getattr(error, "sqlstate", None)
        text = f"{where}: {cause(error, self._url)}"
        if state is None and "FATAL" in text and any(sign in text for sign in _NOT_ADMITTED):
            state = "28000"  # libpq keeps only the text of what a connection is refused for
        if state in (None, "28000") and (mend := next((to_do for sign, to_do in _LASTING.items() if sign in text), "")):
            return DatabaseRefuses(f"{text}\n{mend}")
        if state is None or state.startswith(_PASSING):
            return DatabaseAway(text)
        remedies = {
            "25006": "name the primary: target_session_attrs=read-write in fleet.database, or let it take writes",
            "28": "correct user, password and database in fleet.database, or have the server admit them",
            "3F": "run `sidejudge fleet migrate` as a role that may create the schema",
            "42501": "grant the rights that 'sidejudge help how-to/fleet' lists",
            "42P01": "run `sidejudge fleet migrate`",
        }
        remedy = remedies.get(state) or remedies.get(state[:2], "report this as a fault of sidejudge")
        return DatabaseRefuses(f"{text}\n{remedy}", data=state.startswith(("22", "54")))


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


def without_credentials(url: str) -> str:
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
