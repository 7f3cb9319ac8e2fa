"""The SQL of the store, read from the files beside this one."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def schema() -> str:
    """The statements that make an empty database one of ours."""
    return files(__package__).joinpath("schema.sql").read_text("utf-8")


@cache
def queries() -> dict[str, str]:
    """Each named statement of ``queries.sql``: what follows a line ``-- name: …``."""
    text = files(__package__).joinpath("queries.sql").read_text("utf-8")
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name.strip(): body.strip() for name, _, body in parts}
