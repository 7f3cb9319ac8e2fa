"""The SQL of the store, read from the files beside this one."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

VERSION: Final = 13
"""Version of the schema, kept in the file's ``user_version``."""


@cache
def schema(version: int) -> str:
    """The statements that bring a database of the version before (0: an empty one) to this version.

    What a version once wrote is never changed: a new version is a new file, ``schema_N.sql``, and the number above.
    """
    return files(__package__).joinpath(f"schema_{version}.sql").read_text("utf-8")


@cache
def queries() -> dict[str, str]:
    """Each named statement of ``queries.sql``: what follows a line ``-- name: …``."""
    text = files(__package__).joinpath("queries.sql").read_text("utf-8")
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name.strip(): body.strip() for name, _, body in parts}
