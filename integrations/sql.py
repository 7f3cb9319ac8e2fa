"""SQL: the statements of an adapter, each by its name, in a file beside its code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def statements(package: str) -> dict[str, str]:
    """Each named statement of the package's ``queries.sql``: what follows a line ``-- name: …``."""
    text = files(package).joinpath("queries.sql").read_text("utf-8")
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name.strip(): body.strip() for name, _, body in parts}
