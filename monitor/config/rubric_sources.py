"""What declared rubrics may refer to: the rubrics that ship, functions, and prompts that lie elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scoring.declared.metric import Sources


def sources(folder: Path) -> Sources:
    """For rubrics that are declared in a folder, whose functions are found there too."""
    from scoring.declared.metric import Sources  # noqa: PLC0415  # only where rubrics are declared
    from scoring.rubrics import RUBRICS  # noqa: PLC0415

    del folder
    return Sources(rubrics=RUBRICS)
