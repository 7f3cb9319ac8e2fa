"""Reference: the pages that are written from declarations: every metric, every key, every family.

``python -P -m sidejudge.monitor.reference`` writes them anew; a test compares them with what stands in the repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import sidejudge.integrations.dialects.reference as dialects
import sidejudge.integrations.prometheus.reference as families
from sidejudge.monitor.api.json_schemas import SCHEMAS, schema_text

from .api_page import api_page, openapi_text
from .cli_page import cli_page
from .config_page import config_page
from .metrics_page import metrics_page
from .promises import KINDS, pins
from .rubrics_page import rubrics_page, which_rubric_page

_ROOT = Path(__file__).resolve().parents[2]
PROMISES = _ROOT / "docs" / "reference" / "promises"
"""The folder of the files that pin what is promised."""


def pages() -> Mapping[Path, str]:
    """Return every generated page: its path and its text."""
    return {
        _ROOT / "scoring" / "METRICS.md": metrics_page(),
        _ROOT / "monitor" / "CONFIG.md": config_page(),
        _ROOT / "monitor" / "RUBRICS.md": rubrics_page(),
        _ROOT / "docs" / "reference" / "cli.md": cli_page(),
        _ROOT / "docs" / "reference" / "api.md": api_page(),
        _ROOT / "docs" / "reference" / "schemas" / "openapi.json": openapi_text(),
        _ROOT / "docs" / "reference" / "which-rubric.md": which_rubric_page(),
        **{
            _ROOT / "docs" / "reference" / "schemas" / f"{name}.schema.json": schema_text(name)
            for name in SCHEMAS
            if name != "configuration"
        },
        **{path: pins(_text(path), set(found())) for path, found in promised().items()},
        families.PAGE: families.page(),
        dialects.PAGE: dialects.page(),
    }


def promised() -> Mapping[Path, Callable[[], Iterable[str]]]:
    """The files that pin what is promised, each with what lists the names that are provided."""
    return {PROMISES / f"{kind}.txt": provided for kind, provided in KINDS.items()}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
