"""Pairs from JSON Lines (``{"kind": "statement", "one": "…", "other": "…", "same": true}``), or ours."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Final

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.runs.embedding_calibration import KINDS, MeaningPair

SHIPPED: Final = "shipped"
"""In place of a file: pairs that are shipped, of support calls in English, German, Spanish and French."""
_MOST: Final = 10_000


class PairFileError(SidejudgeError):
    """A line is no pair; the message names it and its fault."""


def read_pairs(given: str) -> list[MeaningPair]:
    """The pairs of a file, or the shipped ones.

    Raises:
        PairFileError: A line is no pair, or there are too many.
        OSError: The file cannot be read.
    """
    source = files(__package__).joinpath("pairs.jsonl") if given == SHIPPED else Path(given)
    lines = [line for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(lines) > _MOST:
        raise PairFileError(f"more than {_MOST} pairs")
    return [_pair(line, number) for number, line in enumerate(lines, 1)]


def _pair(line: str, number: int) -> MeaningPair:
    try:
        stated = json.loads(line)
    except ValueError:
        raise PairFileError(f"line {number}: is not JSON") from None
    if not isinstance(stated, dict):
        raise PairFileError(f"line {number}: is not an object")
    kind = stated.get("kind", "statement")
    if kind not in KINDS:
        raise PairFileError(f"line {number}: kind: is not one of {', '.join(KINDS)}")
    for name in ("one", "other"):
        if not isinstance(stated.get(name), str) or not stated[name].strip():
            raise PairFileError(f"line {number}: {name}: is no text")
    if not isinstance(stated.get("same"), bool):
        raise PairFileError(f"line {number}: same: is neither true nor false")
    return MeaningPair(kind=kind, one=stated["one"], other=stated["other"], same=stated["same"])
