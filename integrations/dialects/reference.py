"""Reference: the page that lists the dialects and the attributes of labels, written from their declarations."""

from __future__ import annotations

import sys

from . import DIALECTS
from .labels import METADATA, OF_PROCESS, OF_TRACE
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

_LABELS = """
## Labels of a trace

Every dialect reads them from the same attributes. Of several, the first that a span has counts. An attribute of the
resource holds for all of its spans; the service is read there alone. After these counts an attribute of any client
whose name ends like that of a session or a user (`acme.session.id`), and then an entry of the metadata.

| label | attributes |
|---|---|
"""


def page() -> str:
    """The reference page as Markdown."""
    labels = [*OF_TRACE.items(), *OF_PROCESS.items(), ("metadata", [f"{name}.*" for name in METADATA])]
    rows = (f"| {label} | {', '.join(f'`{name}`' for name in names)} |\n" for label, names in labels)
    return _HEAD + "".join(map(_row, DIALECTS)) + _LABELS + "".join(rows)


def _row(dialect: Dialect) -> str:
    documented = dialect.reads or sys.modules[dialect.speaks.__module__].__doc__ or ""
    what = documented.strip().partition("\n")[0].replace("``", "`").replace("|", "\\|")
    switch = f"`{dialect.switch}`" if dialect.switch else ""
    return f"| `{dialect.name}` | {what} | {switch} |\n"
