"""A real PostgreSQL for tests, on a socket in a folder, started once."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.needs import POSTGRES
from tests.running import free_port

SETTINGS: Mapping[str, Any] = {
    "fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "shared_buffers": "16MB",
    "max_connections": 60, "autovacuum": "off", "listen_addresses": "'127.0.0.1'", "wal_level": "minimal",
    "max_wal_senders": 0, "log_min_messages": "fatal", "jit": "off",
}  # fmt: skip


class PostgresServer:
    """A cluster in a folder of its own, which a user other than root owns. ``start`` again goes on with its data."""

    def __init__(self, **settings: Any) -> None:
        self._binaries = Path(POSTGRES.path()).resolve().parent
        self.folder = Path(tempfile.mkdtemp(prefix="sj-pg-"))  # short: a socket's path has 107 characters at most
        self.port = free_port()
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            name = next((each.pw_name for each in pwd.getpwall() if each.pw_name in ("postgres", "nobody")), None)
            self._user = {"user": name, "group": pwd.getpwnam(str(name)).pw_gid}
            os.chown(self.folder, pwd.getpwnam(str(name)).pw_uid, pwd.getpwnam(str(name)).pw_gid)
        self._run(
            "initdb", "-D", str(self.data), "-U", "owner", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C",
            "--no-instructions",
        )  # fmt: skip
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("".join(f"{name} = {value}\n" for name, value in {**SETTINGS, **settings}.items()))
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres", *, user: str = "owner", port: int | None = None) -> str:
        return f"postgresql://{user}:s3cret-Pass@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> PostgresServer:
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [str(self._binaries / "postgres"), "-D", str(self.data), "-k", str(self.folder), "-p", str(self.port)],
            stdout=log, stderr=log, cwd="/", **self._user,
        )  # fmt: skip
        log.close()
        end = time.monotonic() + 20
        while not self._ready():
            gave_up = self._process.poll() is not None or time.monotonic() > end
            assert not gave_up, (self.folder / "log").read_text()
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """End at once, as a crash does."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: immediate
            self._process.wait(timeout=20)
            self._process = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Away for a while, as after a crash."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements as the owner; the rows of the last."""
        import psycopg  # noqa: PLC0415  # an extra

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self) -> str:
        """The name of an empty database."""
        self._made += 1
        name = f"test_{self._made}"
        self.sql(f"CREATE DATABASE {name} STRATEGY file_copy")
        return name

    def _ready(self) -> bool:
        import psycopg  # noqa: PLC0415  # an extra

        try:
            self.sql("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._binaries / program), *arguments], check=True, stdout=subprocess.DEVNULL, cwd="/", **self._user
        )


class SlowProxy:
    """Passes bytes on to a port, ``delay_s`` later.

    ``cut_after``: what a client sends with these bytes in it is passed on, and its connection is cut: nobody knows
    whether it took place.
    ``silent_after``: what a client sends with these bytes in it is passed on, and nothing is from then on.
    """

    def __init__(self, port: int, *, delay_s: float = 0.0) -> None:
        self._to, self.delay_s, self.port = port, delay_s, 0
        self.cut_after: bytes | None = None
        self.silent_after: bytes | None = None
        self.silences = 0
        self.cuts = 0
        self.clients: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def hang_up(self) -> None:
        """Cut all connections."""
        while self.clients:
            self.clients.pop().transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.clients.add(writer)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        for pair in ((reader, far_writer, writer), (far_reader, writer, far_writer)):
            task = asyncio.create_task(self._pass(*pair))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        try:
            while body := await reader.read(65536):
                await asyncio.sleep(self.delay_s)
                writer.write(body)
                await writer.drain()
                if self.silent_after is not None and self.silent_after in body:
                    self.silences += 1
                    self.delay_s = 30
                if self.cut_after is not None and self.cut_after in body:
                    self.cuts += 1
                    back.transport.abort()
                    break
        except OSError:
            pass
        finally:
            writer.close()
            self.clients.discard(writer)
