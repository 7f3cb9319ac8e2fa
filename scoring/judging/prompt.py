"""Prompt files: what a judge is told besides the material, and the version that it is told in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

SEED_000 = "seed_000_system"
SEED_002 = "seed_002_evaluator"
DATA = "data"
ANSWERS = "answers"
FIVE_FIELDS = "seed_000_answers"


@cache
def prompt(name: str) -> str:
    """The text of ``scoring/prompts/NAME.md``, read once."""
    return files("scoring").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


@cache
def _version(names: tuple[str, ...]) -> str:
    return hashlib.sha256("".join(map(prompt, names)).encode()).hexdigest()


def version(names: Sequence[str]) -> str:
    """SHA-256, in hexadecimal, of these files one after the other."""
    return _version(tuple(names))
