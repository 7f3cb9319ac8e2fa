"""Lock: one monitor a store. Two would each judge what the other took in."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import StoreUnavailable


class Lock:
    """Held from construction to ``release``, or until the process ends in whatever way: no stale lock stays behind."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(store.name + ".lock")
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"store {store}: {path.name} cannot be made ({error.strerror})") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise StoreUnavailable(
                f"store {store}: another monitor uses it\nstop that one, or set store.path to another file"
            ) from None
        self._file: int | None = file

    def release(self) -> None:
        """Let another monitor have the store; idempotent."""
        # Closed twice, the number may by then be somebody else's file.
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
