"""Reference: dialects, and the attributes of labels, as rows of tables, written from their declarations."""

from __future__ import annotations

import sys

from . import DIALECTS
from .labels import METADATA, OF_PROCESS, OF_TRACE
from .reading import Dialect


def dialects() -> str:
    """The rows of a table of all dialects."""
    return "".join(map(_row, DIALECTS))


def labels() -> str:
    """The rows of a table of all labels of a trace, with their attributes."""
    found = [*OF_TRACE.items(), *OF_PROCESS.items(), ("metadata", [f"{name}.*" for name in METADATA])]
    return "".join(f"| {label} | {', '.join(f'`{name}`' for name in names)} |\n" for label, names in found)


def _row(dialect: Dialect) -> str:
    documented = dialect.reads or sys.modules[dialect.speaks.__module__].__doc__ or ""
    what = documented.strip().partition("\n")[0].replace("``", "`").replace("|", "\\|")
    switch = f"`{dialect.switch}`" if dialect.switch else ""
    return f"| `{dialect.name}` | {what} | {switch} |\n"
