"""Reference: the pages that are written from declarations: every metric, every key, every family.

``python -P -m monitor.reference`` writes them anew; a test compares them with what stands in the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import integrations.dialects.reference as dialects
import integrations.prometheus.reference as families
from monitor.api.json_schemas import SCHEMAS, schema_text

from .api_page import api_page
from .cli_page import cli_page
from .config_page import config_page
from .metrics_page import metrics_page
from .rubrics_page import rubrics_page
from .which_rubric_page import which_rubric_page

_ROOT = Path(__file__).resolve().parents[2]


def pages() -> Mapping[Path, str]:
    """Return every generated page: its path and its text."""
    return {
        _ROOT / "scoring" / "METRICS.md": metrics_page(),
        _ROOT / "monitor" / "CONFIG.md": config_page(),
        _ROOT / "monitor" / "RUBRICS.md": rubrics_page(),
        _ROOT / "docs" / "reference" / "cli.md": cli_page(),
        _ROOT / "docs" / "reference" / "api.md": api_page(),
        _ROOT / "docs" / "reference" / "which-rubric.md": which_rubric_page(),
        **{
            _ROOT / "docs" / "reference" / "schemas" / f"{name}.schema.json": schema_text(name)
            for name in SCHEMAS
            if name != "configuration"
        },
        families.PAGE: families.page(),
        dialects.PAGE: dialects.page(),
    }
