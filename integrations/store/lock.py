"""Lock: one monitor a store. Two would each judge what the other took in."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import StoreUnavailable


class Lock:
    """Held from construction to ``release``, or until the process ends in whatever way: no stale lock stays behind."""

    def __init__(self, store: Path) -> None:
        # A link to a store is that store.
        self._store, self._path = store, Path(os.path.realpath(store) + ".lock")
        self._file: int | None = self._acquire()

    def _acquire(self) -> int:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            cause = f"{self._path.name} cannot be made ({error.strerror})"
            raise StoreUnavailable(f"store {self._store}: {cause}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise StoreUnavailable(
                f"store {self._store}: another monitor uses it\nstop that one, or set store.path to another file"
            ) from None
        return file

    def check(self) -> None:
        """Whether the lock is still what others look at. One whose file was removed is taken again.

        Raises ``StoreUnavailable`` where another monitor took it meanwhile: of two, the later one goes on.
        """
        if self._file is None:
            return
        try:
            if os.path.samestat(os.fstat(self._file), self._path.stat()):
                return
        except FileNotFoundError:
            pass
        taken = self._acquire()
        os.close(self._file)
        self._file = taken

    def release(self) -> None:
        """Let another monitor have the store; idempotent."""
        # Closed twice, the number may by then be somebody else's file.
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
