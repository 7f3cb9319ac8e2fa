"""Prompt files: the fixed texts of a prompt, and their version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

SEED_000 = "seed_000_system"
SEED_002 = "seed_002_evaluator"
DATA = "data"
ANSWERS = "answers"
AGAIN = "again"
FIVE_FIELDS = "seed_000_answers"


_INLINE = "="
"""What the name of a prompt begins with that is no file but the text itself: instructions of a declared question."""


def inline(text: str) -> str:
    """The name of a prompt that is this text."""
    return _INLINE + text


def is_inline(name: str) -> bool:
    """Whether a prompt is its name rather than a file."""
    return name.startswith(_INLINE)


@lru_cache(maxsize=4096)
def prompt(name: str) -> str:
    """The text of ``scoring/prompts/NAME.md``, read once, or the text that the name holds."""
    if is_inline(name):
        return name.removeprefix(_INLINE)
    return files("sidejudge.scoring").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


@lru_cache(maxsize=4096)
def _version(names: tuple[str, ...]) -> str:
    return hashlib.sha256("".join(map(prompt, names)).encode()).hexdigest()


def version(names: Sequence[str]) -> str:
    """SHA-256, in hexadecimal, of these files one after the other."""
    return _version(tuple(names))
