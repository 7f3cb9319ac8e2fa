"""Origin: whether our five packages, whose names anybody may use, are really ours."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("scoring", "integrations", "monitor", "dashboards", "sidejudge")


def origins() -> dict[str, Path | None]:
    """The folder each package would be imported from; ``None`` where it cannot be found."""
    found: dict[str, Path | None] = {}
    for name in PACKAGES:
        spec = find_spec(name)
        place = spec.origin if spec is not None else None
        found[name] = Path(place).resolve().parent if place is not None else None
    return found


def shadowed() -> dict[str, Path | None]:
    """Packages that do not lie beside this file's own package: something else of that name comes first on the path."""
    home = Path(__file__).resolve().parents[2]
    return {name: folder for name, folder in origins().items() if folder is None or folder.parent != home}
