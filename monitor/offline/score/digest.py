"""Digest of a case as it is judged; a verdict with another digest is on something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import orjson

from sidejudge.scoring.trace.span import Json

_DIGITS = 16


def case_digest(line: bytes, scenario: Mapping[str, Json] | None) -> str:
    """The first 16 hex digits of the SHA-256 of the case and of the scenario of the configuration that it is held to.

    ``line`` is a valid JSON line. Spaces and the order of keys do not matter, for they do not change a verdict.
    """
    try:
        case = orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # what it does not read or write: then as it stands
        case = line.strip()
    return digest_of(case, scenario)


def digest_of(case: bytes, scenario: Mapping[str, Json] | None) -> str:
    """As ``case_digest``, of a case in its canonical form: sorted keys, no spaces."""
    stated = hashlib.sha256(case)
    if scenario is not None:
        stated.update(b"\n" + json.dumps(scenario, sort_keys=True).encode())
    return stated.hexdigest()[:_DIGITS]
