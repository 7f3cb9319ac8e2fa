"""Checks that the packages, whose names are common words, are those of sidejudge."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("scoring", "integrations", "monitor", "dashboards", "sidejudge")


def origins() -> dict[str, Path | None]:
    """Return the folder that each package is imported from; ``None`` where it cannot be found."""
    found: dict[str, Path | None] = {}
    for name in PACKAGES:
        spec = find_spec(name)
        place = spec.origin if spec is not None else None
        found[name] = Path(place).resolve().parent if place is not None else None
    return found


def shadowed() -> dict[str, Path | None]:
    """Return the packages that are not beside this file's own: another one of that name is earlier on the path."""
    home = Path(__file__).resolve().parents[2]
    return {name: folder for name, folder in origins().items() if folder is None or folder.parent != home}
