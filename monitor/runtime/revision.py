"""Revision: the commit that this build was made from, where anything recorded it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

VARIABLE = "SIDEJUDGE_REVISION"
"""Environment variable that an image's build sets."""
UNKNOWN = "unknown"
_ROOT = Path(__file__).resolve().parents[2]
_DIGITS = 12
_PATIENCE_S = 5.0


def revision(root: Path = _ROOT) -> str:
    """The first digits of the commit; ``unknown`` when it was not recorded.

    It comes from the environment (an image), from what pip recorded of an installation out of a repository, or from git
    where this runs from a checkout. ``-dirty``: the checkout has changes.

    Args:
        root: The folder that holds the packages.
    """
    return os.environ.get(VARIABLE, "")[:_DIGITS] or _checked_out(root) or _installed() or UNKNOWN


def _installed() -> str:
    try:
        recorded = distribution("sidejudge").read_text("direct_url.json")
        return str(json.loads(recorded or "{}").get("vcs_info", {}).get("commit_id", ""))[:_DIGITS]
    except (PackageNotFoundError, ValueError, AttributeError):
        return ""


def _checked_out(root: Path) -> str:
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():  # a repository further up would be somebody else's
        return ""
    command = [git, "-C", str(root), "describe", "--always", "--dirty", "--exclude=*", f"--abbrev={_DIGITS}"]
    try:
        found = subprocess.run(  # noqa: S603  # nothing in it comes from outside
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
