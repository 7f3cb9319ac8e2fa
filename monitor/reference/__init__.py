"""Reference: the pages that are written from declarations: every metric, every key, every family.

``python -P -m sidejudge.monitor.reference`` writes them anew; a test compares them with the repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import sidejudge.integrations.dialects.reference as dialects
import sidejudge.integrations.prometheus.reference as families
from sidejudge.monitor.api.verdict_schemas import SCHEMAS, schema_text

from .config_page import config_page
from .interface_pages import api_page, cli_page, openapi_text
from .markdown import page
from .promises import KINDS, pins
from .rubrics_page import metrics_page, rubrics_page, which_rubric_page

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PROMISES = REFERENCE / "promises"
"""The folder of the files that pin what is promised."""


def pages() -> Mapping[Path, str]:
    """Return every generated page: its path and its text."""
    return {
        REFERENCE / "metrics.md": metrics_page(),
        REFERENCE / "configuration.md": config_page(),
        REFERENCE / "rubrics.md": rubrics_page(),
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "api.md": api_page(),
        REFERENCE / "schemas" / "openapi.json": openapi_text(),
        REFERENCE / "which-rubric.md": which_rubric_page(),
        **{
            REFERENCE / "schemas" / f"{name}.schema.json": schema_text(name)
            for name in SCHEMAS
            if name != "configuration"
        },
        **{path: pins(_text(path), set(found())) for path, found in promised().items()},
        REFERENCE / "families.md": page("families", families=families.families(), labels=families.labels()),
        REFERENCE / "dialects.md": page("dialects", dialects=dialects.dialects(), labels=dialects.labels()),
    }


def promised() -> Mapping[Path, Callable[[], Iterable[str]]]:
    """The files that pin what is promised, each with what lists the names that are provided."""
    return {PROMISES / f"{kind}.txt": provided for kind, provided in KINDS.items()}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
