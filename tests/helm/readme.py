"""What the READMEs show to be copied."""

from __future__ import annotations

import re
from pathlib import Path


def fenced(readme: Path, language: str) -> list[str]:
    """The blocks in a language, in the order of the page."""
    return re.findall(rf"^```{language}\n(.*?)^```", readme.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
