"""Secrets: what has the shape of a key is struck from the words of others before anybody sees them.

A provider may quote a key in its refusal, and not only the one that it was sent: a proxy's own, that of another
account. No list of formats is complete, so besides the prefixes that are known any long run of mixed letters and
digits counts as one. Names of models, paths and UUIDs are made of short words and stay.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

_STRUCK: Final = "…"
_LONGEST: Final = 10_000
"""Characters that are looked at; what comes after them is not shown at all."""
_IN_URL: Final = re.compile(r"(?<=://)[^\s/@]{1,500}@")
_AFTER_SCHEME: Final = re.compile(r"(?i)\b(bearer|basic)(\s+)(?=\S{0,500}[0-9=._-])[\w.~+/=*-]{8,}")
_NAMED: Final = re.compile(
    r"(?i)\b(api[_-]?key|access[_-]?token|secret|password)([\"']?\s{0,3}[:=]\s{0,3}[\"']?)(?=\S{0,500}[0-9])[^\s\"',;&]{6,}"
)
_PREFIXED: Final = re.compile(
    r"\b(?:(?:sk|pk|rk|xox[a-z]|xai|glpat|dapi|pplx|nvapi)-|(?:gsk|hf|gh[a-z]|github_pat|r8|lsv2|key)_|AIza|AKIA|ya29\.)"
    r"[\w.*-]{6,}"
)
_RUN: Final = re.compile(r"[\w+/=.-]{20,}")
_WORD: Final = re.compile(r"[A-Za-z0-9]{16,}")
_LEAST_HEX: Final = 32
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def struck(text: str) -> str:
    """The text without what looks like a key, a token or a password in an address; not much longer than was needed.

    >>> struck("Incorrect API key provided: sk-proj-abc123DEF456.")
    'Incorrect API key provided: ….'
    >>> struck("postgres://me:pw@db/x: no model openai/gpt-4o-mini-2024-07-18")
    'postgres://…@db/x: no model openai/gpt-4o-mini-2024-07-18'
    """
    text = _IN_URL.sub(f"{_STRUCK}@", text[:_LONGEST])
    text = _AFTER_SCHEME.sub(rf"\1\2{_STRUCK}", text)
    text = _NAMED.sub(rf"\1\2{_STRUCK}", text)
    text = _PREFIXED.sub(_unless_a_stop, text)
    return _RUN.sub(_unless_words, text)


def _unless_a_stop(found: re.Match[str]) -> str:
    """A full stop at the end belongs to the sentence."""
    return _STRUCK + "." * (len(found[0]) - len(found[0].rstrip(".")))


def _unless_words(found: re.Match[str]) -> str:
    return _STRUCK if any(map(_random, _WORD.findall(found[0]))) else found[0]


def _random(word: str) -> bool:
    """Whether letters and digits are mixed as in no word: a change of kind in four characters, or all of it hex."""
    kinds = [(character.isdigit(), character.isupper()) for character in word]
    if not any(kind[0] for kind in kinds) or word.isdigit():
        return False
    changes = sum(one != other for one, other in pairwise(kinds))
    return 4 * changes >= len(word) or (len(word) >= _LEAST_HEX and _HEX.issuperset(word))
