"""Reference: the page that lists the dialects, written from their declarations."""

from __future__ import annotations

import sys

from . import DIALECTS
from .reading import Dialect

_HEAD = """\
# Dialects

Generated from `integrations/dialects/`; do not edit. A span is read by the first of these that speaks for it, so that
one trace may mix several. What they were compared with, client by client, stands in [What is matched](matched.md).

Where a trace holds no contents, that is a result of its own, and names the setting of the last column; a dialect
without one sends contents always. `sidejudge inspect -v` shows of each field which attribute or event it was read
from.

| dialect | what it reads | to have contents sent |
|---|---|---|
"""


def page() -> str:
    """The reference page as Markdown."""
    return _HEAD + "".join(_row(dialect) for dialect in DIALECTS)


def _row(dialect: Dialect) -> str:
    documented = dialect.reads or sys.modules[dialect.speaks.__module__].__doc__ or ""
    what = documented.strip().partition("\n")[0].replace("``", "`").replace("|", "\\|")
    switch = f"`{dialect.switch}`" if dialect.switch else ""
    return f"| `{dialect.name}` | {what} | {switch} |\n"
